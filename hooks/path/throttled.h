/*
 * Functions that are switched off at their call sites, because their calls cost too
 * much.  The budget room decides which functions, and when.
 *
 * A function may also be counted while it is off: its calls of the enter hook lead to
 * code that adds to a counter of the thread.  So all its calls are known, without paths.
 *
 * shim learns of a call site when its call reaches the slow path: the nodes of a
 * function that is off carry SHIM_NODE_EXACT, so no call of it matches on the fast
 * path.  The slow path ignores or counts the call.  It changes the code of several sites
 * together: after some calls of them, or at the next sample.
 *
 * The engine may miss the ends of calls that were open when their function was switched
 * off.  So each thread removes these calls from its open path at its next hook or
 * event, and their callees continue below their callers.  After that, a leave of the
 * function has no enter, and is ignored.  Recorded calls of the function are always
 * inside unrecorded calls.
 */
#ifndef PATH_THROTTLED_H
#define PATH_THROTTLED_H

#include "path/path.h"

enum throttled_state {
	THROTTLED_OFF,
	THROTTLED_ARMING, /* its sites are being switched */
	THROTTLED_BURST,  /* on for a short while */
	THROTTLED_ON,	  /* permanently: a site cannot be switched */
	THROTTLED_GONE,	  /* its image was unloaded */
};

struct throttled_site {
	struct throttled_site *next;
	uintptr_t address; /* 0: jumps to the leave hook, or a mark */
	bool gone;
	bool is_enter;
	bool is_mark;	 /* with no address: switches enters, too */
	bool is_pending; /* its code is not changed yet */
};

/* A node of the function, and its tree. */
struct throttled_place {
	struct throttled_place *next;
	struct shim_node *node;
	struct tree *tree;
};

struct throttled {
	uint64_t function;
	uint32_t state; /* enum throttled_state */
	uint32_t epoch; /* tree_throttles when it went off last */
	struct throttled_site *sites;
	struct throttled_place *places;
	struct shim_throttled_node
		*node; /* in a file; NULL: no memory for it */
	/* For the budget: the calls in @ns of processor time, and their square root. */
	uint64_t calls, ns;
	uint64_t root;
	uint64_t begin; /* calls at the begin of the burst */
	/* The credit of the function, and the credit that a burst needs.  2^20 is one
	 * burst. */
	uint64_t credit, need;
	/* The rate and the weight of the last burst; twice the area under the rates of
	 * all bursts; the sum of the squared differences between neighbours. */
	uint64_t rate, weight;
	unsigned __int128 area, squares;
	uint32_t strays;  /* calls of sites that are off, since it went off */
	uint32_t counter; /* 0: none; kept when the function goes off */
	bool is_counted;
	/* Bursts may count with this one; 0: none yet.  Its calls are in no report. */
	uint32_t burst_counter;
	bool is_burst_counted; /* now */
	bool is_refused;       /* its sites cannot count in this burst */
	uint8_t refusals;      /* bursts in which they could not */
};

/* All functions that were ever switched off, in the order of their numbers. */
extern uint32_t throttled_count;
struct throttled *throttled_get(uint32_t number);

/* The number of times that functions were switched off.  A tree with another value must
 * remove calls. */
extern uint32_t tree_throttles;

/* The entry of the function at @address, or NULL.  Async. */
struct throttled *throttled_search(uint64_t address);

static inline bool throttled_is_used(void)
{
	return UNLIKELY(__atomic_load_n(&throttled_count, __ATOMIC_RELAXED) !=
			0);
}

static inline struct throttled *throttled_find(uint64_t address)
{
	return throttled_is_used() ? throttled_search(address) : NULL;
}

static inline uint32_t throttled_state(const struct throttled *throttled)
{
	return __atomic_load_n(&throttled->state, __ATOMIC_ACQUIRE);
}

static inline bool throttled_is_off(const struct throttled *throttled)
{
	return throttled_state(throttled) <= THROTTLED_ARMING;
}

/* --- for the slow path --- */

/* Called in the hook of a function that may be off.  True if the call is ignored.
 * Callers check throttled_is_used() first, so that exact calls without a budget need no
 * call and no stack for it. */
bool throttled_ignores_enter(uint64_t function, const void *site, uintptr_t sp);
bool throttled_ignores_leave(uint64_t function, const void *site, uintptr_t sp);

/* Called for a new node: its calls miss the fast path while its function is off. */
void throttled_node_made(struct tree *tree, struct shim_node *node);

