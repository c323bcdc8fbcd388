/*
 * The exceptions profiler: `-p exceptions`.  It records exceptions by type, with the
 * paths that throw and catch them.
 *
 * Paths come from the call tree, so calls are counted as well, even without calltree.
 * An exception is counted in the path that throws it.  The thread recognizes the
 * exception by its object.  When the exception is caught, the thread counts it for both
 * paths.  The throwing path is unknown for exceptions from another thread and from
 * std::rethrow_exception.  With `unwind`, the unwinder finds paths where no function is
 * instrumented.
 */
#include "path/node_map.h"
#include "path/path_unwind.h"
#include "path/needs.h"
#include "path/threads.h"

#include "options/start.h"

#include <shim/banned.h>

/* The number of exceptions in flight in one thread: thrown during the unwinding for
 * others, or never caught.  A new exception replaces the oldest one. */
#define FLYING 16

struct flying {
	const void *object; /* NULL: none */
	uint64_t node, type;
};

static unsigned slot; /* of trees */
static bool unwinds;  /* the option unwind */

/* The exceptions of a tree.  Types are found by the address of their std::type_info. */
struct throws {
	struct node_map *table;
	struct node_map *types;
	unsigned next;
	bool landed; /* the last exception has a frame that catches it */
	struct flying flying[FLYING];
};

static struct throws *throws_of(struct tree *tree)
{
	struct throws *throws = tree->slot[slot];
	void *none = NULL;

