/*
 * Trees and nodes, which all files of the call-path engine share.
 *
 *     begin.c         the start
 *     calls.c         the hooks: enter and leave; enter.h: their fast path
 *     nodes.c         paths: their memory, search and creation
 *     node_data.c     data of profilers for a node
 *     node_map.c nodes of profilers, apart from those of calls
 *     threads.c       a thread's tree, and the stacks its calls are on
 *     events.c        jumps, exceptions, coroutines, forks, unloading
 *     made_stacks.c   the stacks of coroutines, for other threads
 *     restart.c       calls that were open while the hooks were off
 *     doubt.c         open calls that may have ended unseen
 *     throttled.c     functions that are off at their call sites
 *     throttled_calls.c  their calls: sites are switched, or counted
 *     strip.c         removal of their open calls
 *     older.c         calls that were open when shim was attached
 *     open_calls.c    the open calls, for the unwinder
 *     path_unwind.c   paths in code without instrumentation
 *     names.c         names of functions
 *     state.c         variables that all files share
 *     cost.c          the cost of a call of the hooks
 *     cpu_time.c      processor time instead of time
 *
 * Headers with the names of these files declare their functions.  Inline functions that
 * the fast path needs are here.
 */
#ifndef PATH_H
#define PATH_H

#include <shim/builtin.h>
#include <shim/cpu.h>
#include <shim/hooks.h>
#include <shim/record.h>

#include "path/client.h"
#include "path/needs.h"

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define HOT	    __attribute__((hot, aligned(64)))
#define COLD	    __attribute__((cold, noinline))

#define CACHE_MIN 512
#define CACHE_MAX 16384
#define JUMPS	  64

struct stack {
	uintptr_t low, high;
	struct stack *next;
	struct shim_node *current; /* while another stack is in use */
	struct shim_node *base;	   /* its frames lie above this node */
	bool is_signal; /* of a handler: the alternate stack, or shim's own */
	bool in_doubt;	/* no call has begun on it since a restart */
	bool is_new;	/* it may have calls that are older than an attach */
	bool is_guess;	/* no event announced it */
	struct stack *interrupted; /* is_signal: the one below it */
	uint32_t track;		   /* its number in the trace */
	uint32_t resumes;	   /* the trace's, at its list of open calls */
	/* makecontext's, or NULL; and its changes when this thread took it */
	struct made_stack *made;
	uint32_t changes;
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
	uint64_t first; /* address */
};

/* The target of a jump: setjmp stored it. */
struct jump {
	const void *buffer;
	struct shim_node *node;
	uintptr_t sp;
};

/* One thread's tree.  After the thread has ended, the next new thread continues the
 * file under another root. */
struct tree {
	struct tree *next;
	uint32_t tid;
	bool careful;	 /* every event takes the slow path */
	bool closed;	 /* system calls are forbidden from now on */
	uint32_t starts; /* the value of tree_starts at its last look back */
	uint32_t restarts,
		throttles; /* the values of tree_restarts and tree_throttles at the same */
	struct shim_record *record;
	struct chunk *chunk;
	struct table *table;
	struct shim_node **cache;
	uint64_t cache_mask;
	struct shim_thread_node *root;
	struct shim_node *current; /* valid while tree_hot.current is invalid */
	struct stack *stack;
	struct stack *stacks;
	struct stack main_stack;
	uint64_t landed; /* the frame in which an exception landed, or 0 */
	/* Set without memory: calls at lost_sp and below only count as lost. */
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
	/* Of a task that shares it: tree_hot of the thread whose data it uses. */
	struct hot *lender;
	int64_t computed; /* cpu_time.c: the processor time until the last tick */
	uint64_t waited_rest; /* less than a SHIM_WAITING_UNIT */
	uint64_t life;	    /* number of this use by a thread, over all trees */
	uint32_t recording; /* the value of tree_recording when it was made */
	struct node_data *data; /* owned by node_data.c */
	struct step *steps;	/* owned by strip.c */
	size_t step_room;
	uint64_t *counters;    /* of throttled.c, or NULL */
	uint64_t attach_clock; /* of an attach at which the thread ran, or 0 */
	/* In such a thread, the function whose call begins or ends, while its stack is
	 * sought.  (Here, because the thread may have little stack.) */
	uint64_t entered, left;
	uintptr_t event_sp;
	/* The alternate signal stack.  Is in no list; empty if the thread has none. */
	struct stack signal_stack;
	/* The value of shim_signal_stack_changes at which its bounds were read. */
	uint32_t signal_changes;
};

