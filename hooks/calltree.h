/*
 * What the files of calltree share.
 *
 *     calltree.c          the hooks: enter, leave, and the start
 *     calltree_nodes.c    paths: their memory, finding and making them
 *     calltree_threads.c  a thread's tree, and the stacks its calls are on
 *     calltree_events.c   jumps, exceptions, coroutines, forks, unloading
 *     calltree_restart.c  calls that were open while the hooks were off
 *     calltree_traced.c   calls beside a trace, off the fast path
 *     calltree_by.c       calls of one function grouped by an argument
 *     calltree_open.c     which calls are open, for walks of the stack
 *     calltree_cost.c     what a call of the hooks costs
 *
 * What the fast path takes from other files is inline and in here.
 */
#ifndef CALLTREE_H
#define CALLTREE_H

#include <shim/cpu.h>
#include <shim/hooks.h>
#include <shim/record.h>

#include "trace.h"

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define HOT	    __attribute__((hot, aligned(64)))
#define COLD	    __attribute__((cold, noinline))

#define CACHE_MIN 512
#define CACHE_MAX 16384
#define JUMPS	  64

/* TRACED: what trace writes is all. */
enum clock { COUNTS, COARSE, EXACT, TRACED };

struct stack {
	uintptr_t low, high;
	struct stack *next;
	struct shim_node *current;	/* while another stack is in use */
	struct shim_node *base;		/* its frames lie above this node */
	bool is_signal;
	bool in_doubt;			/* no call has begun on it since a restart */
	struct stack *interrupted;	/* is_signal: the one below it */
	uint32_t track;			/* in the trace */
	uint32_t resumes;		/* the trace's, when it said what is open */
};

struct table {
	uint64_t shift;
	uint64_t used;
	struct shim_node *slot[];
};

/* Where new nodes come from. */
struct chunk {
	uint64_t next;		/* address */
	uint64_t limit;
};

struct jump {
	const void *buffer;
	struct shim_node *node;
	uintptr_t sp;
};

/* One thread's tree.  When its thread is gone the next new one goes on with the
 * file, under a root of its own. */
struct tree {
	struct tree *next;
	uint32_t tid;
	bool careful;			/* every event takes the slow path */
	bool closed;			/* no system calls any more */
	uint32_t starts;		/* of tree_starts, those it looked back at */
	struct shim_record *record;
	struct chunk *chunk;
	struct table *table;
	struct shim_node **cache;
	uint64_t cache_mask;
	struct shim_thread_node *root;
	struct shim_node *current;	/* used when tree_hot.current is not */
	struct stack *stack;
	struct stack *stacks;
	struct stack main_stack;
	uint64_t landed;		/* frame an exception landed in, or 0 */
	/* No memory: calls from lost_sp down are counted and nothing else. */
	uintptr_t lost_sp;
	uint64_t lost_depth;
	enum shim_lost lost_cause;
	uint64_t retry_clock;
	struct chunk chunks[SHIM_FILE_CHUNKS];
	unsigned chunk_count;
	char *pool, *pool_end;		/* struct stack come from here */
	uint8_t *described;		/* groups that this file describes: bits */
	struct trace *trace;		/* or NULL */
	uint32_t tracks;
	void *unwinding;		/* unwound.c's */
	struct jump jumps[JUMPS];
	struct hot *hot;		/* its thread's, or NULL */
	struct waits *waits;		/* of locks.c */
	struct throws *throws;		/* of exceptions.c */
	uint64_t life;			/* counts threads that had trees */
};

/* What the fast path reads, per thread. */
struct hot {
	struct shim_node *current;
	uintptr_t below;		/* a word below the low end of the stack in
					 * use */
	uint64_t cache_mask;		/* of offsets in it, in bytes */
	struct shim_node **cache;
	const volatile uint64_t *tick;
	uint64_t last;			/* the tick when the last hook ended */
	struct tree *tree;
	struct trace *trace;
	uint64_t retry_clock;		/* no tree could be made; until then */
	unsigned shared;		/* by how many reasons other tasks use
					 * this very data: a clone without its
					 * own, a vfork child */
	enum shim_lost cause;
	bool no_clock;			/* shim_clock_read() would fault here */
	uint32_t starts;		/* the tree's */
};

/* Nobody's node: no function, no room below it. */
extern struct shim_node tree_nobody;

/* What is in a cache where nothing is. */
extern struct shim_node tree_no_child;

extern __thread struct hot tree_hot;
extern struct tree *trees;
extern struct tree *trees_asked;	/* the last that was asked whether it is free */
extern enum clock tree_mode;
extern bool tree_has_file;		/* else the nodes are in private memory */
extern const volatile uint64_t *tree_tick;
extern uint64_t tree_long_clock;	/* LONG_NS in clock units */