	if (throws)
		return throws;
	throws = shim_memory_map(sizeof(*throws));
	if (!throws) {
		tree->lost_cause = SHIM_LOST_MEMORY;
		return NULL;
	}
	if (!__atomic_compare_exchange_n(&tree->slot[slot], &none,
					 (void *)throws, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return none;
	return throws;
}

/* --- types --- */

/* The name follows the pointer to the virtual functions.  A leading * means that names
 * are compared by their addresses. */
static const char *name_of(const void *type)
{
	const char *name = ((const char *const *)type)[1];

	return name && *name == '*' ? name + 1 : name;
}

static uint32_t length_of(const char *name)
{
	uint32_t size = 0;

	while (name[size] && size <= SHIM_TYPE_TEXT)
		size++;
	return size;
}

static uint64_t write_type(struct tree *tree, struct throws *throws,
			   const uint64_t key[NODE_MAP_WORDS], const char *name)
{
	uint32_t size = length_of(name);
	bool is_cut = size > SHIM_TYPE_TEXT;
	struct shim_type_node *node;

	if (is_cut)
		size = SHIM_TYPE_TEXT;
	node = (struct shim_type_node *)node_map_add(
		&throws->types, tree, key,
		(sizeof(*node) + size + 63) & ~(size_t)63, 0);
	if (!node)
		return 0;
	for (uint32_t i = 0; i < size; i++)
		node->text[i] = name[i];
	node->text_size = size;
	node->is_cut = is_cut;
	__atomic_store_n(&node->function, SHIM_NODE_TYPE, __ATOMIC_RELEASE);
	return (uint64_t)node;
}

/* The node of @type; 0 without memory. */
static uint64_t find_type(struct tree *tree, struct throws *throws,
			  const void *type)
{
	uint64_t key[NODE_MAP_WORDS] = { (uint64_t)type, 0, 0, 0 };
	struct map_node *found;

	if (!type || !name_of(type))
		return 0;
	found = node_map_find(throws->types, key);
	return found ? (uint64_t)found :
		       write_type(tree, throws, key, name_of(type));
}

/* --- counting --- */

/* Counts an exception.  False without memory; then the exception counts as lost. */
static bool count_exception(struct tree *tree, struct throws *throws,
			    uint64_t node, uint64_t type, uint64_t catcher)
{
	uint64_t key[NODE_MAP_WORDS] = { node, type, catcher, 0 };
	struct shim_throw_node *found = (struct shim_throw_node *)node_map_find(
		throws->table, key);

	if (!found)
		found = (struct shim_throw_node *)node_map_add(
			&throws->table, tree, key, sizeof(*found),
			SHIM_NODE_THROW);
	if (!found) {
		shim_record_lost_other(SHIM_LOST_EXCEPTIONS, tree->lost_cause,
				       1);
		return false;
	}
	shim_local_add(&found->count, 1);
	return true;
}

/* The current node of the calling thread; NULL if the thread has no tree; then the
 * exception counts as lost. */
static struct shim_node *find_here(struct place *at, struct throws **throws)
{
	struct shim_node *node = tree_find_caller(
		at, (uintptr_t)__builtin_frame_address(0));

	if (node && unwinds && is_root(node)) {
		node = path_unwind(at->tree, node);
		if (!node)
			tree_hot.cause = at->tree->lost_cause;
	}
	*throws = node ? throws_of(at->tree) : NULL;
	if (*throws)
		return node;
	shim_record_lost_other(SHIM_LOST_EXCEPTIONS,
			       node ? at->tree->lost_cause : tree_hot.cause, 1);
	return NULL;
}

static struct flying *find_flying(struct throws *throws, const void *object)
{
	for (unsigned i = 0; object && i < FLYING; i++)
		if (throws->flying[i].object == object)
			return &throws->flying[i];
	return NULL;
}

static struct flying *take_flying(struct throws *throws, const void *object)
{
	struct flying *flying = find_flying(throws, object);

	for (unsigned i = 0; !flying && i < FLYING; i++)
		if (!throws->flying[i].object)
			flying = &throws->flying[i];
	return flying ? flying : &throws->flying[throws->next++ % FLYING];
}

static void on_throw(struct shim_profiler *profiler, const void *exception,
		     const void *type)
{
	struct throws *throws;
	struct shim_node *node;
	uint64_t its_type;
	struct place at;

	(void)profiler;
	node = find_here(&at, &throws);
	if (!node)
		return;
	its_type = find_type(at.tree, throws, type);
	if (!count_exception(at.tree, throws, (uint64_t)node, its_type, 0) ||
	    !exception)
		return;
	throws->landed = false;
	*take_flying(throws, exception) = (struct flying){ exception,
							   (uint64_t)node,
							   its_type };
}

static void on_caught(struct shim_profiler *profiler, const void *exception)
{
	struct flying flying = { 0 }, *found;
	struct shim_node *node;
	struct throws *throws;
	struct place at;

	(void)profiler;
	node = find_here(&at, &throws);
	if (!node)
		return;
	found = find_flying(throws, exception);
	/* The C++ library catches an exception without a handler to end the program. */
	if (found && !throws->landed)
		return;
	if (found) {
		flying = *found;
		found->object = NULL;
	}
	count_exception(at.tree, throws, flying.node, flying.type,
			(uint64_t)node);
}

static void on_frames_unwound(struct shim_profiler *profiler, uintptr_t sp)
{
	struct tree *tree = tree_own();
	struct throws *throws = tree ? tree->slot[slot] : NULL;

	(void)profiler;
	(void)sp;
	if (throws)
		throws->landed = true;
}

/* Another library may be loaded at the addresses of the types, so they are marked. */
static void on_image_unloaded(struct shim_profiler *profiler, uintptr_t low,
			      uintptr_t high, uint32_t generation)
{
	(void)profiler;
	for (struct tree *tree = __atomic_load_n(&trees, __ATOMIC_ACQUIRE);
	     tree; tree = tree->next) {
		const struct throws *throws = tree->slot[slot];

		if (throws)
			node_map_image_gone(throws->types, 0, low, high,
					    generation);
	}
}

static void take_option(enum option_name name, const struct option_value *value)
{
	(void)value;
	unwinds = name == OPTION_exceptions_UNWIND;
}

static struct shim_profiler_handle *handle;

static bool record_exceptions(bool is_on)
{
	if (is_on && !tree_return_paths("exceptions"))
		return false;
	shim_profiler_on_exception_throw(handle, is_on ? on_throw : NULL);
	shim_profiler_on_exception_catcher_enter(handle,
						 is_on ? on_caught : NULL);
	if (!is_on)
		tree_leave_paths();
	return true;
}

static bool start_exceptions(void)
{
	slot = path_add_slot();
	if (!tree_need_paths("exceptions"))
		return false;
	handle = shim_profiler_create(NULL);
	if (!handle)
		return false;
	shim_profiler_on_exception_throw(handle, on_throw);
	shim_profiler_on_exception_catcher_enter(handle, on_caught);
	shim_profiler_on_frames_unwound(handle, on_frames_unwound);
	shim_profiler_on_image_unloaded(handle, on_image_unloaded);
	return true;
}

BUILTIN(exceptions, take_option, start_exceptions, .begin = tree_begin,
	.record = record_exceptions, .is_too_late = tree_paths_are_too_late);
