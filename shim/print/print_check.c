/* Checks a type tree of any bytes, so that print.c can trust it. */
#include "print/floating.h"
#include "print/print.h"

#include <shim/banned.h>

struct check {
	const struct shim_typetree *tree;
	const struct shim_typetree_node *nodes;
	const struct shim_typetree_part *parts;
};

/* Nodes lead to later nodes only, so that there is no cycle. */
static bool is_later_node(const struct check *check, uint32_t from, uint32_t to)
{
	return to > from && to < check->tree->node_count;
}

static bool is_number(const struct shim_typetree_node *node)
{
	return node->size > 0 && node->size <= 16 &&
	       (node->size & (node->size - 1)) == 0;
}

static bool is_kind_valid(const struct shim_typetree_node *node)
{
	switch (node->kind) {
	case SHIM_TYPE_BOOL:
	case SHIM_TYPE_CHARACTER:
	case SHIM_TYPE_SIGNED:
	case SHIM_TYPE_UNSIGNED: return is_number(node);
	case SHIM_TYPE_ENUM: return is_number(node) && node->size <= 8;
	case SHIM_TYPE_FLOAT:
	case SHIM_TYPE_COMPLEX:
		return node->format >= SHIM_TYPETREE_BINARY16 &&
		       node->format <= SHIM_TYPETREE_BINARY128 &&
		       node->size >= (node->kind == SHIM_TYPE_FLOAT ? 1u : 2u) *
					     floating_size(node->format);
	case SHIM_TYPE_POINTER:
	case SHIM_TYPE_REFERENCE: return node->size == sizeof(uintptr_t);
	case SHIM_TYPE_MEMBER_POINTER:
		return node->size == sizeof(uintptr_t) ||
		       node->size == 2 * sizeof(uintptr_t);
	default: return node->kind <= SHIM_TYPE_UNKNOWN;
	}
}

static uint32_t parts_of_form(uint8_t form)
{
	switch (form) {
	case SHIM_TYPETREE_SHORT_TEXT: return 4;
	case SHIM_TYPETREE_TEXT:
	case SHIM_TYPETREE_SEQUENCE:
	case SHIM_TYPETREE_OPTIONAL: return 2;
	case SHIM_TYPETREE_WRAPPER: return 1;
	default: return 0;
	}
}

static bool is_integer(const struct check *check, uint32_t part)
{
	uint8_t kind = check->nodes[check->parts[part].node].kind;

	return kind == SHIM_TYPE_UNSIGNED || kind == SHIM_TYPE_SIGNED ||
	       kind == SHIM_TYPE_BOOL;
}

static bool is_part_valid(const struct check *check, uint32_t node,
			  const struct shim_typetree_part *part)
{
	const struct shim_typetree_node *inner;

	if (part->name >= check->tree->text_size)
		return false;
	if (check->nodes[node].kind == SHIM_TYPE_ENUM)
		return true;
	if (!is_later_node(check, node, part->node) || part->bit > 7 ||
	    part->bits > 64)
		return false;
	inner = &check->nodes[part->node];
	return part->bits == 0 || inner->kind == SHIM_TYPE_ENUM ||
	       (inner->kind >= SHIM_TYPE_BOOL &&
		inner->kind <= SHIM_TYPE_UNSIGNED);
}

/* The characters of a short string are inside the value. */
static bool is_short_text_valid(const struct check *check,
				const struct shim_typetree_node *node)
{
	const struct shim_typetree_part *size = &check->parts[node->first + 2];
	const struct shim_typetree_part *text = size + 1;

	return is_integer(check, node->first + 2) &&
	       check->nodes[size->node].size == 1 && size->value == 0 &&
	       text->value > 0 && (uint64_t)text->value <= node->size;
}

static bool is_node_valid(const struct check *check, uint32_t index)
{
	const struct shim_typetree_node *node = &check->nodes[index];
	uint32_t needed = parts_of_form(node->form);

	if (!is_kind_valid(node) || node->name >= check->tree->text_size ||
	    node->form > SHIM_TYPETREE_SHORT_TEXT || node->count < needed ||
	    node->first > check->tree->part_count ||
	    node->count > check->tree->part_count - node->first ||
	    (node->inner && !is_later_node(check, index, node->inner)))
		return false;
	for (uint32_t i = 0; i < node->count; i++)
		if (!is_part_valid(check, index,
				   &check->parts[node->first + i]))
			return false;
	if (node->form == SHIM_TYPETREE_SEQUENCE &&
	    (!node->inner || check->nodes[node->inner].size == 0))
		return false;
	if (node->form == SHIM_TYPETREE_SHORT_TEXT)
		return is_integer(check, node->first + 1) &&
		       is_short_text_valid(check, node);
	return (node->form != SHIM_TYPETREE_TEXT &&
		node->form != SHIM_TYPETREE_OPTIONAL) ||
	       is_integer(check, node->first + 1);
}

bool print_is_valid(const struct shim_typetree *tree, size_t size)
{
	struct check check = { .tree = tree };
	uint64_t needed;

	if (size < sizeof(*tree) || tree->size > size || tree->size % 8 != 0 ||
	    tree->node_count == 0 ||
	    tree->node_count > SHIM_TYPETREE_NODES_MAX ||
	    tree->part_count > SHIM_TYPETREE_PARTS_MAX ||
	    tree->text_size == 0 || tree->text_size > SHIM_TYPETREE_TEXT_MAX)
		return false;
	needed = sizeof(*tree) +
		 tree->node_count * sizeof(struct shim_typetree_node) +
		 tree->part_count * sizeof(struct shim_typetree_part) +
		 tree->text_size;
	if (needed > tree->size)
		return false;
	check.nodes = shim_typetree_nodes(tree);
	check.parts = shim_typetree_parts(tree);
	if (shim_typetree_text(tree)[0] != '\0' ||
	    shim_typetree_text(tree)[tree->text_size - 1] != '\0')
		return false;
	for (uint32_t i = 0; i < tree->node_count; i++)
		if (!is_node_valid(&check, i))
			return false;
	return true;
}
