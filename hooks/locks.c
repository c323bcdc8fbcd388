/*
 * The locks profiler: `-p locks`.  Who waits for which lock, for how long, and
 * where its holder was when the waiting began.
 *
 * The path is where the call tree stands, so `-p locks` is calltree:counts as
 * well, if no other was asked for.  A path, a lock and a place of its holder
 * have one node in the file; it says when the wait began that is not over, so
 * that a program that is killed leaves who waited for what.
 *
 * A lock that is free costs nothing here, so nobody notes who takes it.  The
 * waiting thread asks libc for the holder and looks where that one's tree
 * stands.  It may go on meanwhile: if it still holds the lock after that, it
 * was there with it.
 *
 * With `unwind` paths where nothing is instrumented are found by walking the stack;
 * of holders that is not possible.
 */
#include "keyed.h"
#include "unwound.h"

#include <shim/locks.h>

#include <shim/banned.h>

int builtin_start(const char *profile);
int locks_start(const char *arguments);

/* Waits of handlers that have interrupted waits, of which the end is told even
 * if they are left by a jump. */
#define OPEN_MAX 8

struct open {
	uintptr_t frame; /* the wait's struct shim_lock is there */
	struct shim_lock_node *node;
	uint64_t began;
};

/* Of a tree. */
struct waits {
	struct keyed_table *table;
	unsigned depth; /* may exceed OPEN_MAX */
	struct open open[OPEN_MAX];
};

/* The note of a wait is its node, and how often the process has forked since
 * its first ancestor: its parent's nodes are not its own. */
#define NOTE_ADDRESS SHIM_NODE_ADDRESS
#define NOTE_SHIFT 48

static uint64_t generation;
static bool unwinds;		/* where no call is instrumented */

/* --- finding the node --- */

/* Its library may never have been heard of.  Those that are in no image at all cost
 * most, so there is an end to it. */
static void note_image(uint64_t lock)
{
	static unsigned noted;

	if (noted < 1000) {
		noted++;
		shim_image_note(lock);
	}
}

