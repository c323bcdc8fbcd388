/*
 * Manages each thread's tree and the stacks of its calls, and chooses both for an
 * event.
 */
#include "path/cpu_time.h"
#include "path/made_stacks.h"
#include "path/older.h"
#include "path/opening.h"
#include "path/threads.h"
#include "path/throttled.h"
#include "path/assert.h"

#include <shim/builtin.h>

#include <shim/banned.h>

/* The number of trees that are checked for an ended thread before a new thread gets a
 * new tree. */
#define CHECKED_MAX 64

struct tree *trees;
struct tree *trees_checked;

/* --- stacks --- */

/* Private memory of trees, in small pieces. */
static void *take_private(struct tree *tree, size_t size)
{
	char *memory = tree->pool;

	size = (size + 15) & ~(size_t)15;
	if ((size_t)(tree->pool_end - memory) < size) {
		memory = shim_memory_map(16384);
		if (!memory)
			return NULL;
		tree->pool_end = memory + 16384;
	}
	tree->pool = memory + size;
	return memory;
}

/* Makes a root at the upper end of its stack, so that all frames of the stack lie below it. */
static struct shim_node *make_root(struct tree *tree, const struct stack *stack,
				   bool coroutine)
{
	struct shim_thread_node *root = tree_take(tree, sizeof(*root));

	if (!root)
		return NULL;
	root->frame = frame_of(stack->high, stack->low);
	root->start = now();
	root->coroutine = coroutine;
	shim_thread_name(root->name);
	__atomic_store_n(&root->function, SHIM_NODE_THREAD | tree->tid,
			 __ATOMIC_RELEASE);
	return (struct shim_node *)root;
}

struct stack *tree_add_stack(struct tree *tree, uintptr_t low, uintptr_t high)
{
	struct stack *stack = take_private(tree, sizeof(*stack));

	if (!stack)
		return NULL;
	low &= ~(uintptr_t)FRAME_FLAGS;
	*stack = (struct stack){ .low = low,
				 .high = high,
				 .next = tree->stacks };
	tree->stacks = stack;
	return stack;
}

struct stack *tree_known_stack(struct tree *tree, uintptr_t sp)
{
	struct stack *best = NULL;

	if (contains(&tree->signal_stack, sp))
		return &tree->signal_stack;
	/* A coroutine's stack may lie in a larger stack, so the smallest stack
	 * counts. */
	for (struct stack *stack = tree->stacks; stack; stack = stack->next)
		if (contains(stack, sp) &&
		    (!best ||
		     stack->high - stack->low < best->high - best->low))
			best = stack;
	return best;
}

void tree_give_root(struct tree *tree, struct stack *stack)
{
	stack->base = make_root(tree, stack, true);
	if (stack->base)
		stack->track = ++tree->tracks;
	else
		stack->base = tree->main_stack.base;
	stack->current = stack->base;
}

/* The signal handler on the stack in use has ended, by a return or a jump. */
static void end_handler(struct tree *tree)
{
	struct stack *stack = tree->stack;

	if (node_is_below(tree->current, stack->base))
		tree->current = node_unwind(tree->current, stack->base);
	tree->stack = stack->interrupted;
}

/* Whether @handler's stack is in use above @stack. */
static bool has_interrupted(const struct stack *handler,
			    const struct stack *stack)
{
	while (handler->is_signal && handler != stack)
		handler = handler->interrupted;
	return handler == stack;
}

/* The thread continues on @to.  So the handlers above it have ended; unless the stack is of
 * a handler that has interrupted them. */
static void end_handlers(struct tree *tree, const struct stack *to)
{
	/* A handler without open calls may have ended unseen. */
	while (tree->stack->is_signal && tree->stack != to &&
	       tree->current == tree->stack->base)
		tree->stack = tree->stack->interrupted;
	if (to->is_signal && !has_interrupted(tree->stack, to))
		return;
	while (tree->stack->is_signal && tree->stack != to)
		end_handler(tree);
}

