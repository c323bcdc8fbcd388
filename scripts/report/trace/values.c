/*
 * Reads the types in a process's N.values, and formats recorded values with
 * them, as the program would have.  The content is not trusted: each type is
 * checked before a value is printed with it, and a value without a type is
 * unknown.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <shim/format.h>

#include "base/memory.h"
#include "base/messages.h"
#include "read/files.h"
#include "trace/trace.h"
#include "trace/value_text.h"
#include "trace/values.h"

#define NUMBERS_MAX 65536u
#define UNKNOWN	    "<unknown>"

struct value_type {
	const void *tree; /* NULL: unknown */
	uint32_t value_size;
};

struct value_table {
	struct value_type *types;
	const struct shim_value_list **lists;
	uint32_t type_count, type_room, list_count, list_room;
	void **chunks; /* copies: the program may still write */
	uint32_t chunk_count, chunk_room;
};

/* --- the file --- */

static bool add_type(struct value_table *table, const unsigned char *at,
		     uint32_t size)
{
	struct shim_value_type entry;
	struct value_type type = { .tree = at + sizeof(entry) };

	memcpy(&entry, at, sizeof(entry));
	if (entry.number == 0 || entry.number >= NUMBERS_MAX ||
	    !value_is_valid(type.tree, size - sizeof(entry), &type.value_size))
		return false;
	while (table->type_count <= entry.number) {
		GROW(table->types, table->type_count, table->type_room);
		table->types[table->type_count++] = (struct value_type){
			.tree = NULL
		};
	}
	table->types[entry.number] = type;
	return true;
}

/* Names end in it. */
static bool is_list_valid(const struct shim_value_list *list, uint32_t size)
{
	uint32_t names, i;

	if (size < sizeof(*list) || list->number == 0 ||
	    list->number >= NUMBERS_MAX || list->count > SHIM_VALUES_MAX)
		return false;
	names = (uint32_t)(sizeof(*list) + list->count * sizeof(*list->values));
	if (names > size)
		return false;
	for (i = 0; i < list->count; i++) {
		uint32_t name = list->values[i].name;

		if (name &&
		    (name < names || name >= size ||
		     !memchr((const char *)list + name, '\0', size - name)))
			return false;
	}
	return true;
}

static bool add_list(struct value_table *table, const unsigned char *at,
		     uint32_t size)
{
	const struct shim_value_list *list = (const void *)at;

	if (!is_list_valid(list, size))
		return false;
	while (table->list_count <= list->number) {
		GROW(table->lists, table->list_count, table->list_room);
		table->lists[table->list_count++] = NULL;
	}
	table->lists[list->number] = list;
	return true;
}

/* @head is the common header of all entries. */
static bool add_entry(struct value_table *table, const unsigned char *at,
		      const struct shim_value_type *head)
{
	switch (head->kind) {
	case SHIM_VALUES_KIND_TYPE: return add_type(table, at, head->size);
	case SHIM_VALUES_KIND_ARGUMENTS:
	case SHIM_VALUES_KIND_RESULT: return add_list(table, at, head->size);
	default: return true;
	}
}

static void read_chunk(struct value_table *table, const char *name,
		       const unsigned char *chunk, uint64_t size,
		       uint64_t offset)
{
	struct shim_value_type entry;
	uint64_t at;

	for (at = 0; at + sizeof(entry) <= size; at += entry.size) {
		memcpy(&entry, chunk + at, sizeof(entry));
		if (entry.kind == 0)
			return;
		if (entry.size < sizeof(entry) || entry.size % 8 ||
		    entry.size > size - at) {
			warn("%s: at offset %" PRIu64 ": not a description of "
			     "values; the rest is unknown",
			     name, offset + at);
			return;
		}
		if (!add_entry(table, chunk + at, &entry))
			warn("%s: at offset %" PRIu64 ": a damaged description "
			     "of values: they are unknown",
			     name, offset + at);
	}
}

/* The used size of a chunk, up to damage that ends it. */
static uint64_t find_end(const unsigned char *chunk, uint64_t size)
{
	struct shim_value_type entry;
	uint64_t at = 0;

	while (at + sizeof(entry) <= size) {
		memcpy(&entry, chunk + at, sizeof(entry));
		if (entry.kind == 0)
			return at;
		if (entry.size < sizeof(entry) || entry.size > size - at)
			return at + sizeof(entry);
		at += entry.size;
	}
	return at < size ? at : size;
}

