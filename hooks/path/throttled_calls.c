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
#include <shim/info.h>

#include <shim/banned.h>

/* So many calls of sites that are off come in a short while; more cannot be switched. */
#define STRAYS_MAX 256

/* --- call sites --- */

static struct throttled_site *find_site(const struct throttled *throttled,
					uintptr_t address)
{
	struct throttled_site *site = __atomic_load_n(&throttled->sites,
						      __ATOMIC_ACQUIRE);

	while (site && (site->gone || site->address != address))
		site = site->next;
	return site;
}

/* Whether a leave without an address is of a mark.  Otherwise it is a jump to the leave hook, and
 * the function has calls of the enter hook. */
static bool has_mark(const struct throttled *throttled)
{
	enum shim_source source;

	return shim_function_source(throttled->function & SHIM_NODE_ADDRESS,
				    &source) != SHIM_OK ||
	       source != SHIM_SOURCE_HOOKS;
}

static struct throttled_site *add_site(struct throttled *throttled,
				       uintptr_t address, bool is_enter,
				       bool is_pending)
{
	struct throttled_site *site = throttled_take(sizeof(*site));

	/* Without memory it stays off in bursts, which then count too few. */
	if (!site)
		return NULL;
	site->address = address;
	site->is_enter = is_enter;
	site->is_mark = address == 0 && !is_enter && has_mark(throttled);
	site->is_pending = is_pending;
	site->next = __atomic_load_n(&throttled->sites, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&throttled->sites, &site->next,
					    site, false, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED))
		;
	if (throttled->node)
		__atomic_fetch_add(&throttled->node->sites, 1,
				   __ATOMIC_RELAXED);
	return site;
}

static bool switch_all(const struct throttled *throttled, bool on)
{
	struct shim_hook_call calls[8];
	uint32_t first = 0, count;
	bool all = true;

	while ((count = throttled_list(throttled, first, 8, calls)) > 0) {
		all &= shim_profiler_switch_calls(tree_handle, on, count,
						  calls) == SHIM_OK;
		first += count;
	}
	return all;
}

