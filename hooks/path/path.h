/*
 * Declarations shared by the files of the call-path engine.
 *
 *     begin.c         the start
 *     calls.c         the hooks: enter and leave; enter.h: their fast path
 *     nodes.c         paths: their memory, search and creation
 *     node_data.c     data of profilers for a node
 *     node_map.c      nodes of profilers beside those of calls
 *     threads.c       a thread's tree, and the stacks its calls are on
 *     events.c        jumps, exceptions, coroutines, forks, unloading
 *     restart.c       calls that were open while the hooks were off
 *     open_calls.c    the open calls, for the unwinder
 *     path_unwind.c   paths in code without instrumentation
 *     names.c         names of functions
 *     state.c         variables that all files share
 *     cost.c          the cost of a call of the hooks
 *
 * The parts of other files that the fast path uses are inline functions here.
 */
#ifndef PATH_H
#define PATH_H

#include <shim/cpu.h>
#include <shim/hooks.h>
#include <shim/record.h>

#include "path/client.h"

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define HOT	    __attribute__((hot, aligned(64)))
#define COLD	    __attribute__((cold, noinline))

#define CACHE_MIN 512
#define CACHE_MAX 16384
#define JUMPS	  64

/* TRACED: only trace writes calls; the tree counts nothing. */
enum clock { COUNTS, COARSE, EXACT, TRACED };

struct stack {
	uintptr_t low, high;
	struct stack *next;
	struct shim_node *current; /* while another stack is in use */
	struct shim_node *base;	   /* its frames lie above this node */
	bool is_signal;
	bool in_doubt;		   /* no call has begun on it since a restart */
	struct stack *interrupted; /* is_signal: the one below it */
	uint32_t track;		   /* its number in the trace */
	uint32_t resumes;	   /* the trace's, at its list of open calls */
};

struct table {
	uint64_t shift;
	uint64_t used;
	struct shim_node *slot[];
};

/* Memory for new nodes. */
struct chunk {
	uint64_t next; /* address */
	uint64_t limit;
};

struct jump {
	const void *buffer;
	struct shim_node *node;
	uintptr_t sp;
};

/* One thread's tree.  After its thread has ended, the next new thread continues the
 * file, under a root of its own. */
struct tree {
	struct tree *next;
	uint32_t tid;
	bool careful;	 /* every event takes the slow path */
	bool closed;	 /* system calls are forbidden from now on */
	uint32_t starts; /* the value of tree_starts at its last look back */
	struct shim_record *record;
	struct chunk *chunk;
	struct table *table;
	struct shim_node **cache;
	uint64_t cache_mask;
	struct shim_thread_node *root;
	struct shim_node *current; /* valid if tree_hot.current is not */
	struct stack *stack;
	struct stack *stacks;
	struct stack main_stack;
	uint64_t landed; /* frame an exception landed in, or 0 */
	/* No memory: calls at lost_sp and below are only counted as lost. */
	uintptr_t lost_sp;
	uint64_t lost_depth;
	enum shim_lost lost_cause;
	uint64_t retry_clock;
	struct chunk chunks[SHIM_FILE_CHUNKS];
	unsigned chunk_count;
	char *pool, *pool_end; /* struct stack come from here */
	struct trace *trace;   /* path_writer's, or NULL */
	uint32_t tracks;
	void *slot[PATH_SLOTS]; /* words of profilers: path_add_slot() */
	struct jump jumps[JUMPS];
	struct hot *hot; /* tree_hot of its thread, or NULL */
	uint64_t life;	 /* number of this use by a thread, over all trees */
	struct node_data *data; /* owned by node_data.c */
};

/* The data of each thread that the fast path reads. */
struct hot {
	struct shim_node *current;
	/* a word below the low end of the stack in use */
	uintptr_t below;
	uint64_t cache_mask; /* mask of byte offsets in the cache */
	struct shim_node **cache;
	const volatile uint64_t *tick;
	uint64_t last; /* the tick at the end of the last hook */
	struct tree *tree;
	struct trace *trace;
	uint64_t retry_clock; /* no tree could be made; next try then */
	/* number of reasons why other tasks use this same data: a clone without its
	 * own, a vfork child */
	unsigned shared;
	enum shim_lost cause;
	bool no_clock;	 /* shim_clock_read() would fault here */
	uint32_t starts; /* the tree's */
};

/* The node of no call: it matches no function, and no frame fits below it. */
extern struct shim_node tree_nobody;

