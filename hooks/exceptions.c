/*
 * The exceptions profiler: `-p exceptions`.  Which types are thrown where, and where
 * they are caught.
 *
 * Paths are where the call tree stands, so this is calltree:counts as well, if no
 * other was asked for.  An exception is counted in the path that throws it.  It is
 * known by its object until its thread catches it, which counts it for both paths.
 * Where one comes from that another thread threw, or std::rethrow_exception, is not
 * known.  With `unwind` paths where nothing is instrumented are found by walking the
 * stack.
 */
#include "keyed.h"
#include "unwound.h"

#include <shim/banned.h>

int builtin_start(const char *profile);
int exceptions_start(const char *arguments);

/* On their way at once in a thread: thrown while others unwind, or forgotten by who
 * ended the thread.  New ones take the place of the oldest. */
#define FLYING 16

struct flying {
	const void *object;		/* NULL: none */
	uint64_t node, type;
};

static bool unwinds;		/* where no call is instrumented */

/* Of a tree.  Types are found by the address of their std::type_info. */
struct throws {
	struct keyed_table *table;
	struct keyed_table *types;
	unsigned next;
	bool landed;		/* a frame was found for the last one */
	struct flying flying[FLYING];
};

static struct throws *throws_of(struct tree *tree)
{
	struct throws *throws = tree->throws, *none = NULL;

	if (throws)
		return throws;
	throws = shim_memory_map(sizeof(*throws));
	if (!throws) {
		tree->lost_cause = SHIM_LOST_MEMORY;
		return NULL;
	}
	if (!__atomic_compare_exchange_n(&tree->throws, &none, throws, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return none;
	return throws;
}

/* --- types --- */

/* Behind the pointer to its virtual functions; a * in front means that the name is
 * to be compared by its address. */
static const char *name_of(const void *type)
{
	const char *name = ((const char *const *)type)[1];

	return name && *name == '*' ? name + 1 : name;
}

static uint32_t measure(const char *name)
{
	uint32_t size = 0;

	while (name[size] && size <= SHIM_TYPE_TEXT)
		size++;
	return size;
}

static uint64_t write_type(struct tree *tree, struct throws *throws,
			   const uint64_t key[KEYED_WORDS], const char *name)
{
	uint32_t size = measure(name);
	bool is_cut = size > SHIM_TYPE_TEXT;
	struct shim_type_node *node;

	if (is_cut)
		size = SHIM_TYPE_TEXT;
	node = (struct shim_type_node *)keyed_make(
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

/* Its node, or 0. */
static uint64_t find_type(struct tree *tree, struct throws *throws,
			  const void *type)
{
	uint64_t key[KEYED_WORDS] = { (uint64_t)type, 0, 0, 0 };
	struct keyed_node *known;

	if (!type || !name_of(type))
		return 0;
	known = keyed_find(throws->types, key);
	return known ? (uint64_t)known :
		       write_type(tree, throws, key, name_of(type));
}

/* --- counting --- */

/* False: there is no room for it, and it is lost. */
static bool count(struct tree *tree, struct throws *throws, uint64_t node,
		  uint64_t type, uint64_t catcher)
{
	uint64_t key[KEYED_WORDS] = { node, type, catcher, 0 };
	struct shim_throw_node *found =
		(struct shim_throw_node *)keyed_find(throws->table, key);

	if (!found)
		found = (struct shim_throw_node *)keyed_make(
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

/* Where the calling thread is; NULL, and lost: it has no tree. */
static struct shim_node *find_here(struct place *at, struct throws **throws)
{
	struct shim_node *node = tree_find_caller(
		at, (uintptr_t)__builtin_frame_address(0));

	if (node && unwinds && is_root(node)) {
		node = unwound_find(at->tree, node);
		if (!node)
			tree_hot.cause = at->tree->lost_cause;
	}
	*throws = node ? throws_of(at->tree) : NULL;
	if (*throws)
		return node;
	shim_record_lost_other(SHIM_LOST_EXCEPTIONS, node ?
			       at->tree->lost_cause : tree_hot.cause, 1);
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
	if (!count(at.tree, throws, (uint64_t)node, its_type, 0) || !exception)
		return;
	throws->landed = false;
	*take_flying(throws, exception) =
		(struct flying){ exception, (uint64_t)node, its_type };
}

static void on_caught(struct shim_profiler *profiler, const void *exception)
{
	struct flying flying = { 0 }, *known;
	struct shim_node *node;
	struct throws *throws;
	struct place at;

	(void)profiler;
	node = find_here(&at, &throws);
	if (!node)
		return;
	known = find_flying(throws, exception);
	/* What nobody catches the C++ library catches, to end the program. */
	if (known && !throws->landed)
		return;
	if (known) {
		flying = *known;
		known->object = NULL;
	}
	count(at.tree, throws, flying.node, flying.type, (uint64_t)node);
}

static void on_frames_unwound(struct shim_profiler *profiler, uintptr_t sp)
{
	struct tree *tree = tree_hot.shared ? tree_of_task(shim_thread_id()) :
					      tree_hot.tree;

	(void)profiler;
	(void)sp;
	if (tree && tree->throws)
		tree->throws->landed = true;
}

/* Another library may come where the types were. */
static void on_image_unloaded(struct shim_profiler *profiler, uintptr_t low,
			      uintptr_t high, uint32_t generation)
{
	(void)profiler;
	for (struct tree *tree = __atomic_load_n(&trees, __ATOMIC_ACQUIRE);
	     tree; tree = tree->next)
		if (tree->throws)
			keyed_image_gone(tree->throws->types, 0, low, high,
					 generation);
}

int exceptions_start(const char *arguments)
{
	struct shim_profiler_handle *handle;

	if (!unwound_read_arguments(arguments, &unwinds))
		return -1;
	builtin_start("calltree:counts");
	handle = shim_profiler_create(NULL);
	if (!handle)
		return -1;
	shim_profiler_on_exception_throw(handle, on_throw);
	shim_profiler_on_exception_catcher_enter(handle, on_caught);
	shim_profiler_on_frames_unwound(handle, on_frames_unwound);
	shim_profiler_on_image_unloaded(handle, on_image_unloaded);
	return 0;
}