extern uint32_t tree_starts;		/* how often calls began again */

/*
 * Stack pointers are multiples of 8, so a frame has bits to spare.  In doubt is
 * a call that was open while hooks were off: its function carries
 * SHIM_NODE_EXACT, so that its leave is no matter for the fast path.
 */
#define FRAME_IN_DOUBT	1u
#define FRAME_WAS_EXACT 2u		/* and so did it before */
#define FRAME_LEFT_OUT	4u		/* its enter is not in the trace, */
#define FRAME_WAITS	2u		/* not yet (and it is not in doubt) */
#define FRAME_FLAGS	7u

static inline uint64_t frame_at(const struct shim_node *node)
{
	return node->frame & ~(uint64_t)FRAME_FLAGS;
}

static inline bool is_in_doubt(const struct shim_node *node)
{
	return (node->frame & FRAME_IN_DOUBT) != 0;
}

static inline bool frame_waits(uint64_t frame)
{
	return (frame & FRAME_FLAGS) == (FRAME_LEFT_OUT | FRAME_WAITS);
}

static inline bool trace_has_waited(const struct shim_node *node, uint64_t clock)
{
	return frame_waits(node->frame) &&
	       clock - node->start >= trace_options.min_clock;
}

/* The exact clock, off the fast path. */
static inline uint64_t now(void)
{
	if (UNLIKELY(tree_hot.no_clock))
		return tree_tick ? *tree_tick : 0;
	return shim_clock_read();
}

static inline uint64_t address_of(const struct shim_node *node)
{
	return node->function & ~SHIM_NODE_EXACT;
}

/*
 * Somebody may make the file shorter at any time: then its nodes become zero.
 * The fast path reads the parent before it looks whether the node is the
 * function's, which it is no more then.
 */
static inline struct shim_node *parent_of(const struct shim_node *node)
{
	struct shim_node *parent = (struct shim_node *)__atomic_load_n(
		&node->parent, __ATOMIC_RELAXED);

	return LIKELY(parent) ? parent : &tree_nobody;
}

static inline bool is_root(const struct shim_node *node)
{
	return node->parent == 0;
}

/* Of its function, in the trace; TRACE_LEFT_OUT. */
static inline uint32_t node_number(const struct shim_node *node)
{
	enum shim_lost cause;

	return node->group ? trace_number(address_of(node), &cause) :
			     node->hits;
}

static inline uint64_t hash(const struct shim_node *parent, uint64_t function,
			    uint16_t group)
{
	return ((uintptr_t)parent >> 6 ^ function ^ (uint64_t)group << 48) *
	       0x9e3779b97f4a7c15ull;
}

static inline struct shim_node *
find(const struct table *table, struct shim_node *parent, uint64_t function,
     uint16_t group)
{
	uint64_t mask = (1ull << (64 - table->shift)) - 1;
	uint64_t i = hash(parent, function, group) >> table->shift;
	struct shim_node *node;

	while ((node = table->slot[i]) != NULL) {
		if (parent_of(node) == parent &&
		    address_of(node) == function && node->group == group)
			return node;
		i = (i + 1) & mask;
	}
	return NULL;
}

/* Where the child may be; @hint tells paths apart.  The mask is read before the
 * cache: a handler that comes between can only have put a larger one there. */
static inline struct shim_node **cache_place(uint32_t hint)
{
	uint64_t mask = *(volatile uint64_t *)&tree_hot.cache_mask;
	char *cache = *(char *volatile *)&tree_hot.cache;

	return (struct shim_node **)(void *)(cache + (hint & mask));
}

/* Those of a cache with so many entries. */
static inline uint64_t cache_mask_of(uint64_t entries)
{
	return (entries - 1) * sizeof(struct shim_node *);
}

/* Where @sp is in its stack.  0 says the call is closed. */
static inline uint64_t frame_of(uintptr_t sp, uintptr_t low)
{
	return sp - low;
}

/* Where the clock must not be read, or each call takes the slow path, all frames
 * are as far above the low end as this. */
#define HOT_NOWHERE ((uintptr_t)1 << 63)

static inline bool is_far(uint64_t frame)
{
	return (int64_t)frame < 0;
}

/* No call takes the fast path from here on. */
static inline void tree_hide(void)
{
	tree_hot.below = HOT_NOWHERE;
	tree_hot.current = &tree_nobody;
}

/* ... in the stack in use.  (A hook has this at hand: its own stack pointer is a
 * word below the program's.) */