/* Switches the function on permanently. */
static void give_up(struct throttled *throttled, bool was_counted)
{
	struct shim_meta *meta = shim_record_meta();

	if (__atomic_exchange_n(&throttled->state, THROTTLED_ON,
				__ATOMIC_ACQ_REL) == THROTTLED_ON)
		return;
	was_counted |= __atomic_exchange_n(&throttled->is_counted, false,
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

/* The function's calls are not counted any more, and its sites are off if @is_off. */
static void end_counting(struct throttled *throttled, bool is_off)
{
	struct shim_throttled_node *node = throttled->node;

	/* Sites that still count must not be taken for ones that are off. */
	if (!is_off) {
		give_up(throttled, true);
		return;
	}
	throttled->strays = 0;
	if (!node)
		return;
	node->weight = shim_record_meta() ? shim_record_meta()->sample_weight :
					    0;
	__atomic_store_n(&node->state, SHIM_THROTTLED_OFF, __ATOMIC_RELEASE);
}

/* False: another thread has ended it. */
static bool begin_end(struct throttled *throttled)
{
	return __atomic_exchange_n(&throttled->is_counted, false,
				   __ATOMIC_ACQ_REL);
}

static void uncount(struct throttled *throttled)
{
	if (begin_end(throttled))
		end_counting(throttled, switch_all(throttled, false));
}

void throttled_uncount(struct throttled **list, uint32_t count)
{
	uint32_t kept = 0;
	bool are_off;

	for (uint32_t i = 0; i < count; i++)
		if (begin_end(list[i]))
			list[kept++] = list[i];
	are_off = throttled_switch(list, kept, false);
	for (uint32_t i = 0; i < kept; i++)
		end_counting(list[i], are_off || switch_all(list[i], false));
}

/* --- sites whose code is changed together --- */

#define PENDING_MAX   32 /* sites */
#define PENDING_CALLS 64 /* that reach the slow path meanwhile */

struct pending {
	struct throttled *throttled;
	struct throttled_site *site;
};

/* All but @pending_calls: the thread that has set @is_pending_used. */
static struct pending pending[PENDING_MAX];
static uint32_t pending_count, pending_calls;
static bool is_pending_used;

/* With signals blocked.  Nobody waits: the site is met again. */
static bool try_pending(uint64_t *signals)
{
	*signals = shim_signals_block();
	if (!__atomic_exchange_n(&is_pending_used, true, __ATOMIC_ACQUIRE))
		return true;
	shim_signals_restore(*signals);
	return false;
}

static void end_pending(uint64_t signals)
{
	__atomic_store_n(&is_pending_used, false, __ATOMIC_RELEASE);
	shim_signals_restore(signals);
}

/* Whether the code of the site must still change.  A function that is in a burst, or that
 * goes off now, has its sites switched by their list. */
static bool must_change(const struct pending *one)
{
	return !one->site->gone &&
	       throttled_state(one->throttled) == THROTTLED_OFF;
}

/* Whether the filter still admits the call.  If it may not, a later call of the site that
 * reaches the hook shows it. */
static bool is_admitted(const struct pending *one)
{
	if (shim_filter_admits(one->throttled->function) == 1)
		return true;
	one->site->gone = true;
	return false;
}

static void count_pending(void)
{
	static struct shim_counted_call calls[PENDING_MAX];
	static const struct pending *of[PENDING_MAX];
	uint32_t count = 0;

	for (uint32_t i = 0; i < pending_count; i++) {
		const struct pending *one = &pending[i];

		if (!one->site->is_enter || !must_change(one) ||
		    !throttled_is_counted(one->throttled) || !is_admitted(one))
			continue;
		of[count] = one;
		calls[count].address = one->site->address;
		calls[count].function = one->throttled->function;
		calls[count++].counter = one->throttled->counter;
	}
	if (count == 0)
		return;
	shim_profiler_count_calls(tree_handle, count, calls);
	for (uint32_t i = 0; i < count; i++)
		if (!calls[i].is_counted)
			uncount(of[i]->throttled);
}

static bool has_enter_site(const struct throttled *throttled)
{
	const struct throttled_site *site = __atomic_load_n(&throttled->sites,
							    __ATOMIC_ACQUIRE);

	while (site && (site->gone || !site->is_enter))
		site = site->next;
	return site != NULL;
}

/* Those of functions that are not counted, or not any more. */
static void switch_pending(void)
{
	static struct shim_hook_call calls[PENDING_MAX];
	static struct throttled *of[PENDING_MAX];
	uint32_t count = 0;

	for (uint32_t i = 0; i < pending_count; i++) {
		const struct pending *one = &pending[i];
		bool is_counted = throttled_is_counted(one->throttled);

		if (!must_change(one) || (one->site->is_enter && is_counted))
			continue;
		/* Its enter was not admitted (is_admitted), and must stay on. */
		if (is_counted && !has_enter_site(one->throttled)) {
			one->site->gone = true;
			continue;
		}
		of[count] = one->throttled;
		calls[count].function = one->throttled->function;
		calls[count++].address = one->site->address;
	}
	if (count == 0 || shim_profiler_switch_calls(tree_handle, false, count,
						     calls) == SHIM_OK)
		return;
	for (uint32_t i = 0; i < count; i++)
		if (shim_profiler_switch_calls(tree_handle, false, 1,
					       &calls[i]) != SHIM_OK)
			give_up(of[i], false);
}

static void settle_pending(void)
{
	count_pending();
	switch_pending();
	for (uint32_t i = 0; i < pending_count; i++) {
		throttled_give_back(pending[i].throttled);
		pending[i].site->is_pending = false;
	}
	pending_count = 0;
	__atomic_store_n(&pending_calls, 0, __ATOMIC_RELAXED);
}

void throttled_settle(void)
{
	uint64_t signals;

	if (__atomic_load_n(&pending_count, __ATOMIC_RELAXED) == 0 ||
	    !try_pending(&signals))
		return;
	settle_pending();
	end_pending(signals);
}

/* A call of a site that is pending. */
static void pass_pending(void)
{
	if (__atomic_add_fetch(&pending_calls, 1, __ATOMIC_RELAXED) >=
	    PENDING_CALLS)
		throttled_settle();
}

/* Lets the function's calls reach the hooks again, which learn its sites anew.  Leaves, too:
 * at a mark, a leave that is known to be off would switch off the enter. */
static void forget_sites(struct throttled *throttled)
{
	struct shim_hook_call calls[8];
	uint32_t count = 0, all = 0;

	for (struct throttled_site *site = throttled->sites; site;
	     site = site->next) {
		if (site->gone)
			continue;
		site->gone = true;
		calls[count++] = (struct shim_hook_call){ throttled->function,
							  site->address };
		all++;
		if (count < 8)
			continue;
		shim_profiler_switch_calls(tree_handle, true, count, calls);
		count = 0;
	}
	if (count > 0)
		shim_profiler_switch_calls(tree_handle, true, count, calls);
	if (throttled->node)
		__atomic_fetch_sub(&throttled->node->sites, all,
				   __ATOMIC_RELAXED);
}

void throttled_follow_filters(void)
{
	static uint32_t followed;
	uint32_t version = shim_filter_version();

	if (version == followed)
		return;
	followed = version;
	for (uint32_t i = 0; i < throttled_count; i++)
		if (throttled_is_counted(throttled_get(i)))
			forget_sites(throttled_get(i));
}

static void learn_site(struct throttled *throttled, uintptr_t address,
		       bool is_enter)
{
	struct throttled_site *site;
	uint64_t signals;

	if (!try_pending(&signals))
		return;
	site = find_site(throttled, address);
	if (!site) {
		site = add_site(throttled, address, is_enter, true);
		if (site)
			pending[pending_count++] = (struct pending){ throttled,
								     site };
	}
	if (pending_count == PENDING_MAX)
		settle_pending();
	end_pending(signals);
}

void throttled_forget_pending(void)
{
	for (uint32_t i = 0; i < pending_count; i++) {
		pending[i].throttled->strays = 0;
		pending[i].site->is_pending = false;
	}
	pending_count = pending_calls = 0;
	is_pending_used = false;
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
static bool count_here(uint32_t counter, uintptr_t sp)
{
	struct tree *tree = tree_get(sp);
	uint64_t *counters = tree ? tree->counters : NULL;

	if (tree && !counters)
		counters = make_counters(tree);
	if (!counters)
		return false;
	shim_local_add(&counters[counter], 1);
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

uint64_t throttled_sum_in(const struct tree *tree, uint32_t counter)
{
	const uint64_t *counters = __atomic_load_n(&tree->counters,
						   __ATOMIC_ACQUIRE);
	uint64_t sum = 0;

	for (uint32_t i = 1; counters && i <= counter; i++)
		sum += __atomic_load_n(&counters[i], __ATOMIC_RELAXED);
	return sum;
}

uint64_t throttled_sum(uint32_t counter)
{
	uint64_t sum = 0;

	for (const struct tree *tree =
		     __atomic_load_n(&trees, __ATOMIC_ACQUIRE);
	     counter && tree; tree = tree->next)
		sum += throttled_sum_in(tree, counter);
	return sum;
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

/* Whether a site was counted before in this process. */
static bool has_counted;

/* Lets a site count at once, before any of its calls is counted without a path.  Where that
 * always fails, all calls are recorded. */
static bool try_counting(struct throttled *throttled, uintptr_t address)
{
	struct shim_counted_call call = { address, throttled->function,
					  throttled->counter, 0 };

	if (shim_profiler_count_calls(tree_handle, 1, &call) != SHIM_OK)
		return false;
	has_counted = true;
	add_site(throttled, address, true, false);
	/* It went off meanwhile, and the site was not in its list. */
	if (!throttled_is_counted(throttled))
		switch_all(throttled, false);
	return true;
}

/* Counts the call that reached the enter hook at @sp; false: it cannot be counted.  Its
 * site will count the next ones. */
static bool count_enter(struct throttled *throttled, uintptr_t sp)
{
	uintptr_t address = shim_hook_caller(sp);
	const struct throttled_site *site = find_site(throttled, address);
	bool is_first = *shim_thread_counters() == NULL;

	if (!site && !has_counted && !try_counting(throttled, address))
		return false;
	if (!site && has_counted)
		learn_site(throttled, address, true);
	else if (site && site->is_pending)
		pass_pending();
	else if (site && !is_first && throttled->strays++ >= STRAYS_MAX)
		return false;
	return count_here(throttled->counter, sp);
}

/* Calls of sites that were not met before, and of threads without counters. */
static void count_in_burst(struct throttled *throttled, uintptr_t sp)
{
	uintptr_t address = shim_hook_caller(sp);

	if (!find_site(throttled, address))
		learn_site(throttled, address, true);
	count_here(throttled->burst_counter, sp);
}

/* Ignores the call that reached a hook at @sp, and has its site switched off; false: it is
 * recorded. */
static bool ignore_call(struct throttled *throttled, struct shim_hook_call call,
			bool is_enter)
{
	const struct throttled_site *site = find_site(throttled, call.address);

	if (site && site->is_pending) {
		pass_pending();
		return true;
	}
	/* As long as no site is off, no call is missing. */
	if (!site && throttled->sites) {
		learn_site(throttled, call.address, is_enter);
		return true;
	}
	/* Calls that were on their way, or of a jump that cannot be found. */
	if (site && throttled->strays++ > 0) {
		if (throttled->strays < STRAYS_MAX)
			return true;
		give_up(throttled, false);
		return false;
	}
	if (shim_profiler_switch_calls(tree_handle, false, 1, &call) !=
	    SHIM_OK) {
		give_up(throttled, false);
		return false;
	}
	if (!site)
		add_site(throttled, call.address, is_enter, false);
	return true;
}

/* Counts or ignores the call that reached a hook at @sp; false: it is recorded. */
static bool forgo(struct throttled *throttled, uint64_t function,
		  const void *site, uintptr_t sp, bool is_leave)
{
	struct shim_hook_call call = { function, shim_hook_caller(sp) };

	if (!is_leave && throttled_is_burst_counted(throttled)) {
		count_in_burst(throttled, sp);
		return true;
	}
	if (!is_leave && throttled_is_counted(throttled)) {
		if (count_enter(throttled, sp))
			return true;
		uncount(throttled);
		if (throttled_state(throttled) != THROTTLED_OFF)
			return false;
	}
	/* At a mark the enter would go off together with the leave, and nothing would be
	 * counted: an enter comes first, and shows whether it can be counted. */
	if (is_leave && throttled_is_counted(throttled) &&
	    !has_enter_site(throttled))
		return true;
	/* The function has jumped to the hook. */
	if (is_leave && call.address == (uintptr_t)site)
		call.address = 0;
	return ignore_call(throttled, call, !is_leave);
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

	if (stack && !is_on(tree, stack, sp))
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
