/*
 * Builds a type tree.  Nodes, parts and text are in separate arrays that grow; at the
 * end the arrays are joined.
 */
#include "inspect/debuginfo/builder.h"

#include <stdlib.h>
#include <string.h>

static bool grow_array(struct builder *builder, void **memory, size_t *room,
		       size_t needed, size_t element)
{
	size_t larger = *room ? *room : 64;
	void *moved;

	while (larger < needed)
		larger *= 2;
	if (larger == *room)
		return true;
	moved = realloc(*memory, larger * element);
	if (!moved) {
		builder->has_failed = true;
		return false;
	}
	*memory = moved;
	*room = larger;
	return true;
}

uint32_t builder_add_node(struct builder *builder)
{
	size_t at = builder->node_count;

	if (at + 1 > SHIM_TYPETREE_NODES_MAX) {
		builder->is_full = true;
		return 0;
	}
	if (!grow_array(builder, (void **)&builder->nodes, &builder->node_room,
			at + 1, sizeof(*builder->nodes)))
		return 0;
	memset(&builder->nodes[at], 0, sizeof(*builder->nodes));
	builder->nodes[at].kind = SHIM_TYPE_UNKNOWN;
	builder->node_count++;
	return (uint32_t)at;
}

uint32_t builder_add_parts(struct builder *builder, uint32_t node, size_t count)
{
	size_t at = builder->part_count;

	if (at + count > SHIM_TYPETREE_PARTS_MAX) {
		builder->is_full = true;
		return 0;
	}
	if (!grow_array(builder, (void **)&builder->parts, &builder->part_room,
			at + count, sizeof(*builder->parts)))
		return 0;
	memset(&builder->parts[at], 0, count * sizeof(*builder->parts));
	builder->part_count += count;
	builder->nodes[node].first = (uint32_t)at;
	builder->nodes[node].count = (uint32_t)count;
	return (uint32_t)at;
}

uint32_t builder_add_text(struct builder *builder, const char *text)
{
	size_t at = builder->text_size, size = text ? strlen(text) + 1 : 0;

	if (size <= 1)
		return 0;
	if (at + size > SHIM_TYPETREE_TEXT_MAX) {
		builder->is_full = true;
		return 0;
	}
	if (!grow_array(builder, (void **)&builder->text, &builder->text_room,
			at + size, 1))
		return 0;
	memcpy(builder->text + at, text, size);
	builder->text_size += size;
	return (uint32_t)at;
}

bool builder_has_room(const struct builder *builder)
{
	return !builder->is_full && !builder->has_failed;
}

void builder_begin(struct builder *builder)
{
	builder->node_count = builder->part_count = builder->text_size = 0;
	builder->is_full = builder->has_failed = false;
	/* The first string is empty. */
	if (grow_array(builder, (void **)&builder->text, &builder->text_room, 1,
		       1))
		builder->text[builder->text_size++] = '\0';
}

static size_t round_up(size_t size)
{
	return (size + 7) / 8 * 8;
}

static bool grow_list(struct typetree_list *list, size_t size)
{
	size_t room = list->room ? list->room : 4096;
	char *larger;

	while (room < list->size + size)
		room *= 2;
	if (room == list->room)
		return true;
	larger = realloc(list->memory, room);
	if (!larger)
		return false;
	list->memory = larger;
	list->room = room;
	return true;
}

static void append_bytes(struct typetree_list *list, const void *data,
			 size_t size)
{
	if (size > 0)
		memcpy(list->memory + list->size, data, size);
	list->size += size;
}

static void append_padding(struct typetree_list *list)
{
	while (list->size % 8 != 0)
		list->memory[list->size++] = '\0';
}

bool builder_append(struct typetree_list *list, const struct builder *builder,
		    const char *name)
{
	struct typetree_value value;
	struct shim_typetree tree;
	size_t nodes, parts;

	if (builder->has_failed)
		return false;
	nodes = builder->node_count * sizeof(*builder->nodes);
	parts = builder->part_count * sizeof(*builder->parts);
	tree = (struct shim_typetree){
		.size = (uint32_t)round_up(sizeof(tree) + nodes + parts +
					   builder->text_size),
		.node_count = (uint32_t)builder->node_count,
		.part_count = (uint32_t)builder->part_count,
		.text_size = (uint32_t)builder->text_size,
	};
	value.name_size = (uint32_t)strlen(name) + 1;
	value.size = (uint32_t)round_up(sizeof(value) + tree.size +
					value.name_size);
	if (!grow_list(list, value.size))
		return false;
	append_bytes(list, &value, sizeof(value));
	append_bytes(list, &tree, sizeof(tree));
	append_bytes(list, builder->nodes, nodes);
	append_bytes(list, builder->parts, parts);
	append_bytes(list, builder->text, builder->text_size);
	append_padding(list);
	append_bytes(list, name, value.name_size);
	append_padding(list);
	return true;
}
