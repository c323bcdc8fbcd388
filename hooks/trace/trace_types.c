/*
 * Describes the types of values in traces.  The process has one file for them,
 * N.values.  When a function's arguments or result are first read, the file gets their
 * description and their types.  That happens off the fast path, with a lock and with
 * signals blocked.  The number of a function finds its descriptions.
 */
#include "trace/trace.h"

#include <shim/info.h>
#include <shim/typetree.h>

#include <shim/banned.h>

#define TYPES	  4096
#define TREE_MAX  16384 /* bytes of a type */
#define RAW_MAX	  64	/* bytes of a value */
#define NAME_SIZE 256
#define PIECE	  65536 /* of private memory */

struct described_type {
	shim_type type;
	uint32_t number; /* 0: its values are text */
	uint32_t size;
	enum trace_way way;
};

static struct {
	struct shim_record *record;
	char *at, *end; /* the free part of the last chunk */
	uint32_t type_numbers, list_numbers;
	uint32_t type_count; /* of types */
	uint32_t lock;
	uint64_t retry_clock; /* the time of the next try for memory */
} values_file;

static struct described_type *types;

/* The descriptions, in memory that is never freed. */
static char *piece, *piece_end;

/* --- room --- */

/* Reserves memory for an entry.  The entry becomes visible with its first word, which
 * is stored last. */
static void *find_room(size_t size)
{
	enum shim_lost cause;
	size_t got = 0;
	void *memory = NULL;

	if ((size_t)(values_file.end - values_file.at) >= size)
		return values_file.at;
	/* A try makes system calls, so not every call tries. */
	if (now() < values_file.retry_clock)
		return NULL;
	if (!values_file.record)
		values_file.record = shim_record_open(SHIM_VALUES_KIND, &memory,
						      &got, &cause);
	if (values_file.record && got < size)
		memory = shim_record_grow(values_file.record, size, &got,
					  &cause);
	if (!memory || got < size) {
		values_file.retry_clock = now() + 20000 * tree_long_clock;
		return NULL;
	}
	values_file.at = memory;
	values_file.end = values_file.at + got;
	return values_file.at;
}

static void publish(uint32_t *kind, uint32_t value, uint32_t size)
{
	__atomic_store_n(kind, value, __ATOMIC_RELEASE);
	values_file.at += size;
}

static void clear_bytes(char *memory, size_t size)
{
	for (size_t i = 0; i < size; i++)
		memory[i] = '\0';
}

static uint32_t round_up(uint32_t size)
{
	return (size + 7) & ~7u;
}

static void *store_copy(const void *from, size_t size)
{
	char *kept;

	if ((size_t)(piece_end - piece) < size) {
		piece = shim_memory_map(PIECE);
		piece_end = piece ? piece + PIECE : NULL;
	}
	if (!piece)
		return NULL;
	kept = piece;
	piece += round_up((uint32_t)size);
	for (size_t i = 0; i < size; i++)
		kept[i] = ((const char *)from)[i];
	return kept;
}

/* --- types --- */

static bool leads_to_text(const struct shim_typetree *tree)
{
	const struct shim_typetree_node *node = shim_typetree_nodes(tree);
	const struct shim_typetree_node *inner = &node[node->inner];

	return node->inner && inner->size == 1 &&
	       (inner->kind == SHIM_TYPE_CHARACTER ||
		inner->kind == SHIM_TYPE_SIGNED ||
		inner->kind == SHIM_TYPE_UNSIGNED);
}

static enum trace_way way_of(const struct shim_typetree *tree)
{
	const struct shim_typetree_node *node = shim_typetree_nodes(tree);

	if (node->kind == SHIM_TYPE_POINTER &&
	    node->form == SHIM_TYPETREE_PLAIN &&
	    node->size == sizeof(uintptr_t) && !leads_to_text(tree))
		return TRACE_POINTER;
	return node->size > 0 && node->size <= RAW_MAX &&
			       shim_typetree_is_plain(tree) ?
		       TRACE_RAW :
		       TRACE_TEXT;
}

/* Sets @described except its type.  False without memory. */
static bool describe_type(struct described_type *described)
{
	struct shim_value_type *entry;
	const struct shim_typetree *tree;
	uint32_t size, total = 0;

	described->way = TRACE_TEXT;
	if (shim_get_type_tree(described->type, 0, &total, NULL) != SHIM_OK ||
	    total > TREE_MAX)
		return true;
	size = round_up((uint32_t)sizeof(*entry) + total);
	entry = find_room(size);
	if (!entry)
		return false;
	tree = (const struct shim_typetree *)(entry + 1);
	shim_get_type_tree(described->type, total, NULL, entry + 1);
	described->way = way_of(tree);
	described->size = (uint32_t)shim_typetree_nodes(tree)->size;
	if (described->way == TRACE_TEXT) {
		clear_bytes((char *)entry, size);
		return true;
	}
	entry->size = size;
	entry->number = described->number = ++values_file.type_numbers;
	publish(&entry->kind, SHIM_VALUES_KIND_TYPE, size);
	return true;
}