/* The node in each empty cache entry. */
extern struct shim_node tree_no_child;

extern __thread struct hot tree_hot;
extern struct tree *trees;
extern struct tree
	*trees_asked; /* the last tree that was checked for an ended thread */
extern enum clock tree_mode;
extern bool tree_has_file; /* else the nodes are in private memory */
extern const volatile uint64_t *tree_tick;
extern uint64_t tree_long_clock; /* LONG_NS in clock units */

extern uint32_t tree_starts; /* how often the hooks were enabled again */

/*
 * Stack pointers are multiples of 8, so a frame has three bits for flags.  A call that
 * was open while hooks were off is in doubt.  Its function then carries
 * SHIM_NODE_EXACT, so that its leave misses the fast path.
 */
#define FRAME_IN_DOUBT	1u
#define FRAME_WAS_EXACT 2u /* the function had SHIM_NODE_EXACT before */
#define FRAME_LEFT_OUT	4u /* its enter is not in the trace */
#define FRAME_WAITS	2u /* with FRAME_LEFT_OUT: not yet; not in doubt */
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
 * Another process may truncate the file at any time; its nodes then read as zero.  The
 * fast path reads the parent before it compares the function, which a node of zeroes
 * does not match.
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

static inline uint64_t hash(const struct shim_node *parent, uint64_t function,
			    uint16_t group)
{
	return ((uintptr_t)parent >> 6 ^ function ^ (uint64_t)group << 48) *
	       0x9e3779b97f4a7c15ull;
}

static inline struct shim_node *find(const struct table *table,
				     struct shim_node *parent,
				     uint64_t function, uint16_t group)
{
	uint64_t mask = (1ull << (64 - table->shift)) - 1;
	uint64_t i = hash(parent, function, group) >> table->shift;
	struct shim_node *node;

	while ((node = table->slot[i]) != NULL) {
		if (parent_of(node) == parent && address_of(node) == function &&
		    node->group == group)
			return node;
		i = (i + 1) & mask;
	}
	return NULL;
}

/* The cache entry for the child; @hint tells paths apart.  The mask is read before the
 * cache: a signal handler between the two reads can only have stored a larger cache. */
static inline struct shim_node **cache_place(uint32_t hint)
{
	uint64_t mask = *(volatile uint64_t *)&tree_hot.cache_mask;
	char *cache = *(char *volatile *)&tree_hot.cache;

	return (struct shim_node **)(void *)(cache + (hint & mask));
}

/* The mask of a cache with @entries entries, in bytes. */
static inline uint64_t cache_mask_of(uint64_t entries)
{
	return (entries - 1) * sizeof(struct shim_node *);
}

/* The offset of @sp in its stack.  In a node, 0 means that the call is closed. */
static inline uint64_t frame_of(uintptr_t sp, uintptr_t low)
{
	return sp - low;
}

/* The value of @below where the clock must not be read or each call must take the slow
 * path: every frame is then at least this far above it. */
#define HOT_NOWHERE ((uintptr_t)1 << 63)

static inline bool is_far(uint64_t frame)
{
	return (int64_t)frame < 0;
}

/* Turns the fast path off for this thread. */
static inline void tree_hide(void)
{
	tree_hot.below = HOT_NOWHERE;
	tree_hot.current = &tree_nobody;
}

/* The frame of @sp in the stack in use.  (A hook has @sp - 8 at hand: its own stack
 * pointer is a word below the program's.) */
static inline uint64_t frame_here(uintptr_t sp)
{
	sp -= sizeof(uintptr_t);
	__asm__(""
		: "+r"(sp)); /* else compilers put it after the subtraction */
	return sp - tree_hot.below;
}

/* A stack pointer points at the word that was pushed last: it may be the upper end of
 * its stack and cannot be the lower one. */
static inline bool contains(const struct stack *stack, uintptr_t sp)
{
	return sp - 1 - stack->low < stack->high - stack->low;
}

/* --- nodes.c --- */

/* Adds @memory as a further chunk for nodes; false: SHIM_FILE_CHUNKS are in use. */
bool tree_add_chunk(struct tree *tree, void *memory, size_t size);

/* Gets at least @least bytes for nodes and stores the size in *@size; NULL sets
 * *@cause. */
void *tree_get_memory(struct tree *tree, size_t least, size_t *size,
		      enum shim_lost *cause);

/* @size zeroed bytes of the file; NULL sets lost_cause. */
void *tree_take(struct tree *tree, size_t size);