static bool has_waits(struct tree *tree)
{
	struct waits *waits, *none = NULL;

	if (tree->waits)
		return true;
	waits = shim_memory_map(sizeof(*waits));
	if (!waits) {
		tree->lost_cause = SHIM_LOST_MEMORY;
		return false;
	}
	/* A handler may have been faster. */
	__atomic_compare_exchange_n(&tree->waits, &none, waits, false,
				    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
	return true;
}

/* NULL: there is no room for it, and it is lost. */
static struct shim_lock_node *find_node(struct place *at,
					const struct shim_lock *lock,
					const struct shim_node *holder)
{
	uint64_t key[KEYED_WORDS] = { 0, lock->address, (uint64_t)holder,
				      lock->kind };
	struct shim_node *caller = tree_find_caller(
		at, (uintptr_t)__builtin_frame_address(0));
	struct keyed_node *node = NULL;

	if (!caller) {
		shim_record_lost_other(SHIM_LOST_WAITS, tree_hot.cause, 1);
		return NULL;
	}
	if (unwinds && is_root(caller))
		caller = unwound_find(at->tree, caller);
	key[0] = (uint64_t)caller;
	if (caller && has_waits(at->tree)) {
		node = keyed_find(at->tree->waits->table, key);
		if (!node) {
			note_image(lock->address);
			node = keyed_make(&at->tree->waits->table, at->tree,
					  key, sizeof(struct shim_lock_node),
					  SHIM_NODE_LOCK);
		}
	}
	if (!node)
		shim_record_lost_other(SHIM_LOST_WAITS, at->tree->lost_cause, 1);
	return (struct shim_lock_node *)node;
}

/* --- who holds it --- */

static const struct shim_node *find_holder(const struct shim_lock *lock)
{
	const struct shim_node *node;
	const struct tree *tree;
	uint32_t tid, still;

	if (shim_lock_holder(lock, &tid) != SHIM_OK)
		return NULL;
	tree = tree_of_task(tid);
	node = tree ? tree_look_at(tree) : NULL;
	if (shim_lock_holder(lock, &still) != SHIM_OK || still != tid)
		return NULL;
	return node;
}

/* --- waiting --- */

static void raise_max(struct shim_lock_node *node, uint64_t time)
{
	uint64_t max = node->max;

	while (time > max &&
	       !shim_local_cas(&node->max, (void *)max, (void *)time))
		max = node->max;
}

static void end_wait(struct shim_lock_node *node, uint64_t began,
		     uint64_t ended, bool failed)
{
	uint64_t time = ended > began ? ended - began : 0;

	shim_local_add(&node->time, time);
	raise_max(node, time);
	if (failed)
		shim_local_add(&node->failures, 1);
	if (node->start == began)
		node->start = 0;
}

static void begin_open(struct waits *waits, const struct shim_lock *lock,
		       struct shim_lock_node *node)
{
	unsigned depth = waits->depth;

	if (depth < OPEN_MAX)
		waits->open[depth] =
			(struct open){ (uintptr_t)lock, node, lock->began };
	waits->depth = depth + 1;
}

/* Those that began after it have been left. */
static void end_open(struct waits *waits, const struct shim_lock *lock)
{
	while (waits->depth > 0) {
		unsigned last = --waits->depth;
		const struct open *open = &waits->open[last];

		if (last >= OPEN_MAX)
			return;
		if (open->frame == (uintptr_t)lock)
			return;
		end_wait(open->node, open->began, lock->ended, true);
	}
}

static void on_contention(struct shim_profiler *profiler,
			  struct shim_lock *lock)
{
	const struct shim_node *holder = find_holder(lock);
	struct shim_lock_node *node;
	struct place at;

	(void)profiler;
	node = find_node(&at, lock, holder);
	if (!node)
		return;
	shim_local_add(&node->waits, 1);
	node->start = lock->began;
	lock->note = (uint64_t)node | generation << NOTE_SHIFT;
	begin_open(at.tree->waits, lock, node);
}

static struct tree *mine(void)
{
	return tree_hot.shared ? tree_of_task(shim_thread_id()) : tree_hot.tree;
}

static void end(struct shim_lock *lock, bool failed)
{
	struct shim_lock_node *node =
		(struct shim_lock_node *)(lock->note & NOTE_ADDRESS);
	struct tree *tree = mine();

	/* It was lost, or is the parent's. */
	if (!node || lock->note >> NOTE_SHIFT != generation)
		return;
	if (tree && tree->waits)
		end_open(tree->waits, lock);
	end_wait(node, lock->began, lock->ended, failed);
}

static void on_acquired(struct shim_profiler *profiler, struct shim_lock *lock)
{
	(void)profiler;
	end(lock, false);
}

static void on_failed(struct shim_profiler *profiler, struct shim_lock *lock)
{
	struct shim_lock_node *node;
	struct place at;

	(void)profiler;
	if (lock->began) {
		end(lock, true);
		return;
	}
	node = find_node(&at, lock, NULL);
	if (node)
		shim_local_add(&node->refusals, 1);
}

/* --- waits that are left otherwise --- */

/* Those of the stack of @sp whose frames lie below it; 0: all. */
static void leave(uintptr_t sp)
{
	struct tree *tree = mine();
	struct waits *waits = tree ? tree->waits : NULL;
	const struct stack *stack;

	if (!waits || waits->depth == 0)
		return;
	stack = sp ? tree_known_stack(tree, sp) : NULL;
	if (sp && !stack)
		return;
	while (waits->depth > 0) {
		const struct open *open = &waits->open[waits->depth - 1];

		if (waits->depth <= OPEN_MAX) {
			if (sp && (open->frame >= sp ||
				   !contains(stack, open->frame)))
				return;
			end_wait(open->node, open->began, now(), true);
		}
		waits->depth--;
	}
}

static void on_jump_taken(struct shim_profiler *profiler, const void *buffer,
			  uintptr_t sp)
{
	(void)profiler;
	(void)buffer;
	if (sp)
		leave(sp);
}

static void on_frames_unwound(struct shim_profiler *profiler, uintptr_t sp)
{
	(void)profiler;
	leave(sp);
}

static void on_thread_ended(struct shim_profiler *profiler)
{
	(void)profiler;
	leave(0);
}

/* The parent's nodes are the parent's; the child has a tree of its own. */
static void on_forked(struct shim_profiler *profiler)
{
	(void)profiler;
	generation = (generation + 1) & 0xffff;
}

static void on_image_unloaded(struct shim_profiler *profiler, uintptr_t low,
			      uintptr_t high, uint32_t gone)
{
	(void)profiler;
	for (struct tree *tree = __atomic_load_n(&trees, __ATOMIC_ACQUIRE);
	     tree; tree = tree->next)
		if (tree->waits)
			keyed_image_gone(tree->waits->table, 1, low, high,
					 gone);
}

int locks_start(const char *arguments)
{
	struct shim_profiler_handle *handle;

	if (!unwound_read_arguments(arguments, &unwinds))
		return -1;
	/* 1: it runs already, as it was asked for. */
	builtin_start("calltree:counts");
	handle = shim_profiler_create(NULL);
	if (!handle || shim_profiler_enable_locks(handle) != SHIM_OK)
		return -1;
	shim_profiler_on_lock_contention(handle, on_contention);
	shim_profiler_on_lock_acquired(handle, on_acquired);
	shim_profiler_on_lock_failed(handle, on_failed);
	shim_profiler_on_jump_taken(handle, on_jump_taken);
	shim_profiler_on_frames_unwound(handle, on_frames_unwound);
	shim_profiler_on_thread_ended(handle, on_thread_ended);
	shim_profiler_on_forked(handle, on_forked);
	shim_profiler_on_image_unloaded(handle, on_image_unloaded);
	return 0;
}