static inline uint64_t frame_here(uintptr_t sp)
{
	sp -= sizeof(uintptr_t);
	__asm__("" : "+r"(sp)); /* else compilers put it after the subtraction */
	return sp - tree_hot.below;
}

/* What a stack pointer points at was pushed last: it may be the upper end of
 * its stack and cannot be the lower one. */
static inline bool contains(const struct stack *stack, uintptr_t sp)
{
	return sp - 1 - stack->low < stack->high - stack->low;
}

/* --- calltree_nodes.c --- */

/* A further piece of the file for nodes; false: there are too many. */
bool tree_add_chunk(struct tree *tree, void *memory, size_t size);

/* At least @least bytes for nodes, *@size of them; or NULL, and *@cause. */
void *tree_get_memory(struct tree *tree, size_t least, size_t *size,
		      enum shim_lost *cause);

/* @size zeroed bytes of the file; NULL sets lost_cause. */
void *tree_take(struct tree *tree, size_t size);

/* A table with 2^(64 - @shift) slots, or NULL. */
struct table *tree_make_table(uint64_t shift);

/* The child of @parent for @function and @group, or 0; NULL sets lost_cause. */
COLD struct shim_node *node_make(struct tree *tree, struct shim_node *parent,
				 uint64_t function, uint16_t group);

/* Gives @node what calltree:exact keeps beside it; its last call took
 * @duration.  The first call needs none: the path's time is its duration. */
COLD void node_add_extra(struct shim_node *node, uint64_t duration);

/* Counts a @duration that the range of @extra does not hold. */
COLD void node_widen(struct shim_extra_node *extra, uint64_t duration);

/* The tick is not what it was at the end of the last hook: in this one, which began
 * in a call of @node, it was @before and is @after. */
COLD void node_ticked(struct shim_node *node, uint64_t before, uint64_t after);

/* Long on average?  The other clock from the next call on. */
COLD void node_choose_clock(struct shim_node *node);

/* How long the open call of @node has taken; what close_call wants. */
uint64_t node_duration(struct shim_node *node);

/* Is @wanted open, with @node the innermost call? */
bool node_is_below(const struct shim_node *node,
		   const struct shim_node *wanted);

/* Calls that are not left any more: how many, and when all of them ended, by both
 * clocks. */
struct unwound {
	uint64_t calls;
	uint64_t time, tick;
};

/* Ends one. */
void node_end_unwound(struct shim_node *node, struct unwound *unwound);

/* Once all are ended. */
void node_count_unwound(const struct unwound *unwound);

/* Ends the calls from @node on, up to @outer, which stays open and is
 * returned.  Only local state: a handler that comes between finds the thread
 * as it was. */
struct shim_node *node_unwind(struct shim_node *node,
			      const struct shim_node *outer);

/* --- calltree_threads.c --- */

struct stack *tree_add_stack(struct tree *tree, uintptr_t low, uintptr_t high);

/* The smallest stack on record that holds @sp, or NULL. */
struct stack *tree_known_stack(struct tree *tree, uintptr_t sp);

/* A root of its own for what runs on @stack: a coroutine. */
void tree_give_root(struct tree *tree, struct stack *stack);

/* Makes the stack that holds @sp the one in use.  Signals blocked. */
void tree_switch_stack(struct tree *tree, uintptr_t sp);

/* Says which call is open on which stack, to the tree and the fast path. */
void tree_publish(struct tree *tree, struct stack *stack,
		  struct shim_node *current);

/* The other way: what the fast path did since.  The call that is open; where
 * signals are not blocked, tree->current need not be it any more. */
struct shim_node *tree_collect(struct tree *tree);

/* NULL: it has none. */
struct tree *tree_of_task(uint32_t tid);

/* In a forked child: they are its parent's. */
void tree_forget_all(void);

/* The calling task's tree; NULL: there is none and the call is lost. */
COLD struct tree *tree_get(uintptr_t sp);

/* What an event finds: its tree, its stack, the call it happens in.  Held in
 * here, because a handler may change what the tree says at any moment, and
 * what it leaves there is for the next event to find. */
struct place {
	struct tree *tree;
	struct stack *stack;
	struct shim_node *current;
};

/* false: there is no tree, and the call is lost. */
bool tree_find_place(struct place *place, struct tree *tree, uintptr_t sp);

/* The innermost call that is open where the stack pointer is @sp, and where it is;
 * NULL: there is no tree. */
struct shim_node *tree_find_caller(struct place *place, uintptr_t sp);

