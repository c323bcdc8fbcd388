/*
 * The locks profiler: `-p locks`.  It records waits for locks by path, their time, and
 * the path of the holder when the wait began.
 *
 * The path comes from the call tree, so calls are counted as well, even without
 * calltree.  Each combination of a path, a lock and a path of its holder has one node
 * in the file.  The node stores the start of an unfinished wait, so the recording of a
 * killed program shows its waits.
 *
 * A free lock costs nothing, because the thread that takes it is not recorded.  The
 * waiting thread asks libc for the holder and reads the current node of the holder's
 * tree.  The holder may run on meanwhile.  If it still holds the lock after the
 * reading, it held the lock at that node.
 *
 * With `unwind`, the unwinder finds the paths of waits where no function is
 * instrumented, but not the paths of holders.
 */
#include "path/node_map.h"
#include "path/path_unwind.h"
#include "path/needs.h"
#include "path/threads.h"
#include "path/times.h"

#include "options/start.h"

#include <shim/locks.h>

#include <shim/banned.h>

/* The number of nested waits (of signal handlers that interrupted a wait) whose end is
 * recorded even if a jump leaves them. */
#define OPEN_MAX 8

struct open {
	uintptr_t frame; /* address of the wait's struct shim_lock */
	struct shim_lock_node *node;
	uint64_t began;
};

/* The waits of a tree. */
struct waits {
	struct node_map *table;
	unsigned depth; /* may exceed OPEN_MAX */
	struct open open[OPEN_MAX];
};

static unsigned slot; /* of trees */

static struct waits *waits_of(const struct tree *tree)
{
	return tree->slot[slot];
}

/* The note of a wait has its node, and the number of recordings that the process and its
 * ancestors had before, whose nodes are invalid. */
#define NOTE_ADDRESS SHIM_NODE_ADDRESS
#define NOTE_SHIFT   48

static uint64_t generation;
static bool unwinds; /* the option unwind */

/* --- finding the node --- */

/* Makes the lock's image known.  The search costs most for locks outside images, so it
 * ends after 1000 locks. */
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
	struct waits *waits;
	void *none = NULL;

	if (waits_of(tree))
		return true;
	waits = shim_memory_map(sizeof(*waits));
	if (!waits) {
		tree->lost_cause = SHIM_LOST_MEMORY;
		return false;
	}
	/* A signal handler may have stored another one first. */
	__atomic_compare_exchange_n(&tree->slot[slot], &none, (void *)waits,
				    false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
	return true;
}

/* The node of the wait; NULL without memory; then the wait counts as lost. */
static struct shim_lock_node *find_node(struct place *at,
					const struct shim_lock *lock,
					const struct shim_node *holder)
{
	uint64_t key[NODE_MAP_WORDS] = { 0, lock->address, (uint64_t)holder,
					 lock->kind };
	struct shim_node *caller = tree_find_caller(
		at, (uintptr_t)__builtin_frame_address(0));
	struct map_node *node = NULL;

	if (!caller) {
		shim_record_lost_other(SHIM_LOST_WAITS, tree_hot.cause, 1);
		return NULL;
	}
	if (unwinds && is_root(caller))
		caller = path_unwind(at->tree, caller);
	key[0] = (uint64_t)caller;
	if (caller && has_waits(at->tree)) {
		node = node_map_find(waits_of(at->tree)->table, key);
		if (!node) {
			note_image(lock->address);
			node = node_map_add(
				&waits_of(at->tree)->table, at->tree, key,
				sizeof(struct shim_lock_node), SHIM_NODE_LOCK);
		}
	}
	if (!node)
		shim_record_lost_other(SHIM_LOST_WAITS, at->tree->lost_cause,
				       1);
	return (struct shim_lock_node *)node;
}

/* --- the holder of a lock --- */

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
		waits->open[depth] = (struct open){ (uintptr_t)lock, node,
						    lock->began };
	waits->depth = depth + 1;
}

/* Ends the wait for @lock, and the waits that began after it, which a jump has left. */
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
	begin_open(waits_of(at.tree), lock, node);
}

static void record_end(struct shim_lock *lock, bool failed)
{
	struct shim_lock_node *node = (struct shim_lock_node *)(lock->note &
								NOTE_ADDRESS);
	struct tree *tree = tree_own();

	/* The wait was lost, or its node belongs to the parent. */
	if (!node || lock->note >> NOTE_SHIFT != generation)
		return;
	if (tree && waits_of(tree))
		end_open(waits_of(tree), lock);
	end_wait(node, lock->began, lock->ended, failed);
}

static void on_acquired(struct shim_profiler *profiler, struct shim_lock *lock)
{
	(void)profiler;
	record_end(lock, false);
}

static void on_failed(struct shim_profiler *profiler, struct shim_lock *lock)
{
	struct shim_lock_node *node;
	struct place at;

	(void)profiler;
	if (lock->began) {
		record_end(lock, true);
		return;
	}
	node = find_node(&at, lock, NULL);
	if (node)
		shim_local_add(&node->refusals, 1);
}

/* --- waits that end without an event --- */

/* Ends the waits on the stack of @sp whose frames lie below @sp; with 0, all waits. */
static void end_below(uintptr_t sp)
{
	struct tree *tree = tree_own();
	struct waits *waits = tree ? waits_of(tree) : NULL;
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
		end_below(sp);
}

static void on_frames_unwound(struct shim_profiler *profiler, uintptr_t sp)
{
	(void)profiler;
	end_below(sp);
}

static void on_thread_ended(struct shim_profiler *profiler)
{
	(void)profiler;
	end_below(0);
}

/* In a child, and in another recording of this process: the nodes belong to the former
 * recording. */
static void begin_recording(struct shim_profiler *profiler)
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
		if (waits_of(tree))
			node_map_image_gone(waits_of(tree)->table, 1, low, high,
					    gone);
}

static void take_option(enum option_name name, const struct option_value *value)
{
	(void)value;
	unwinds = name == OPTION_locks_UNWIND;
}

static struct shim_profiler_handle *handle;

/* Another thread may be calling a callback, so there is always one. */
static void ignore_contention(struct shim_profiler *profiler,
			      struct shim_lock *lock)
{
	(void)profiler;
	(void)lock;
}

/* Waits that have begun end as usual. */
static bool record_locks(bool is_on)
{
	if (is_on && !tree_return_paths("locks"))
		return false;
	shim_profiler_on_lock_contention(handle, is_on ? on_contention :
							 ignore_contention);
	if (!is_on)
		tree_leave_paths();
	return true;
}

static bool start_locks(void)
{
	slot = path_add_slot();
	if (!tree_need_paths("locks"))
		return false;
	handle = shim_profiler_create(NULL);
	if (!handle || shim_profiler_enable_locks(handle) != SHIM_OK) {
		shim_record_log(
			"locks: waits for locks cannot be recorded in this program");
		return false;
	}
	shim_profiler_on_lock_contention(handle, on_contention);
	shim_profiler_on_lock_acquired(handle, on_acquired);
	shim_profiler_on_lock_failed(handle, on_failed);
	shim_profiler_on_jump_taken(handle, on_jump_taken);
	shim_profiler_on_frames_unwound(handle, on_frames_unwound);
	shim_profiler_on_thread_ended(handle, on_thread_ended);
	shim_profiler_on_forked(handle, begin_recording);
	shim_profiler_on_recording_began(handle, begin_recording);
	shim_profiler_on_image_unloaded(handle, on_image_unloaded);
	return true;
}

BUILTIN(locks, take_option, start_locks, .begin = tree_begin,
	.record = record_locks, .is_too_late = tree_paths_are_too_late);