static bool find_type(shim_type type, struct described_type *described)
{
	for (uint32_t i = 0; i < values_file.type_count; i++)
		if (types[i].type == type) {
			*described = types[i];
			return true;
		}
	*described = (struct described_type){ .type = type };
	if (!types)
		types = shim_memory_map(TYPES * sizeof(*types));
	/* Values of types that cannot be stored are text. */
	if (!types || values_file.type_count == TYPES)
		return true;
	if (!describe_type(described))
		return false;
	types[values_file.type_count++] = *described;
	return true;
}

/* --- lists --- */

static enum shim_result ask_arguments(struct trace_values *list)
{
	enum shim_result r;
	uint32_t count;

	r = shim_get_parameter_count(list->function, &count);
	if (r != SHIM_OK)
		return r;
	list->has_more = count > SHIM_VALUES_MAX;
	list->count = list->has_more ? SHIM_VALUES_MAX : count;
	for (uint32_t i = 0; i < list->count && r == SHIM_OK; i++)
		r = shim_get_parameter_info(
			list->function, i, &list->value[i].type, 0, NULL, NULL);
	return r;
}

static enum shim_result ask_result(struct trace_values *list)
{
	enum shim_type_kind kind = SHIM_TYPE_VOID;
	enum shim_result r = shim_get_result_type(list->function,
						  &list->value[0].type);

	if (r == SHIM_OK)
		r = shim_get_type_info(list->value[0].type, &kind, NULL, 0,
				       NULL, NULL);
	list->count = kind != SHIM_TYPE_VOID;
	return r;
}

/* Adds the parameter's name at @entry's end.  Returns its offset; 0 without a name. */
static uint32_t add_name(struct shim_value_list *entry,
			 const struct trace_values *list, uint32_t position)
{
	char *name = (char *)entry + entry->size;
	uint32_t at = entry->size, total = 0;

	if (list->kind != SHIM_VALUES_KIND_ARGUMENTS ||
	    shim_get_parameter_info(list->function, position, NULL, NAME_SIZE,
				    &total, name) != SHIM_OK ||
	    name[0] == '\0')
		return 0;
	entry->size += total < NAME_SIZE ? total : NAME_SIZE;
	return at;
}

static bool write_list(struct trace_values *list, uint32_t function)
{
	uint32_t head = (uint32_t)(sizeof(struct shim_value_list) +
				   list->count * sizeof(struct shim_value));
	struct shim_value_list *entry = find_room(head +
						  list->count * NAME_SIZE + 8);

	if (!entry || values_file.list_numbers == UINT16_MAX)
		return false;
	entry->size = head;
	entry->function = function;
	entry->count = list->count;
	entry->more = list->has_more;
	for (uint32_t i = 0; i < list->count; i++)
		entry->values[i] = (struct shim_value){
			.type = list->value[i].number,
			.name = add_name(entry, list, i),
		};
	entry->size = round_up(entry->size);
	entry->number = list->number = ++values_file.list_numbers;
	publish(&entry->kind, list->kind, entry->size);
	return true;
}

/* Writes the description and its types to the file; False without memory. */
static bool write_all(struct trace_values *list, uint32_t function)
{
	struct described_type described;

	for (uint32_t i = 0; i < list->count; i++) {
		if (!find_type(list->value[i].type, &described))
			return false;
		list->value[i].number = described.number;
		list->value[i].size = described.size;
		list->value[i].way = described.way;
	}
	return write_list(list, function);
}

/* Another thread may have described the function first. */
static const struct trace_values *
write_and_keep(struct trace_values *draft, uint32_t number,
	       const struct trace_values **place)
{
	const struct trace_values *kept;

	kept = __atomic_load_n(place, __ATOMIC_ACQUIRE);
	if (kept && kept != &trace_undescribed)
		return kept;
	if (!write_all(draft, number))
		return draft;
	kept = store_copy(draft,
			  sizeof(*draft) - sizeof(draft->value) +
				  draft->count * sizeof(draft->value[0]));
	if (kept)
		__atomic_store_n(place, kept, __ATOMIC_RELEASE);
	return kept ? kept : draft;
}

const struct trace_values trace_undescribed;

const struct trace_values *trace_describe(struct trace_values *draft,
					  shim_function function, uint32_t kind,
					  uint32_t number,
					  const struct trace_values **place)
{
	const struct trace_values *list = draft;
	uint64_t signals;

	*draft = (struct trace_values){ .function = function, .kind = kind };
	draft->result = kind == SHIM_VALUES_KIND_RESULT ? ask_result(draft) :
							  ask_arguments(draft);
	if (draft->result != SHIM_OK || !place)
		return draft;
	signals = shim_signals_block();
	while (__atomic_exchange_n(&values_file.lock, 1, __ATOMIC_ACQUIRE))
		;
	list = write_and_keep(draft, number, place);
	__atomic_store_n(&values_file.lock, 0, __ATOMIC_RELEASE);
	shim_signals_restore(signals);
	return list;
}

/* The file belongs to the parent, and another thread may have held the lock. */
void trace_types_restart(void)
{
	__builtin_memset(&values_file, 0, sizeof(values_file));
}