static void set_signal_stack(struct tree *tree, uintptr_t low, uintptr_t high)
{
	struct stack *stack = &tree->signal_stack;

	low &= ~(uintptr_t)FRAME_FLAGS;
	if (stack->low == low && stack->high == high)
		return;
	if (has_interrupted(tree->stack, stack))
		end_handlers(tree, stack->interrupted);
	*stack = (struct stack){ .low = low, .high = high, .is_signal = true };
}

/* Reads the bounds again if the program may have changed them.  Returns the innermost open
 * call, as the calls of a handler on the former stack have ended. */
static COLD struct shim_node *read_signal_stack(struct tree *tree)
{
	uint64_t signals;
	uintptr_t low, high;
	struct shim_node *current;

	if (tree->closed)
		return tree_collect(tree);
	signals = shim_signals_block();
	tree->signal_changes = __atomic_load_n(&shim_signal_stack_changes,
					       __ATOMIC_RELAXED);
	if (!shim_signal_stack(&low, &high))
		low = high = 0;
	tree_collect(tree);
	set_signal_stack(tree, low, high);
	current = tree->current;
	shim_signals_restore(signals);
	return current;
}

void tree_take_made(const struct tree *tree, struct stack *stack,
		    struct made_stack *made)
{
	stack->made = made;
	stack->changes = made_stacks_take(made, tree);
}

static struct stack *add_made(struct tree *tree, struct made_stack *made)
{
	struct stack *stack = tree_add_stack(tree, made->low, made->high);

	if (!stack)
		return NULL;
	tree_take_made(tree, stack, made);
	tree_give_root(tree, stack);
	return stack;
}

/* Another thread has made a new coroutine there, or has run this one: its calls have ended
 * there, or will. */
static bool is_made_again(const struct tree *tree, const struct stack *stack)
{
	return stack->made &&
	       made_stacks_has_changed(stack->made, tree, stack->changes);
}

void tree_end_coroutine(struct tree *tree, struct stack *stack)
{
	struct stack *used = tree->stack;

	tree->stack = stack;
	node_unwind(stack->current, stack->base);
	tree->stack = used;
	stack->current = stack->base;
}

static struct stack *find_made(struct tree *tree, struct stack *known,
			       uintptr_t sp)
{
	struct made_stack *made = made_stacks_find(sp);

	if (!made ||
	    (known && made->high - made->low >= known->high - known->low))
		return known;
	return add_made(tree, made);
}

struct stack *tree_announced_stack(struct tree *tree, uintptr_t sp)
{
	struct stack *stack = tree_known_stack(tree, sp);
	uint64_t signals;

	if (stack && !stack->is_guess && !is_made_again(tree, stack))
		return stack;
	signals = shim_signals_block();
	if (!stack || stack->is_guess) {
		stack = find_made(tree, stack, sp);
	} else if (stack != tree->stack) {
		tree_take_made(tree, stack, stack->made);
		tree_end_coroutine(tree, stack);
	}
	shim_signals_restore(signals);
	return stack;
}

/* The stack that holds @sp.  Adds it if it is unknown. */
static struct stack *find_stack(struct tree *tree, uintptr_t sp)
{
	uintptr_t low = sp & ~4095ul, high = low + 4096;
	enum shim_stack kind;
	struct stack *stack;

	if (shim_callback_stack(sp, &low, &high)) {
		stack = tree_add_stack(tree, low, high);
		if (!stack)
			return tree->stack;
		stack->is_signal = true;
		return stack;
	}
	kind = shim_stack_find(sp, &low, &high);
	/* The program may have changed the signal stack by a system call of its own. */
	if (kind == SHIM_STACK_SIGNAL)
		set_signal_stack(tree, low, high);
	else if (contains(&tree->signal_stack, sp))
		set_signal_stack(tree, 0, 0);
	stack = tree_announced_stack(tree, sp);
	if (stack)
		return stack;
	stack = tree_add_stack(tree, low, high);
	if (!stack)
		return tree->stack;
	tree_give_root(tree, stack);
	stack->is_guess = true;
	stack->is_new = tree->attach_clock != 0;
	/* No event announced this stack, so no event will announce that the thread leaves
	 * it.  From now on every call is checked. */
	tree->careful = true;
	return stack;
}