/* An empty table with 2^(64 - @shift) slots, or NULL. */
struct table *tree_make_table(uint64_t shift);

/* Makes the child of @parent for @function and @group (0: none); NULL sets
 * lost_cause. */
COLD struct shim_node *node_make(struct tree *tree, struct shim_node *parent,
				 uint64_t function, uint16_t group);

/* Gives @node the extra node of calltree:exact; its last call took @duration.  The
 * first call needs none: the path's time is its duration. */
COLD void node_add_extra(struct shim_node *node, uint64_t duration);

/* Counts a @duration outside the range of @extra. */
COLD void node_widen(struct shim_extra_node *extra, uint64_t duration);

/* The tick has changed since the end of the last hook.  It was @before when this hook
 * began, in a call of @node, and is @after now. */
COLD void node_ticked(struct shim_node *node, uint64_t before, uint64_t after);

/* Changes the clock of @node's next calls if their average length calls for it. */
COLD void node_choose_clock(struct shim_node *node);

/* The duration of @node's open call, for close_call. */
uint64_t node_duration(struct shim_node *node);

/* Whether @wanted is @node or one of its callers. */
bool node_is_below(const struct shim_node *node,
		   const struct shim_node *wanted);

/* Calls that end without their leave: their number, and the time when they were ended,
 * by both clocks. */
struct ended_calls {
	uint64_t calls;
	uint64_t time, tick;
};

/* Ends the call of @node, if it is open. */
void node_end_unwound(struct shim_node *node, struct ended_calls *unwound);

/* Adds the calls of @unwound to the recording's count, once all are ended. */
void node_count_unwound(const struct ended_calls *unwound);

/* Ends the calls from @node outwards, up to @outer, which stays open and is returned.
 * The function uses only local state: a signal handler that comes between finds the
 * thread unchanged. */
struct shim_node *node_unwind(struct shim_node *node,
			      const struct shim_node *outer);

/* --- threads.c --- */

struct stack *tree_add_stack(struct tree *tree, uintptr_t low, uintptr_t high);

/* The smallest known stack that holds @sp, or NULL. */
struct stack *tree_known_stack(struct tree *tree, uintptr_t sp);

/* Gives @stack, a coroutine's, a root of its own. */
void tree_give_root(struct tree *tree, struct stack *stack);

/* Makes the stack that holds @sp the one in use.  Signals must be blocked. */
void tree_switch_stack(struct tree *tree, uintptr_t sp);

/* Stores the innermost open call and its stack, in the tree and for the fast path. */
void tree_publish(struct tree *tree, struct stack *stack,
		  struct shim_node *current);

/* Takes over what the fast path did since the last tree_publish().  Returns the
 * innermost open call; unless signals are blocked, tree->current may be another one by
 * then. */
struct shim_node *tree_collect(struct tree *tree);

/* The latest tree of task @tid, or NULL. */
struct tree *tree_of_task(uint32_t tid);

/* Forgets all trees, in a forked child: they belong to the parent. */
void tree_forget_all(void);

/* The calling task's tree, made if it has none; NULL: the call is lost. */
COLD struct tree *tree_get(uintptr_t sp);

/* The tree, stack and innermost call of an event.  They are kept in this copy because a
 * signal handler may change the tree's fields at any moment. */
struct place {
	struct tree *tree;
	struct stack *stack;
	struct shim_node *current;
};

/* Fills @place for an event at @sp; false: there is no tree. */
bool tree_find_place(struct place *place, struct tree *tree, uintptr_t sp);

/* The innermost call that is open at stack pointer @sp, and its *@place; NULL: there is
 * no tree. */
struct shim_node *tree_find_caller(struct place *place, uintptr_t sp);

/* The innermost call of @tree's thread, read by another thread; async.  NULL if the
 * thread's memory cannot be read any more. */
struct shim_node *tree_look_at(const struct tree *tree);

/* Ends the calls whose frames lie below @sp.  Returns the innermost call that stays. */
struct shim_node *tree_drop_stale(const struct stack *stack,
				  struct shim_node *node, uintptr_t sp);

/* --- node_data.c --- */

/*
 * A word of each profiler for a node, one per slot (path_add_slot).  (@extra of a node
 * is faster, and has room for one word.)
 *
 * tree_find_data - the word, or 0
 * tree_set_data - false: no memory, lost_cause is set
 */
uint64_t tree_find_data(const struct tree *tree, const struct shim_node *node,
			unsigned slot);
bool tree_set_data(struct tree *tree, const struct shim_node *node,
		   unsigned slot, uint64_t word);

