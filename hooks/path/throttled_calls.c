/*
 * The calls of functions that are switched off: the learning of their call sites, which
 * are then off or counted.
 */
#include "path/nodes.h"
#include "path/opening.h"
#include "path/restart.h"
#include "path/threads.h"
#include "path/throttled.h"

#include <shim/builtin.h>

#include <shim/banned.h>

/* So many calls of sites that are off come in a short while; more cannot be switched. */
#define STRAYS_MAX 256

/* --- call sites --- */

static bool knows(const struct throttled *throttled, uintptr_t address)
{
	const struct throttled_site *site = __atomic_load_n(&throttled->sites,
							    __ATOMIC_ACQUIRE);

	while (site && (site->gone || site->address != address))
		site = site->next;
	return site != NULL;
}

static void add_site(struct throttled *throttled, uintptr_t address)
{
	struct throttled_site *site = throttled_take(sizeof(*site));

	/* Without memory it stays off in bursts, which then count too few. */
	if (!site)
		return;
	site->address = address;
	site->next = __atomic_load_n(&throttled->sites, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&throttled->sites, &site->next,
					    site, false, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED))
		;
	if (throttled->node)
		__atomic_fetch_add(&throttled->node->sites, 1,
				   __ATOMIC_RELAXED);
}

static void switch_all(const struct throttled *throttled, bool on)
{
	struct shim_hook_call calls[8];
	uint32_t first = 0, count;

	while ((count = throttled_list(throttled, first, 8, calls)) > 0) {
		shim_profiler_switch_calls(tree_handle, on, count, calls);
		first += count;
	}
}

void throttled_give_up(struct throttled *throttled)
{
	struct shim_meta *meta = shim_record_meta();
	bool was_counted;

	if (__atomic_exchange_n(&throttled->state, THROTTLED_ON,
				__ATOMIC_ACQ_REL) == THROTTLED_ON)
		return;
	was_counted = __atomic_exchange_n(&throttled->is_counted, false,
					  __ATOMIC_ACQ_REL);
	throttled_mark(throttled, false);
	switch_all(throttled, true);
	/* The call that failed first is recorded: none is missing. */
	if (throttled->node)
		throttled->node->state = !throttled->sites ?
						 SHIM_THROTTLED_NOT :
					 was_counted ? SHIM_THROTTLED_COUNTED :
						       SHIM_THROTTLED_FAILED;
	if (meta)
		__atomic_fetch_add(&meta->throttle_failed, 1, __ATOMIC_RELAXED);
}

/* --- counters --- */

static uint64_t *make_counters(struct tree *tree)
{
	uint64_t signals = shim_signals_block();
	struct shim_counters_node *node = tree->counters ?
						  NULL :
						  tree_take(tree,
							    sizeof(*node));

	if (node) {
		__atomic_store_n(&node->function, SHIM_NODE_COUNTERS,
				 __ATOMIC_RELEASE);
		__atomic_store_n(&tree->counters, node->calls,
				 __ATOMIC_RELEASE);
	}
	shim_signals_restore(signals);
	return tree->counters;
}

/* Counts a call that has reached the hook.  False: there is no memory. */
static bool count_here(const struct throttled *throttled, uintptr_t sp)
{
	struct tree *tree = tree_get(sp);
	uint64_t *counters = tree ? tree->counters : NULL;

	if (tree && !counters)
		counters = make_counters(tree);
	if (!counters)
		return false;
	shim_local_add(&counters[throttled->counter], 1);
	if (!tree_hot.shared)
		*shim_thread_counters() = counters;
	return true;
}

uint64_t throttled_counted(const struct throttled *throttled)
{
	uint64_t sum = 0;

	for (const struct tree *tree =
		     __atomic_load_n(&trees, __ATOMIC_ACQUIRE);
	     throttled->counter && tree; tree = tree->next) {
		const uint64_t *counters = __atomic_load_n(&tree->counters,
							   __ATOMIC_ACQUIRE);

		if (counters)
			sum += __atomic_load_n(&counters[throttled->counter],
					       __ATOMIC_RELAXED);
	}
	return sum;
}

bool throttled_uncount(struct throttled *throttled)
{
	struct shim_throttled_node *node = throttled->node;

	if (!__atomic_exchange_n(&throttled->is_counted, false,
				 __ATOMIC_ACQ_REL))
		return false;
	throttled->strays = 0;
	if (!node)
		return true;
	node->weight = shim_record_meta() ? shim_record_meta()->sample_weight :
					    0;
	__atomic_store_n(&node->state, SHIM_THROTTLED_OFF, __ATOMIC_RELEASE);
	return true;
}