/* Where @tree's thread is; async, by another thread, and of what may be no more:
 * NULL if nothing of that can be read. */
struct shim_node *tree_look_at(const struct tree *tree);

/* Ends the calls whose frames lie below where the stack pointer is now. */
struct shim_node *tree_drop_stale(const struct stack *stack,
				  struct shim_node *node, uintptr_t sp);

/* --- calltree_restart.c --- */

/* The calling thread's first events since calls began again: what is open is in
 * doubt, and what the first call on each stack shows to be over is ended. */
COLD void tree_look_back(uint64_t function, const void *site, uintptr_t sp,
			 bool is_enter);

/* It is going to be closed, or was never over. */
void node_trust(struct shim_node *node);

/* The other way: nobody saw whether it has ended. */
void node_doubt(struct shim_node *node);

/* Which call of @function its leave ends, or NULL: one that nobody saw begin. */
struct shim_node *tree_find_left(const struct place *at, uint64_t function,
				 const void *site, uintptr_t sp);

/* Ends the calls that cannot be open beside this one of @function. */
struct shim_node *tree_drop_ended(const struct stack *stack,
				  struct shim_node *node, uint64_t function,
				  const void *site, uintptr_t sp);

/* --- calltree_traced.c --- */

/* A call of @node begins at @clock, or ends; false: it takes system calls, and nothing
 * was done. */
bool tree_open_traced(struct shim_node *node, uint64_t frame, uint64_t clock);
bool tree_close_traced(struct shim_node *node, uint64_t clock);

/* Of a call whose arguments were asked for: nothing but that keeps its node from the
 * fast path.  They come with it, or are NULL. */
bool tree_open_asked(struct shim_node *node, uint64_t frame,
		     struct trace_record *arguments);

/* --- calltree_events.c --- */

/* Asks for them all. */
void tree_listen(struct shim_profiler_handle *handle);

/* --- calltree_open.c --- */

struct shim_open_calls;

void tree_tell_open(struct shim_profiler *profiler,
		    struct shim_open_calls *calls);

/* --- calltree_cost.c --- */

/* Measures it and says it in @meta. */
void tree_describe_cost(struct shim_meta *meta);

/* The tick of threads that have no tree yet. */
extern const uint64_t cost_no_tick;

/* --- calltree_by.c --- */

/* Whether some function's calls are grouped. */
extern bool by_is_wanted;

/* Reads FUNCTION/ARGUMENT, and a number; false: it is no such. */
bool by_add(const char *text, size_t size);
bool by_limit(const char *text, size_t size);

/* Once all are read, and in the recording of each process. */
void by_start(void);
void by_start_recording(void);

/* Whether @name, of the linker, is what somebody means by @wanted. */
bool by_is_named(const char *name, const char *wanted);

/* Which by= the function is of, from 1 on; 0: none. */
unsigned by_find(shim_function function);

/* The group of a call; 0: the function has no such argument, and is from now on
 * of none. */
uint16_t by_group(unsigned by, shim_function function, shim_elt_info info);

/* Says in @tree's file what @group is; false: no room, lost_cause is set. */
bool by_describe(struct tree *tree, uint16_t group);

/* An image has gone. */
void by_forget(uintptr_t low, uintptr_t high);

/* --- calltree.c --- */

/* The fast paths of calltree:counts, calltree:exact and trace. */
void tree_counts_enter(shim_function function, const void *site);
void tree_exact_enter(shim_function function, const void *site);
void tree_exact_leave(shim_function function, const void *site);

void tree_traced_enter(shim_function function, const void *site);
void tree_traced_leave(shim_function function, const void *site);

/* Those that are left to C. */
void tree_exact_leave_any(shim_function function, const void *site);
void tree_traced_leave_any(shim_function function, const void *site);

/* A cache miss where nothing else is wrong.  (Grouped calls are all missed: the
 * function words of their nodes have SHIM_NODE_EXACT.)  @clock is what was read for
 * a trace; 0: not yet. */
void tree_enter_missed(uint64_t function, const void *site, uintptr_t sp,
		       struct shim_node *current, uint64_t clock);

/* By enum clock: enter, leave. */
extern const shim_site_hook tree_hooks[4][2];
extern const shim_site_hook tree_traced_hooks[4][2];

/* Both calltree and trace have been asked for what they are to do, or one of
 * them. */
int tree_start(void);

/* --- whose the time is --- */

/* So far it was the program that took the time, in a call of @node; from now on we
 * do, in a hook or with an event. */
static inline void tree_begin_own(struct shim_node *node)
{
	uint64_t tick = *tree_hot.tick;

	if (UNLIKELY(tick != tree_hot.last))
		node_ticked(node, tick, tick);
}