/* --- restart.c --- */

/* The calling thread's first events after the hooks were enabled again: puts all open
 * calls in doubt, and ends those that the first call on each stack shows to be over. */
COLD void tree_look_back(uint64_t function, const void *site, uintptr_t sp,
			 bool is_enter);

/* Takes @node out of doubt: its call is being closed, or never ended. */
void node_trust(struct shim_node *node);

/* Puts @node in doubt: its leave may have been missed. */
void node_doubt(struct shim_node *node);

/* The call of @function that its leave ends, or NULL: its enter was missed. */
struct shim_node *tree_find_left(const struct place *at, uint64_t function,
				 const void *site, uintptr_t sp);

/* Ends the calls in doubt that cannot be open beside this call of @function. */
struct shim_node *tree_drop_ended(const struct stack *stack,
				  struct shim_node *node, uint64_t function,
				  const void *site, uintptr_t sp);

/* --- events.c --- */

/* Sets the callbacks for all events of the engine. */
void tree_listen(struct shim_profiler_handle *handle);

/* --- open_calls.c --- */

struct shim_open_calls;

/*
 * The innermost call of @tree's thread, which is the calling one, that is open at stack
 * pointer @sp; its root if there is none.  *@frame gets the stack pointer of that call,
 * or 0.
 */
struct shim_node *tree_innermost(struct tree *tree, uintptr_t sp,
				 uintptr_t *frame);

void tree_tell_open(struct shim_profiler *profiler,
		    struct shim_open_calls *calls);

/* --- cost.c --- */

/* Measures the cost of a call and stores it in @meta. */
void tree_describe_cost(struct shim_meta *meta);

/* The tick of threads that have no tree yet. */
extern const uint64_t cost_no_tick;

/* --- calls.c --- */

/* The fast paths of calltree:counts and calltree:exact. */
void tree_counts_enter(shim_function function, const void *site);
void tree_exact_enter(shim_function function, const void *site);
void tree_exact_leave(shim_function function, const void *site);

/* The part of tree_exact_leave that is in C. */
void tree_exact_leave_any(shim_function function, const void *site);

/* The slow path of a hook.  (Calls in groups never match on the fast path: their nodes'
 * functions have SHIM_NODE_EXACT.)  @clock is the time that the hook has read; 0: it
 * has read none. */
void tree_enter_missed(uint64_t function, const void *site, uintptr_t sp,
		       struct shim_node *current, uint64_t clock);

void tree_leave_missed(uint64_t function, const void *site, uintptr_t sp);

/* By enum clock: enter, leave; the second after calls were disabled once. */
extern const shim_site_hook tree_hooks[4][2];
extern const shim_site_hook tree_hooks_again[4][2];

/* The hooks that get the stack pointer, of path_writer or of the mode. */
const shim_frame_hook *tree_frame_hooks(void);

/* Enters a call that a hook has deferred; beside other profilers, any call. */
void tree_enter_deferred(shim_function function, const void *site, uintptr_t sp,
			 shim_elt_info info);

/*
 * Begins the entry of a call with its arguments, before they are read.  The caller ends
 * it with tree_end_own().
 */
void tree_begin_asking(shim_function function, const void *site, uintptr_t sp);

/* Enters a call of @function in @group, with @arguments for path_writer.  Returns its
 * node, or NULL if the call is lost. */
struct shim_node *tree_enter_group(shim_function function, uint16_t group,
				   uintptr_t sp, void *arguments);

/* Whether there is a path_writer, which writes each call. */
extern bool tree_is_traced;

/* --- begin.c --- */

/*
 * What profilers need of the tree.  A profiler states its needs when it is started,
 * before it creates a handle of its own: the tree gets events first.  After all
 * profilers have been started, the tree begins, with all that they need.
 *
 * tree_need_calls - calls are counted in the recording, and timed by @clock or a more
 * exact one
 * tree_need_writer - each call is written
 *
 * They return false, and log the reason, if the tree runs already and cannot do it.
 */
bool tree_need_calls(enum clock clock, const char *profiler);
bool tree_need_writer(const struct path_writer *writer);
void tree_begin(void);

/* The hooks check for a look back from the start, as after a restart. */
void tree_need_look_back(void);

/* The user chose calltree; other profilers need only its tree. */
extern bool tree_is_asked;

/* --- names.c --- */

/* Whether the linker name @name is one that a user means by @wanted. */
bool path_is_named(const char *name, const char *wanted);

#endif