void tree_switch_stack(struct tree *tree, uintptr_t sp)
{
	struct stack *from, *to = tree_known_stack(tree, sp);
	bool was_handler;

	if (!to || to == &tree->signal_stack)
		to = find_stack(tree, sp);
	if (to == tree->stack)
		return;
	was_handler = tree->stack->is_signal;
	end_handlers(tree, to);
	from = tree->stack;
	if (tree->trace)
		path_writer->switching(tree, to);
	from->current = tree->current;
	if (to == from) {
		/* The interrupted code continues. */
	} else if (to->is_signal) {
		to->base = tree->current;
		to->interrupted = from;
	} else {
		tree->current = to->current;
		if (tree_is_cpu && !was_handler) {
			cpu_leave_stack(from->current, from->base);
			cpu_come_back(to->current, to->base);
		}
	}
	tree->stack = to;
	if (tree->trace)
		path_writer->switched(tree);
	if (to->is_new)
		tree_open_older_here(tree);
}

/* --- a thread and its tree --- */

/*
 * On a signal stack the fast path is off: its frames cannot be compared with those that
 * the signal interrupted, and the next event must notice the handler's end.
 */
void tree_publish(struct tree *tree, struct stack *stack,
		  struct shim_node *current)
{
	PATH_ASSERT(current != &tree_no_call);
	tree->stack = stack;
	tree->current = current;
	tree_hot.tick = tree_tick ? tree_tick : &cost_no_tick;
	if (tree_hot.shared)
		return;
	if (tree->careful)
		tree_hot.below = HOT_NOWHERE;
	else if (!stack->is_signal)
		tree_hot.below = stack->low - sizeof(uintptr_t);
	/* The cache is stored before the mask, because a mask fits its cache and each
	 * later cache. */
	__atomic_store_n(&tree_hot.cache, tree->cache, __ATOMIC_RELEASE);
	__atomic_store_n(&tree_hot.cache_mask, tree->cache_mask,
			 __ATOMIC_RELEASE);
	tree_hot.tree = tree;
	if (tree->counters)
		*shim_thread_counters() = tree->counters;
	tree_hot.trace = tree->trace;
	/* A value other than tree_starts makes the next call look back. */
	tree_hot.starts = tree->starts - stack->in_doubt;
	if (tree->careful || tree->lost_depth || stack->is_signal)
		current = &tree_no_call;
	__atomic_store_n(&tree_hot.current, current, __ATOMIC_RELEASE);
}

/* If the fast path has run, a signal handler with its own stack has ended, whatever
 * calls it left open.  The result is read once, because a signal handler changes
 * tree->current. */
struct shim_node *tree_collect(struct tree *tree)
{
	struct shim_node *current;

	if (tree_is_traced && tree_hot.trace)
		path_writer->settle(tree_hot.trace);
	current = __atomic_load_n(&tree_hot.current, __ATOMIC_RELAXED);
	if (tree_hot.tree != tree || current == &tree_no_call)
		return tree->current;
	tree->current = current;
	while (tree->stack->is_signal)
		tree->stack = tree->stack->interrupted;
	return current;
}

/* Stores the bounds of the thread's stack: not a signal handler's, unless that cannot be
 * unwound. */
static void find_main_stack(struct stack *stack, uintptr_t sp)
{
	uintptr_t below;

	*stack = (struct stack){ .low = sp & ~4095ul };
	stack->high = stack->low + 4096;
	if ((shim_callback_stack(sp, &stack->low, &stack->high) ||
	     shim_stack_find(sp, &stack->low, &stack->high) ==
		     SHIM_STACK_SIGNAL) &&
	    shim_stack_interrupted(stack->low, stack->high, &below))
		shim_stack_find(below, &stack->low, &stack->high);
	stack->low &= ~(uintptr_t)FRAME_FLAGS;
}