static inline void tree_end_own(void)
{
	tree_hot.last = *tree_hot.tick;
}

/* --- opening and closing one call --- */

static inline bool is_exact(const struct shim_node *node)
{
	return tree_mode >= EXACT || (node->function & SHIM_NODE_EXACT);
}

/*
 * A trace and the tree say the same of each call, also to a handler that comes
 * between: either the short record is announced before the tree is changed, or no
 * handler comes.  What is returned goes to shim_signals_restore().
 */
static inline uint64_t tree_be_quiet(void)
{
	return tree_is_traced ? shim_signals_block() : ~0ull;
}

/* Writes a short record, if that can be done now. */
static inline bool trace_short(uint64_t time, uint32_t word)
{
	struct trace *trace = tree_hot.trace;
	char *at;

	if (tree_hot.shared || !trace ||
	    !trace_reserve(trace, time, word, tree_hot.current, &at))
		return false;
	trace_put(trace, at, time, word);
	return true;
}

static inline void trace_open_call(struct shim_node *node)
{
	uint64_t time = node->start >> TRACE_SHIFT;
	uint32_t number = node_number(node);

	if ((node->function & SHIM_NODE_EXACT) ||
	    number >= SHIM_TRACE_FUNCTIONS ||
	    !trace_short(time, trace_enter_word(time, number)))
		trace_opened(node);
}

static inline void open_call(struct shim_node *node, uint64_t frame)
{
	if (UNLIKELY(is_in_doubt(node)))
		node_trust(node);
	node->frame = frame;
	shim_local_add(&node->calls, 1);
	if (tree_mode != COUNTS || tree_is_traced)
		node->start = is_exact(node) || tree_is_traced ? now() :
								 *tree_tick;
	tree_end_own();
	if (tree_is_traced)
		trace_open_call(node);
}

static inline void trace_close_call(struct shim_node *node, bool is_unwound)
{
	uint64_t time = now() >> TRACE_SHIFT;

	if (is_unwound || node->frame & FRAME_LEFT_OUT ||
	    !trace_short(time, trace_leave_word(time)))
		trace_closed(node, is_unwound);
}

/*
 * Durations of calltree:exact.  A call's duration waits in its extra node for
 * the next one: the counter takes long to read, and what depends on it makes
 * the next reading wait.  The exchange happens while the node is current, so
 * no handler can come between with a call of the same node.
 */
static inline uint64_t exchange_last(struct shim_extra_node *extra,
				     uint64_t duration)
{
	uint64_t last = extra->last;

	extra->last = duration;
	return last;
}

/* Shorter ones are counted slowly.  On x86-64 two readings of the counter lie further
 * apart, on machines that are not very slow; others have slower counters. */
#if defined(__x86_64__)
#define SHORTEST_COMMON (1ull << SHIM_SHORT_BUCKETS)
#else
#define SHORTEST_COMMON 1ull
#endif

/* What range_low and range_span ask in one question: is it at least SHORTEST_COMMON,
 * neither shorter nor longer than any before, and not too long for the last bucket
 * but one? */
static inline void count_duration(struct shim_extra_node *extra,
				  uint64_t duration)
{
	unsigned bucket;

	if (UNLIKELY(duration - extra->range_low > extra->range_span)) {
		node_widen(extra, duration);
		return;
	}
	bucket = 63u - (unsigned)__builtin_clzll(duration);
	shim_local_add(SHORTEST_COMMON < 1ull << SHIM_SHORT_BUCKETS ?
			 shim_bucket(extra, bucket) :
			 &extra->bucket[bucket - SHIM_SHORT_BUCKETS],
		 1);
}

/* Ends a call.  Its parent is current already, so a handler may open the same
 * node meanwhile: @duration was worked out before that. */
static inline void count_call(struct shim_node *node, uint64_t duration)
{
	node->frame = 0;
	if (tree_mode == TRACED)
		return;
	shim_local_add(&node->time, duration);
	if (tree_mode == EXACT) {
		struct shim_extra_node *extra =
			(struct shim_extra_node *)node->extra;

		if (extra)
			count_duration(extra, duration);
		else
			node_add_extra(node, duration);
	} else if (tree_mode == COARSE && (node->function & SHIM_NODE_EXACT) &&
		 (node->calls & 31) == 0)
		node_choose_clock(node);
}

static inline void close_call(struct shim_node *node, uint64_t duration,
			      bool is_unwound)
{
	if (tree_is_traced)
		trace_close_call(node, is_unwound);
	count_call(node, duration);
}

#endif
