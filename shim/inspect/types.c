/*
 * Stores types and names from debug information for the life of the process.  Equal
 * types are stored once; a hash of the description finds them.
 */
#include "inspect/types.h"

#include "inspect/code_cache.h"
#include "inspect/debuginfo/debuginfo.h"
#include "inspect/info.h"
#include "os/sys.h"
#include "os/text.h"
#include "print/print.h"
#include "runtime/contract.h"
#include "runtime/output.h"
#include "runtime/state.h"

#include <errno.h>

#include <shim/banned.h>

#define CHUNK  1024u
#define CHUNKS 1024u

static uint32_t hash_bytes(const void *memory, size_t size)
{
	const unsigned char *bytes = memory;
	uint64_t hash = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ bytes[i]) * 0x100000001b3ull;
	return (uint32_t)(hash ^ hash >> 32);
}

static bool is_equal(const void *a, const void *b, size_t size)
{
	const unsigned char *x = a, *y = b;

	for (size_t i = 0; i < size; i++)
		if (x[i] != y[i])
			return false;
	return true;
}

static void copy_bytes(void *to, const void *from, size_t size)
{
	for (size_t i = 0; i < size; i++)
		((char *)to)[i] = ((const char *)from)[i];
}

/* --- types: a type is an index + 1 --- */

static const struct shim_typetree **chunks[CHUNKS];
static uint32_t type_count; /* each store publishes one */

const struct shim_typetree *types_find(shim_type type)
{
	uintptr_t index = type - 1;

	if (index >= __atomic_load_n(&type_count, __ATOMIC_ACQUIRE))
		return NULL;
	return chunks[index / CHUNK][index % CHUNK];
}

static shim_type add_type(const struct shim_typetree *tree)
{
	const struct shim_typetree ***chunk =
		&chunks[type_count / CHUNK % CHUNKS];
	struct shim_typetree *kept;

	if (type_count == CHUNK * CHUNKS)
		return 0;
	if (!*chunk)
		*chunk = code_cache_allocate(CHUNK * sizeof(**chunk));
	kept = *chunk ? code_cache_allocate(tree->size) : NULL;
	if (!kept)
		return 0;
	copy_bytes(kept, tree, tree->size);
	(*chunk)[type_count % CHUNK] = kept;
	__atomic_store_n(&type_count, type_count + 1, __ATOMIC_RELEASE);
	return type_count;
}

/* The types by content, with open addressing.  Entries are never removed. */
static struct {
	uint32_t mask;
	uint32_t *types; /* 0: free */
} contents;

static uint32_t *find_content(uint32_t *types, uint32_t mask,
			      const struct shim_typetree *tree)
{
	for (uint32_t i = hash_bytes(tree, tree->size);; i++) {
		uint32_t *place = &types[i & mask];
		const struct shim_typetree *at = types_find(*place);

		if (!at ||
		    (at->size == tree->size && is_equal(at, tree, tree->size)))
			return place;
	}
}

static bool grow_contents(void)
{
	uint32_t room = contents.types ? (contents.mask + 1) * 2 : 1024;
	void *memory;

	if (contents.types && type_count * 2 <= contents.mask)
		return true;
	if (sys_map(room * sizeof(uint32_t), &memory) < 0)
		return false;
	for (uint32_t i = 1; i <= type_count; i++)
		*find_content(memory, room - 1, types_find(i)) = i;
	if (contents.types)
		sys_unmap(contents.types,
			  (contents.mask + 1) * sizeof(uint32_t));
	contents.types = memory;
	contents.mask = room - 1;
	return true;
}

shim_type types_keep(const struct shim_typetree *tree, size_t size)
{
	uint32_t *place;

	ASSERT_LOCKED();
	if (!print_is_valid(tree, size) || !grow_contents())
		return 0;
	place = find_content(contents.types, contents.mask, tree);
	if (*place == 0)
		*place = (uint32_t)add_type(tree);
	return *place;
}

/* --- functions --- */

struct value {
	shim_type type;
	uint32_t name, name_size; /* in the text */
};

struct signature {
	struct code_cache_entry cached; /* @address is also the function */
	enum shim_result result;
	uint32_t value_count;  /* the result, the parameters */
	struct value values[]; /* followed by the text */
};

static struct code_cache signatures;

static const struct signature *find_stored(uintptr_t function)
{
	return (const void *)code_cache_find(&signatures, function, function,
					     0);
}

/* --- making a signature --- */

struct job {
	uintptr_t function;
	uint32_t age; /* the age before the query */
	enum shim_result result;
	/* The answer, and after it room for a draft. */
	char *memory;
	size_t size, room;
	const struct signature *made;
};

static const struct typetree_value *value_at(const struct job *job, size_t at)
{
	return (const struct typetree_value *)(job->memory + at);
}

static uint32_t count_values(const struct job *job, size_t *text_size)
{
	uint32_t count = 0;

	*text_size = 0;
	for (size_t at = 0; at < job->size; at += value_at(job, at)->size) {
		*text_size += value_at(job, at)->name_size;
		count++;
	}
	return count;
}

static bool keep_values(const struct job *job, struct signature *draft)
{
	struct value *value = draft->values;
	char *text = (char *)(value + draft->value_count);
	uint32_t used = 0;

	for (size_t at = 0; at < job->size; at += value_at(job, at)->size) {
		const struct typetree_value *from = value_at(job, at);

		value->type = types_keep(typetree_of(from),
					 from->size - sizeof(*from));
		if (value->type == 0)
			return false;
		value->name = used;
		value->name_size = from->name_size;
		copy_bytes(text + used, typetree_name_of(from),
			   from->name_size);
		used += from->name_size;
		value++;
	}
	return true;
}