/* No address is its function's any more. */
void throttled_release(struct throttled *throttled)
{
	switch_all(throttled, true);
	throttled->is_counted = false;
	throttled->state = THROTTLED_GONE;
	throttled->function = ~0ull;
}

/* --- calls of sites --- */

/* Counts the call that reached the enter hook at @sp, and lets its site count the next
 * ones; false: it cannot be counted. */
static bool count_site(struct throttled *throttled, uint64_t function,
		       uintptr_t sp)
{
	struct shim_hook_call call = { function, shim_hook_caller(sp) };
	bool is_known = knows(throttled, call.address);
	bool is_first = *shim_thread_counters() == NULL;

	if (is_known && !is_first && throttled->strays++ >= STRAYS_MAX)
		return false;
	/* The site is off for a moment, in which calls of other threads are lost. */
	if (!is_known && __atomic_load_n(&trees, __ATOMIC_ACQUIRE) &&
	    __atomic_load_n(&trees, __ATOMIC_ACQUIRE)->next)
		return false;
	if (!is_known) {
		if (shim_profiler_count_calls(tree_handle, throttled->counter,
					      1, &call) != SHIM_OK)
			return false;
		add_site(throttled, call.address);
		/* It is not in the list of its function, or came too late. */
		if (!throttled_is_counted(throttled) ||
		    !knows(throttled, call.address)) {
			shim_profiler_switch_calls(tree_handle, false, 1,
						   &call);
			return false;
		}
	}
	return count_here(throttled, sp);
}

/* Switches the call that reached a hook at @sp; false: it is recorded. */
static bool forgo(struct throttled *throttled, uint64_t function,
		  const void *site, uintptr_t sp, bool is_leave)
{
	struct shim_hook_call call = { function, shim_hook_caller(sp) };
	bool is_known;

	if (!is_leave && throttled_is_counted(throttled)) {
		if (count_site(throttled, function, sp))
			return true;
		if (throttled_uncount(throttled))
			switch_all(throttled, false);
	}

	/* The function has jumped to the hook. */
	if (is_leave && call.address == (uintptr_t)site)
		call.address = 0;
	is_known = knows(throttled, call.address);
	/* Calls that were on their way, or of a jump that cannot be found. */
	if (is_known && throttled->strays++ > 0) {
		if (throttled->strays < STRAYS_MAX)
			return true;
		throttled_give_up(throttled);
		return false;
	}
	if (shim_profiler_switch_calls(tree_handle, false, 1, &call) !=
	    SHIM_OK) {
		throttled_give_up(throttled);
		return false;
	}
	if (!is_known)
		add_site(throttled, call.address);
	return true;
}

/* --- the slow path --- */

bool throttled_ignores_enter(uint64_t function, const void *site, uintptr_t sp)
{
	struct throttled *throttled = throttled_find(function);
	uint32_t state = throttled ? throttled_state(throttled) : THROTTLED_ON;

	if (state > THROTTLED_ARMING)
		return false;
	return state == THROTTLED_ARMING ||
	       forgo(throttled, function, site, sp, false);
}

/* Whether the leave of @function at @sp ends a recorded call.  A call that is open
 * farther up, which a signal handler has interrupted, or which recursed, is another
 * one: this leave is of a callee. */
static bool is_recorded(uint64_t function, const void *site, uintptr_t sp)
{
	const struct tree *tree = tree_hot.tree;
	const struct shim_node *node = tree_hot.current;
	const struct stack *stack = tree ? tree->stack : NULL;

	if (stack && !contains(stack, sp))
		stack = NULL;
	if (node == &tree_no_call && tree)
		node = tree->current;
	for (; node && !is_root(node); node = parent_of(node)) {
		if (stack && node == stack->base)
			stack = NULL;
		if (stack && tree_frame_ends(stack, node, site, sp))
			return false;
		if (address_of(node) == function)
			return true;
	}
	return false;
}

/* A leave whose enter was not recorded. */
bool throttled_ignores_leave(uint64_t function, const void *site, uintptr_t sp)
{
	struct throttled *throttled = throttled_find(function);

	if (!throttled)
		return false;
	if (throttled_state(throttled) == THROTTLED_OFF)
		forgo(throttled, function, site, sp, true);
	return !is_recorded(function, site, sp);
}