static bool begin_thread(struct tree *tree, uintptr_t sp)
{
	static uint64_t lives;
	const volatile uint64_t *tick;
	struct stack *stack = &tree->main_stack;

	/* The first value of the tick is not a change. */
	if (tree_tick)
		shim_clock_follow_tick(&tree_tick, &tick);
	cpu_begin_thread(tree);
	tree->hot = tree->lender = NULL;
	tree->life = __atomic_add_fetch(&lives, 1, __ATOMIC_RELAXED);
	find_main_stack(stack, sp);
	stack->base = make_root(tree, stack, false);
	if (!stack->base)
		return false;
	stack->current = stack->base;
	tree->root = (struct shim_thread_node *)stack->base;
	tree->stack = tree->stacks = stack;
	tree->current = stack->current;
	tree->signal_stack = (struct stack){ .is_signal = true };
	read_signal_stack(tree);
	tree->careful = tree_hot.no_clock;
	tree->lost_depth = 0;
	tree->attach_clock = tree->entered = tree->left = 0;
	tree->starts = __atomic_load_n(&tree_starts, __ATOMIC_ACQUIRE);
	tree->restarts = __atomic_load_n(&tree_restarts, __ATOMIC_ACQUIRE);
	tree->throttles = __atomic_load_n(&tree_throttles, __ATOMIC_ACQUIRE);
	if (tree->trace)
		path_writer->thread_begins(tree);
	return true;
}

/* The tree that could not be finished.  The next try uses it, because without memory
 * the tries are many. */
static struct tree *unfinished;

static struct tree *take_unfinished(void)
{
	struct tree *tree = __atomic_exchange_n(&unfinished, NULL,
						__ATOMIC_ACQ_REL);

	/* It may have a file of a former recording. */
	if (tree && tree->recording == tree_recording)
		return tree;
	tree = shim_memory_map(sizeof(*tree));
	if (tree)
		tree->recording = tree_recording;
	return tree;
}

static bool make_file(struct tree *tree, enum shim_lost *cause)
{
	void *memory;
	size_t size;

	if (tree->chunk_count > 0)
		return true;
	if (tree_has_file) {
		tree->record = shim_record_open("calltree", &memory, &size,
						cause);
		if (!tree->record)
			return false;
	} else {
		memory = tree_get_memory(tree, 0, &size, cause);
		if (!memory)
			return false;
	}
	return tree_add_chunk(tree, memory, size);
}

static bool finish_tree(struct tree *tree, enum shim_lost *cause)
{
	if (!make_file(tree, cause))
		return false;
	if (tree_is_traced && !tree->trace)
		tree->trace = path_writer->make(tree, cause);
	if (tree_is_traced && !tree->trace)
		return false;
	*cause = SHIM_LOST_MEMORY;
	if (!tree->table)
		tree->table = tree_make_table(64 - 9);
	if (!tree->cache)
		tree->cache = shim_memory_map(CACHE_MAX * sizeof(*tree->cache));
	if (!tree->table || !tree->cache)
		return false;
	tree->cache_mask = cache_mask_of(CACHE_MIN);
	for (unsigned i = 0; i < CACHE_MIN; i++)
		tree->cache[i] = &tree_no_child;
	return true;
}

static struct tree *make_tree(uint32_t tid, uintptr_t sp, enum shim_lost *cause)
{
	struct tree *tree = take_unfinished();

	*cause = SHIM_LOST_MEMORY;
	if (!tree)
		return NULL;
	tree->tid = tid;
	if (!finish_tree(tree, cause) || !begin_thread(tree, sp)) {
		__atomic_store_n(&unfinished, tree, __ATOMIC_RELEASE);
		return NULL;
	}
	tree->next = __atomic_load_n(&trees, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&trees, &tree->next, tree, false,
					    __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
	return tree;
}

void tree_forget_all(void)
{
	trees = trees_checked = unfinished = NULL;
	older_forget_all();
}

/* The next tree in a round through all of them, or NULL. */
static struct tree *next_tree(void)
{
	struct tree *tree = __atomic_load_n(&trees_checked, __ATOMIC_ACQUIRE);