static struct signature *make_draft(const struct job *job)
{
	struct signature *draft = (void *)(job->memory + job->size);
	size_t text_size;

	ASSERT_LOCKED();
	draft->cached.address = job->function;
	draft->cached.function = job->function;
	draft->cached.age = job->age;
	draft->result = job->result;
	draft->value_count = count_values(job, &text_size);
	draft->cached.size = (uint32_t)(sizeof(*draft) +
					draft->value_count *
						sizeof(struct value) +
					text_size);
	return keep_values(job, draft) ? draft : NULL;
}

/* State lock held. */
static int store_signature(void *argument)
{
	struct job *job = argument;
	struct signature *draft = make_draft(job);

	ASSERT_LOCKED();
	if (draft)
		job->made = (const void *)code_cache_keep(&signatures,
							  &draft->cached);
	return job->made ? 0 : -ENOMEM;
}

static bool map_memory(struct job *job, size_t size)
{
	void *memory;

	job->room = size * 2 + sizeof(struct signature);
	if (sys_map(job->room, &memory) < 0)
		return false;
	job->memory = memory;
	job->size = size;
	return true;
}

/* The lock of queries is held here, so store_signature() runs later. */
static void keep_answer(const struct debuginfo_answer *answer, void *argument)
{
	struct job *job = argument;

	if (map_memory(job, answer->count))
		copy_bytes(job->memory, answer->data, answer->count);
}

static enum shim_result read_signature(shim_function function,
				       const struct signature **signature)
{
	struct job job = {
		.function = function,
		.age = code_cache_age(),
	};

	job.result = info_ask(HELPER_SIGNATURE, function, keep_answer, &job);
	if (job.result != SHIM_OK && job.result != SHIM_E_FUNCTION_NOT_IL)
		return job.result;
	if (job.result != SHIM_OK)
		map_memory(&job, 0);
	if (!job.memory)
		return SHIM_E_OUTOFMEMORY;
	if (state_call_locked(store_signature, &job) < 0)
		job.result = SHIM_E_OUTOFMEMORY;
	sys_unmap(job.memory, job.room);
	*signature = job.made;
	return job.result;
}

static enum shim_result find_signature(shim_function function,
				       const struct signature **signature)
{
	*signature = find_stored(function);
	return *signature ? (*signature)->result :
			    read_signature(function, signature);
}

/* --- queries of profilers --- */

enum shim_result shim_get_parameter_count(shim_function function,
					  uint32_t *parameter_count)
{
	const struct signature *signature;
	enum shim_result r;

	ENTRY_MAY_BLOCK();
	if (!parameter_count)
		return SHIM_E_INVALIDARG;
	r = find_signature(function, &signature);
	if (r == SHIM_OK)
		*parameter_count = signature->value_count - 1;
	return r;
}

enum shim_result shim_get_parameter_info(shim_function function,
					 uint32_t position, shim_type *type,
					 uint32_t count, uint32_t *total,
					 char *name)
{
	const struct signature *signature;
	const struct value *value;
	enum shim_result r;

	ENTRY_MAY_BLOCK();
	if (!output_is_valid(count, name))
		return SHIM_E_INVALIDARG;
	r = find_signature(function, &signature);
	if (r != SHIM_OK)
		return r;
	if (position >= signature->value_count - 1)
		return SHIM_E_INVALIDARG;
	value = &signature->values[position + 1];
	if (type)
		*type = value->type;
	output_text((const char *)(signature->values + signature->value_count) +
			    value->name,
		    value->name_size, count, total, name);
	return SHIM_OK;
}

enum shim_result shim_get_result_type(shim_function function, shim_type *type)
{
	const struct signature *signature;
	enum shim_result r;

	ENTRY_MAY_BLOCK();
	if (!type)
		return SHIM_E_INVALIDARG;
	r = find_signature(function, &signature);
	if (r == SHIM_OK)
		*type = signature->values[0].type;
	return r;
}

enum shim_result shim_get_type_info(shim_type type, enum shim_type_kind *kind,
				    uint64_t *size, uint32_t count,
				    uint32_t *total, char *name)
{
	const struct shim_typetree_node *node;
	const struct shim_typetree *tree;
	const char *text;

	ENTRY_ASYNC();
	if (!output_is_valid(count, name))
		return SHIM_E_INVALIDARG;
	tree = types_find(type);
	if (!tree)
		return SHIM_E_INVALIDARG;
	node = shim_typetree_nodes(tree);
	if (kind)
		*kind = node->kind;
	if (size)
		*size = node->size;
	text = shim_typetree_text(tree) + node->name;
	output_text(text, text_length(text) + 1, count, total, name);
	return SHIM_OK;
}

enum shim_result shim_get_type_tree(shim_type type, uint32_t count,
				    uint32_t *total, void *tree)
{
	const struct shim_typetree *found;

	ENTRY_ASYNC();
	if (!output_is_valid(count, tree))
		return SHIM_E_INVALIDARG;
	found = types_find(type);
	if (!found)
		return SHIM_E_INVALIDARG;
	output_bytes(found, 1, found->size, count, total, tree);
	return SHIM_OK;
}