/* The data of each thread that the fast path reads. */
struct hot {
	struct shim_node *current;
	/* a word below the low end of the stack in use */
	uintptr_t below;
	uint64_t cache_mask; /* mask of byte offsets in the cache */
	struct shim_node **cache;
	const volatile uint64_t *tick;
	uint64_t last;	/* the tick at the end of the last hook */
	uint64_t clock; /* the time of @last in clock units */
	struct tree *tree;
	struct trace *trace;
	uint64_t retry_clock; /* the time of the next try to make a tree */
	/* number of other tasks that use this same data: clones without their own,
	 * vfork children */
	unsigned shared;
	enum shim_lost cause;
	bool no_clock;	    /* shim_clock_read() would fault here */
	uint32_t starts;    /* the tree's */
	uint32_t recording; /* the tree's, or that of the thread's last event */
};

/* The current node outside of calls: it matches no function, and no frame fits below
 * it. */
extern struct shim_node tree_no_call;

/* The node in each empty cache entry. */
extern struct shim_node tree_no_child;
/* The cache of a thread without a tree. */
extern struct shim_node *tree_no_cache[1];

extern __thread struct hot tree_hot;
extern struct tree *trees;
extern struct tree
	*trees_checked; /* the last tree that was checked for an ended thread */
extern enum clock tree_mode;
extern bool tree_has_file; /* false: the nodes are in private memory */
extern const volatile uint64_t *tree_tick;
extern bool tree_is_cpu;	 /* times exclude the waiting of threads */
extern uint64_t tree_long_clock; /* LONG_NS in clock units */

/* tree_restarts: how often the hooks were enabled again.  tree_starts: the same, plus
 * how often functions were switched off. */
extern uint32_t tree_restarts, tree_starts;

/* The number of the process's recording.  A tree belongs to one recording, and each thread
 * makes another one at its first event in the next. */
#define FIRST_RECORDING 1
extern uint32_t tree_recording;

/* Whether the calling thread's tree belongs to a former recording. */
static inline bool tree_is_former(void)
{
	return UNLIKELY(tree_hot.recording !=
			__atomic_load_n(&tree_recording, __ATOMIC_RELAXED));
}

/*
 * Flags in the three lowest bits of a frame, because stack pointers are multiples of 8.
 * A call that was open while hooks were off is in doubt.  Its function then carries
 * SHIM_NODE_EXACT, so that its leave misses the fast path.
 */
#define FRAME_IN_DOUBT	1u
#define FRAME_WAS_EXACT 2u /* the function had SHIM_NODE_EXACT before */
#define FRAME_LEFT_OUT	4u /* its enter is not in the trace */
#define FRAME_WAITS	2u /* with FRAME_LEFT_OUT: its enter may follow later */
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

	return LIKELY(parent) ? parent : &tree_no_call;
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

/* The cache entry for the child; @hint differs between paths.  The mask is read before
 * the cache: a signal handler between the two reads can only have stored a larger
 * cache. */
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

/* The value of @below if the clock must not be read, or if each call must take the slow
 * path.  Every frame is then at least this far above @below. */
#define HOT_NOWHERE ((uintptr_t)1 << 63)

static inline bool is_far(uint64_t frame)
{
	return (int64_t)frame < 0;
}

/* Turns the fast path off for this thread. */
static inline void tree_hide(void)
{
	tree_hot.below = HOT_NOWHERE;
	tree_hot.current = &tree_no_call;
	*shim_thread_counters() = NULL;
}

/* The frame of @sp in the stack in use.  (A hook has @sp - 8 at hand: its own stack
 * pointer is a word below the program's.) */
static inline uint64_t frame_here(uintptr_t sp)
{
	sp -= sizeof(uintptr_t);
	__asm__(""
		: "+r"(sp)); /* otherwise compilers put it after the subtraction */
	return sp - tree_hot.below;
}

/* Whether the stack holds @sp.  A stack pointer points at the word that was pushed
 * last, so it may be the upper end of its stack, but not the lower end. */
static inline bool contains(const struct stack *stack, uintptr_t sp)
{
	return sp - 1 - stack->low < stack->high - stack->low;
}

#endif