	tree = tree ? tree->next : NULL;
	if (!tree)
		tree = __atomic_load_n(&trees, __ATOMIC_ACQUIRE);
	__atomic_store_n(&trees_checked, tree, __ATOMIC_RELEASE);
	return tree;
}

/* Reuses a tree whose thread has ended, or that a task with the same number had before.
 * Checks only some trees: otherwise each new thread would check all threads. */
static COLD struct tree *reuse_tree(uint32_t tid, uintptr_t sp)
{
	struct tree *tree;

	for (unsigned i = 0; i < CHECKED_MAX && (tree = next_tree()); i++) {
		uint32_t owner = __atomic_load_n(&tree->tid, __ATOMIC_RELAXED);

		if (tree->recording != tree_recording ||
		    (owner != tid && shim_thread_is_alive(owner)))
			continue;
		if (!__atomic_compare_exchange_n(&tree->tid, &owner, tid, false,
						 __ATOMIC_ACQUIRE,
						 __ATOMIC_RELAXED))
			continue;
		/* Calls that the ended thread left open have no end. */
		if (!begin_thread(tree, sp))
			continue;
		return tree;
	}
	return NULL;
}

/* The latest tree of task @tid; an earlier task may have had the same number. */
struct tree *tree_of_task(uint32_t tid)
{
	struct tree *found = NULL;