void trace_values_read(struct trace *trace, uint32_t process, const char *name,
		       const unsigned char *data, uint64_t size,
		       const struct shim_file *header)
{
	struct value_table *table = allocate(1, sizeof(*table));
	struct shim_chunk chunks[SHIM_FILE_CHUNKS];
	uint32_t i, count = read_chunks(name, size, header, chunks);

	trace->values[process] = table;
	for (i = 0; i < count; i++) {
		const unsigned char *chunk = data + chunks[i].offset;
		uint64_t used = find_end(chunk, chunks[i].size);
		void *copy = allocate(used, 1);

		memcpy(copy, chunk, used);
		GROW(table->chunks, table->chunk_count, table->chunk_room);
		table->chunks[table->chunk_count++] = copy;
		read_chunk(table, name, copy, used, chunks[i].offset);
	}
}

void trace_values_close(struct value_table *table)
{
	uint32_t i;

	if (!table)
		return;
	for (i = 0; i < table->chunk_count; i++)
		free(table->chunks[i]);
	free(table->chunks);
	free(table->types);
	free(table->lists);
	free(table);
}

/* --- records --- */

struct values {
	const struct value_table *table;
	const unsigned char *at, *end; /* offset in the record */
	char *text, *text_end;
	bool is_known; /* all of it */
};

static void append_text(struct values *values, const char *text, size_t size)
{
	size_t room = (size_t)(values->text_end - values->text);

	if (size > room)
		size = room;
	memcpy(values->text, text, size);
	values->text += size;
	*values->text = '\0';
}

static void add_string(struct values *values, const char *text)
{
	append_text(values, text, strlen(text));
}

static bool add_unknown(struct values *values)
{
	add_string(values, UNKNOWN);
	values->is_known = false;
	return false;
}

static bool add_raw(struct values *values, uint32_t number)
{
	const struct value_table *table = values->table;
	size_t room = (size_t)(values->text_end - values->text) + 1;
	_Alignas(16) unsigned char value[VALUE_SIZE_MAX];
	const struct value_type *type;

	if (number >= table->type_count || !table->types[number].tree)
		return add_unknown(values);
	type = &table->types[number];
	if (type->value_size > (size_t)(values->end - values->at))
		return add_unknown(values);
	memcpy(value, values->at, type->value_size);
	values->at += type->value_size;
	value_print(type->tree, value, values->text, room);
	values->text += strlen(values->text);
	return true;
}

static bool add_text(struct values *values)
{
	size_t size;

	if (values->at == values->end)
		return add_unknown(values);
	size = *values->at++;
	if (size > (size_t)(values->end - values->at))
		return add_unknown(values);
	append_text(values, (const char *)values->at, size);
	values->at += size;
	return true;
}

static bool add_missing(struct values *values, unsigned int reason)
{
	const char *text = value_missing_text(reason);

	if (!text)
		return add_unknown(values);
	add_string(values, "<");
	add_string(values, text);
	add_string(values, ">");
	return true;
}

/* false: the values after this one are unknown */
static bool add_value(struct values *values, uint32_t type)
{
	unsigned int how;

	if (values->at == values->end)
		return add_unknown(values);
	how = *values->at++;
	switch (how) {
	case SHIM_VALUE_RAW: return add_raw(values, type);
	case SHIM_VALUE_TEXT: return add_text(values);
	case SHIM_VALUE_CUT: add_string(values, "..."); return false;
	default:
		return how & SHIM_VALUE_MISSING ?
			       add_missing(values, how & ~SHIM_VALUE_MISSING) :
			       add_unknown(values);
	}
}

static void add_list_of(struct values *values,
			const struct shim_value_list *list)
{
	uint32_t i;

	for (i = 0; i < list->count; i++) {
		uint32_t name = list->values[i].name;

		if (i)
			add_string(values, ", ");
		if (name) {
			add_string(values, (const char *)list + name);
			add_string(values, " = ");
		}
		if (!add_value(values, list->values[i].type))
			return;
	}
	if (list->more)
		add_string(values, ", ...");
}

bool trace_values_text(const struct value_table *table,
		       const unsigned char *record, uint32_t size,
		       uint32_t kind, char *text, size_t room,
		       uint32_t *function)
{
	struct shim_trace_values head;
	const struct shim_value_list *list;
	struct values values = {
		.table = table,
		.at = record + sizeof(head),
		.end = record + size,
		.text = text,
		.text_end = text + room - 1,
		.is_known = true,
	};

	*text = '\0';
	*function = 0;
	memcpy(&head, record, sizeof(head));
	list = table && head.description < table->list_count ?
		       table->lists[head.description] :
		       NULL;
	if (!list || list->kind != kind) {
		add_unknown(&values);
	} else {
		*function = list->function;
		add_list_of(&values, list);
	}
	return values.is_known;
}