/* Whether the open call of @node began before its function was switched off.  @epoch is
 * the tree's. */
bool throttled_is_stale(const struct shim_node *node, uint32_t epoch);

/* Removes these calls from the open paths of @tree.  Returns the innermost call in
 * place of @current.  Signals must be blocked.  (strip.c) */
COLD struct shim_node *tree_strip(struct tree *tree, struct shim_node *current);

static inline bool must_strip(const struct tree *tree)
{
	return UNLIKELY(tree->throttles !=
			__atomic_load_n(&tree_throttles, __ATOMIC_ACQUIRE));
}

/* --- for the budget; one caller at a time --- */

/*
 * throttled_add         - makes an entry, which is off, or is counted by @counter if that is
 *                         not 0; NULL without memory
 * throttled_add_place   - adds a node of the function, and marks it
 * throttled_begin_epoch - returns the epoch of the functions that are switched off now
 * throttled_end_epoch   - after that, threads remove the open calls of these functions
 */
struct throttled *throttled_add(uint64_t function, uint32_t counter);
void throttled_add_place(struct throttled *throttled, struct tree *tree,
			 struct shim_node *node);
uint32_t throttled_begin_epoch(void);
void throttled_end_epoch(void);

/* Marks the nodes of the function for the slow path, or for the fast path. */
void throttled_mark(const struct throttled *throttled, bool is_slow);

/* The sites of @throttled, for shim_profiler_switch_calls.  Stores at most @room sites
 * from number @first on.  Returns their number. */
uint32_t throttled_list(const struct throttled *throttled, uint32_t first,
			uint32_t room, struct shim_hook_call *calls);
/* The same for shim_profiler_count_calls, with the counter for bursts: only calls of the
 * enter hook. */
uint32_t throttled_list_enters(const struct throttled *throttled,
			       uint32_t first, uint32_t room,
			       struct shim_counted_call *calls);

/* Small private memory, for all threads; NULL: there is none. */
void *throttled_take(size_t size);

/* Changes the code of the call sites that have been met since the last time. */
void throttled_settle(void);

/* After a change of the filters, calls that are counted reach the hooks again: the filter
 * may exclude their functions now. */
void throttled_follow_filters(void);

/*
 * throttled_switch  - switches the sites of @count functions, in as few batches as possible;
 *                     false if a site could not be switched
 * throttled_end_counting - switches off what shim_profiler_count_calls has switched on: the
 *                     calls of the enter hook
 * throttled_give_back - called after the sites of a function were changed: if its object has
 *                     gone meanwhile, another one may be there, whose calls are on again
 * throttled_uncount - switches @count functions off that were counted, and reorders their
 *                     list.  One whose code cannot be changed is on permanently
 * throttled_counted - the calls that were counted
 * throttled_sum     - those of all functions with counters up to @counter
 * throttled_sum_in  - the same in one tree
 * throttled_release - forgets a function, whose calls are recorded again: one that was counted,
 *                     in a fork child, where its calls have no paths yet; or one whose
 *                     object may have gone
 */
bool throttled_switch(struct throttled *const *list, uint32_t count, bool on);
void throttled_end_counting(struct throttled *const *list, uint32_t count);
void throttled_give_back(const struct throttled *throttled);
void throttled_uncount(struct throttled **list, uint32_t count);
uint64_t throttled_counted(const struct throttled *throttled);
uint64_t throttled_sum(uint32_t counter);
uint64_t throttled_sum_in(const struct tree *tree, uint32_t counter);
void throttled_release(struct throttled *throttled);

static inline bool throttled_is_counted(const struct throttled *throttled)
{
	return __atomic_load_n(&throttled->is_counted, __ATOMIC_ACQUIRE);
}

static inline bool throttled_is_burst_counted(const struct throttled *throttled)
{
	return __atomic_load_n(&throttled->is_burst_counted, __ATOMIC_ACQUIRE);
}

/* In a fork child: forgets the sites whose code the parent was about to change. */
void throttled_forget_pending(void);

/* The number of images that were unloaded so far: an entry that is made while it grows may be
 * of one that is gone. */
uint32_t throttled_unloads(void);

/* Called when an image was unloaded, and in a fork child. */
void throttled_image_gone(uintptr_t low, uintptr_t high, uint32_t generation);
void throttled_forked(void);

/* The handle that switches the call sites of recorded functions. */
extern struct shim_profiler_handle *tree_handle;

#endif