	for (struct tree *tree = __atomic_load_n(&trees, __ATOMIC_ACQUIRE);
	     tree; tree = tree->next)
		if (__atomic_load_n(&tree->tid, __ATOMIC_RELAXED) == tid &&
		    tree->recording == tree_recording &&
		    (!found || found->life < tree->life))
			found = tree;
	return found;
}

void tree_drop_hot(void)
{
	tree_hot = (struct hot){ .current = &tree_no_call,
				 .below = HOT_NOWHERE,
				 .cache = tree_hot.cache ? tree_hot.cache :
							   tree_no_cache,
				 .cache_mask = tree_hot.cache_mask,
				 .tick = &cost_no_tick,
				 .no_clock = tree_hot.no_clock,
				 .shared = tree_hot.shared,
				 .starts = tree_hot.starts,
				 .recording = tree_recording };
	*shim_thread_counters() = NULL;
}

static COLD void drop_former(void)
{
	uint64_t signals = shim_signals_block();

	tree_drop_hot();
	shim_signals_restore(signals);
}

COLD struct tree *tree_own(void)
{
	if (tree_is_former())
		drop_former();
	return tree_hot.shared ? tree_of_task(shim_thread_id()) : tree_hot.tree;
}

/* Makes the tree of the calling task. */
static inline struct tree *make_own(uintptr_t sp)
{
	uint32_t tid = shim_thread_id();
	struct tree *tree = NULL;

	tree_hot.cause = SHIM_LOST_FORBIDDEN;
	if (tid) {
		tree = reuse_tree(tid, sp);
		if (!tree)
			tree = make_tree(tid, sp, &tree_hot.cause);
	}
	if (tree) {
		tree_publish(tree, tree->stack, tree->current);
		if (!tree_hot.shared) {
			tree->hot = &tree_hot;
			shim_thread_watch();
		} else {
			tree->lender = &tree_hot;
		}
	} else {
		tree_hot.retry_clock = now() + 20000 * tree_long_clock;
	}
	return tree;
}

static COLD void open_older(struct tree *tree, uintptr_t sp, uint64_t entered,
			    uint64_t left)
{
	const struct first_event event = { sp, entered, left };

	if (tree && !tree_hot.shared && shim_has_open_before())
		tree_open_older(tree, &event);
}

COLD struct tree *tree_get_for(uintptr_t sp, uint64_t entered, uint64_t left)
{
	struct tree *tree = tree_own();
	uint64_t signals;

	if (tree)
		return tree;
	tree_hot.no_clock = shim_clock_is_closed();
	if (tree_hot.retry_clock && now() < tree_hot.retry_clock)
		return NULL;
	/* No signal handler comes between: it would find a tree without the older calls. */
	signals = shim_signals_block();
	tree = tree_own();
	if (!tree) {
		tree = make_own(sp);
		open_older(tree, sp, entered, left);
	}
	shim_signals_restore(signals);
	return tree;
}

COLD struct tree *tree_get(uintptr_t sp)
{
	return tree_get_for(sp, 0, 0);
}

/* --- the place of an event --- */

/* Whether the calling task is not the tree's, but shares its thread-local data.  From
 * then on, all these tasks take the slow path, and their tids identify them. */
static bool detect_sharing(struct tree *tree)
{
	uint32_t tid;

	if (tree_hot.shared)
		return false;
	tid = shim_thread_id();
	if (tid == 0 || tid == tree->tid)
		return false;
	tree_collect(tree);
	tree_hot.shared = 1;
	tree_hide();
	return true;
}

/* Called if the stack pointer is outside the stack in use: on another stack, or in
 * another task. */
static inline struct tree *change_stack(struct tree *tree, uintptr_t sp)
{
	uint64_t signals = shim_signals_block();

	if (detect_sharing(tree)) {
		tree = tree_get(sp);
		if (!tree || is_on(tree, tree->stack, sp)) {
			shim_signals_restore(signals);
			return tree;
		}
	}
	tree_collect(tree);
	tree_switch_stack(tree, sp);
	tree_publish(tree, tree->stack, tree->current);
	shim_signals_restore(signals);
	return tree;
}

/* Repeats this if a signal handler on another stack came after it. */
static COLD bool change_place(struct place *place, uintptr_t sp)
{
	struct tree *tree = place->tree;

	for (int i = 0; i < 100 && !is_on(tree, place->stack, sp); i++) {
		tree = place->tree = change_stack(tree, sp);
		if (!tree)
			return false;
		place->current = tree_collect(tree);
		place->stack = tree->stack;
	}
	return true;
}

bool tree_find_place(struct place *place, struct tree *tree, uintptr_t sp)
{
	place->tree = tree;
	if (!tree)
		return false;
	place->current = tree_collect(tree);
	if (UNLIKELY(tree->signal_changes !=
		     __atomic_load_n(&shim_signal_stack_changes,
				     __ATOMIC_RELAXED)))
		place->current = read_signal_stack(tree);
	place->stack = tree->stack;
	if (is_on(tree, place->stack, sp))
		return true;
	/* The event is on another stack. */
	return change_place(place, sp);
}

/* Calls that a jump or an exception left open have their frames below @sp.  (Frame 0:
 * an enter that this signal handler interrupted.) */
struct shim_node *tree_drop_stale(const struct stack *stack,
				  struct shim_node *node, uintptr_t sp)
{
	uint64_t frame = frame_of(sp, stack->low);
	struct ended_calls unwound = { 0 };

	while (node != stack->base && !is_root(node) && node->frame != 0 &&
	       node->frame < frame) {
		node_end_unwound(node, &unwound);
		node = parent_of(node);
	}
	node_count_unwound(&unwound);
	return node;
}

struct shim_node *tree_find_caller(struct place *place, uintptr_t sp)
{
	struct shim_node *node;
	uint64_t frame;

	if (!tree_find_place(place, tree_get(sp), sp))
		return NULL;
	node = place->current;
	frame = frame_of(sp, place->stack->low);
	while (node != place->stack->base && !is_root(node) &&
	       node->frame != 0 && frame_at(node) < frame)
		node = parent_of(node);
	return node;
}

struct shim_node *tree_look_at(const struct tree *tree)
{
	struct hot hot;

	if (!tree->hot || !shim_memory_read(&hot, tree->hot, sizeof(hot)))
		return NULL;
	return hot.tree == tree && hot.current != &tree_no_call ? hot.current :
								  tree->current;
}
