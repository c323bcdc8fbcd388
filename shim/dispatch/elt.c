/*
 * The settings of a profiler for calls: its event mask, its hooks of one generation,
 * its mapper and its filter.  Section 3.2 and Appendix B of the specification have the
 * rules as tables.
 */
#include "dispatch/call_counters.h"
#include "dispatch/call_sites.h"
#include "dispatch/plan.h"
#include "runtime/contract.h"
#include "runtime/log.h"

#include <errno.h>
#include <shim/builtin.h>

#include <shim/banned.h>

#define SLOW_FLAGS \
	(SHIM_ENABLE_FUNCTION_ARGS | SHIM_ENABLE_FUNCTION_RETVAL | \
	 SHIM_ENABLE_FRAME_INFO)

static bool has_any(void *const hooks[3])
{
	return hooks[0] || hooks[1] || hooks[2];
}

#define HAS_HOOKS(kind) has_any((void *const *)(kind))

/* --- the mask --- */

static bool is_init(void)
{
	return contract_allows(CONTRACT_INIT);
}

static enum shim_result check_mask(const struct shim_profiler_handle *handle,
				   uint32_t low, uint32_t high)
{
	bool is_fast = HAS_HOOKS(handle->fast),
	     is_slow = HAS_HOOKS(handle->slow);

	if (high & ~SHIM_HIGH_ALL)
		return SHIM_E_INVALIDARG;
	if (!is_init())
		return ((handle->mask ^ low) & SHIM_MONITOR_IMMUTABLE) ||
				       ((handle->mask_high ^ high) &
					SHIM_HIGH_IMMUTABLE) ?
			       SHIM_E_FAIL :
			       SHIM_OK;
	if (is_fast && (low & SLOW_FLAGS))
		return SHIM_E_INCONSISTENT_WITH_FLAGS;
	if (is_slow && !(low & SLOW_FLAGS))
		return SHIM_E_INCONSISTENT_WITH_FLAGS;
	if ((is_fast || is_slow) && !(low & SHIM_MONITOR_ENTERLEAVE))
		return SHIM_E_INCONSISTENT_WITH_FLAGS;
	return SHIM_OK;
}

enum shim_result
shim_profiler_set_event_mask2(struct shim_profiler_handle *handle, uint32_t low,
			      uint32_t high)
{
	uint32_t before;
	enum shim_result r;

	ENTRY_ASYNC_OF(handle);
	r = check_mask(handle, low, high);
	if (r != SHIM_OK)
		return r;
	before = __atomic_exchange_n(&handle->mask, low, __ATOMIC_ACQ_REL);
	__atomic_store_n(&handle->mask_high, high, __ATOMIC_RELEASE);
	handle_set_data_flags(handle);
	if ((before ^ low) & SHIM_MONITOR_ENTERLEAVE)
		plan_changed();
	if (low & ~before & SHIM_ENABLE_STACK_SNAPSHOT)
		NOTIFY(snapshots_wanted);
	return SHIM_OK;
}

enum shim_result
shim_profiler_set_event_mask(struct shim_profiler_handle *handle, uint32_t mask)
{
	ENTRY_ASYNC_OF(handle);
	return shim_profiler_set_event_mask2(handle, mask, 0);
}

enum shim_result shim_get_event_mask(struct shim_profiler_handle *handle,
				     uint32_t *mask)
{
	ENTRY_ASYNC_OF(handle);
	if (!mask)
		return SHIM_E_INVALIDARG;
	*mask = handle->mask;
	return SHIM_OK;
}

enum shim_result shim_get_event_mask2(struct shim_profiler_handle *handle,
				      uint32_t *low, uint32_t *high)
{
	ENTRY_ASYNC_OF(handle);
	if (low)
		*low = handle->mask;
	if (high)
		*high = handle->mask_high;
	return SHIM_OK;
}

/* --- hooks --- */

/* The kinds of hooks.  A handle uses one kind. */
enum hooks_kind { FAST, SLOW, ELT2, ELT1 };

static void **hooks_of(struct shim_profiler_handle *handle,
		       enum hooks_kind kind)
{
	switch (kind) {
	case FAST: return (void **)handle->fast;
	case SLOW: return (void **)handle->slow;
	case ELT2: return (void **)handle->elt2;
	default: return (void **)handle->elt1;
	}
}

/* Row E-32: hooks of the newest generation stay; setting hooks of an older one has no
 * effect and returns SHIM_OK. */
static bool is_superseded(const struct shim_profiler_handle *handle,
			  enum hooks_kind kind)
{
	bool has_newer = HAS_HOOKS(handle->fast) || HAS_HOOKS(handle->slow);
	bool superseded = (kind == ELT2 && has_newer) ||
			  (kind == ELT1 &&
			   (has_newer || HAS_HOOKS(handle->elt2)));

	if (superseded)
		log_line("%s", "a profiler sets hooks of an older generation "
			       "after newer ones: the older hooks are ignored");
	return superseded;
}

/* Section 3.2 of the specification, from step 4 on. */
static enum shim_result set_hooks(struct shim_profiler_handle *handle,
				  enum hooks_kind kind, void *const hooks[3])
{
	bool wants_slow = handle->mask & SLOW_FLAGS;

	if (!has_any(hooks))
		return SHIM_E_INVALIDARG;
	if ((kind == FAST && wants_slow) || (kind == SLOW && !wants_slow))
		return SHIM_E_INCONSISTENT_WITH_FLAGS;
	if (is_superseded(handle, kind))
		return SHIM_OK;
	for (int of = FAST; of <= ELT1; of++)
		for (int i = 0; i < 3; i++)
			hooks_of(handle, of)[i] = of == (int)kind ? hooks[i] :
								    NULL;
	handle_set_data_flags(handle);
	plan_changed();
	return SHIM_OK;
}

#define SET_HOOKS(handle, kind) \
	set_hooks(handle, kind, \
		  (void *const[]){ (void *)enter, (void *)leave, \
				   (void *)tailcall })

enum shim_result shim_profiler_set_enter_leave_function_hooks3(
	struct shim_profiler_handle *handle, shim_function_hook enter,
	shim_function_hook leave, shim_function_hook tailcall)
{
	ENTRY_INIT_OF(handle);
	return SET_HOOKS(handle, FAST);
}

enum shim_result shim_profiler_set_enter_leave_function_hooks3_with_info(
	struct shim_profiler_handle *handle, shim_function_hook_with_info enter,
	shim_function_hook_with_info leave,
	shim_function_hook_with_info tailcall)
{
	ENTRY_INIT_OF(handle);
	return SET_HOOKS(handle, SLOW);
}

enum shim_result shim_profiler_set_enter_leave_function_hooks2(
	struct shim_profiler_handle *handle, shim_enter_hook2 enter,
	shim_leave_hook2 leave, shim_tailcall_hook2 tailcall)
{
	ENTRY_INIT_OF(handle);
	return SET_HOOKS(handle, ELT2);
}

enum shim_result shim_profiler_set_enter_leave_function_hooks(
	struct shim_profiler_handle *handle, shim_function_hook1 enter,
	shim_function_hook1 leave, shim_function_hook1 tailcall)
{
	ENTRY_INIT_OF(handle);
	return SET_HOOKS(handle, ELT1);
}

enum shim_result
shim_profiler_set_chained_hooks(struct shim_profiler_handle *handle,
				shim_frame_hook enter, shim_frame_hook leave)
{
	ENTRY_INIT_OF(handle);
	handle->frame[0] = enter;
	handle->frame[1] = leave;
	plan_changed();
	return SHIM_OK;
}

enum shim_result
shim_profiler_set_mark_hooks(struct shim_profiler_handle *handle,
			     const struct shim_mark_hooks *hooks)
{
	ENTRY_INIT_OF(handle);
	handle->marks = hooks;
	plan_changed();
	return SHIM_OK;
}

enum shim_result
shim_profiler_set_raw_leave_hooks(struct shim_profiler_handle *handle)
{
	ENTRY_INIT_OF(handle);
	handle->leaves_on_unwind = true;
	plan_changed();
	return SHIM_OK;
}

enum shim_result
shim_profiler_set_deferred_hook(struct shim_profiler_handle *handle,
				shim_deferred_hook hook)
{
	ENTRY_INIT_OF(handle);
	handle->deferred = hook;
	handle_set_data_flags(handle);
	plan_changed();
	return SHIM_OK;
}

enum shim_result
shim_profiler_set_restart_hooks(struct shim_profiler_handle *handle,
				shim_function_hook enter,
				shim_function_hook leave)
{
	ENTRY_INIT_OF(handle);
	if (!enter || !leave)
		return SHIM_E_INVALIDARG;
	handle->restarted[0] = enter;
	handle->restarted[1] = leave;
	return SHIM_OK;
}

/* --- single calls --- */

struct switching {
	const struct shim_profiler_handle *handle;
	const struct shim_hook_call *calls;
	uint32_t count;
	bool on;
};

static int switch_calls(void *argument)
{
	const struct switching *this = argument;
	int r;

	if (!this->on && !plan_is_only(this->handle))
		return -EBUSY;
	r = call_sites_throttle(this->calls, this->count, this->on);
	NOTIFY(call_sites_switched);
	return r;
}

enum shim_result shim_profiler_switch_calls(struct shim_profiler_handle *handle,
					    int on, uint32_t count,
					    const struct shim_hook_call *calls)
{
	struct switching job = { handle, calls, count, on != 0 };

	ENTRY_ASYNC_OF(handle);
	if (count > 0 && !calls)
		return SHIM_E_INVALIDARG;
	return state_call_locked(switch_calls, &job) < 0 ? SHIM_E_FAIL :
							   SHIM_OK;
}

struct counting {
	const struct shim_profiler_handle *handle;
	struct shim_counted_call *calls;
	uint32_t count;
};

static int count_calls(void *argument)
{
	const struct counting *this = argument;
	int r;

	if (!plan_is_only(this->handle))
		return -EBUSY;
	r = call_sites_count(this->calls, this->count);
	NOTIFY(call_sites_switched);
	return r;
}

enum shim_result shim_profiler_count_calls(struct shim_profiler_handle *handle,
					   uint32_t count,
					   struct shim_counted_call *calls)
{
	struct counting job = { handle, calls, count };

	ENTRY_ASYNC_OF(handle);
	if (count > 0 && !calls)
		return SHIM_E_INVALIDARG;
	for (uint32_t i = 0; i < count; i++) {
		calls[i].is_counted = 0;
		if (calls[i].counter == 0 || calls[i].counter >= SHIM_COUNTERS)
			return SHIM_E_INVALIDARG;
	}
	return state_call_locked(count_calls, &job) < 0 ? SHIM_E_FAIL : SHIM_OK;
}

uint64_t **shim_thread_counters(void)
{
	return &call_counters;
}

int shim_is_counter(uintptr_t address)
{
	return call_counters_have(address);
}

/* --- filters and mappers --- */

static int claim_slots(void *argument)
{
	struct shim_profiler_handle *handle = argument;
	bool has_mapper = handle->mapper || handle->mapper2;

	if (handle->filter && handle->filter_slot < 0)
		handle->filter_slot = filter_cache_claim_slot(handle, true);
	else if (handle->filter)
		filter_cache_invalidate(handle->filter_slot);
	else if (handle->filter_slot >= 0) {
		filter_cache_release_slot(handle->filter_slot);
		handle->filter_slot = -1;
	}
	if (has_mapper && handle->mapper_slot < 0)
		handle->mapper_slot = filter_cache_claim_slot(handle, false);
	if (state_get() == STATE_RUNNING)
		plan_update();
	return 0;
}

static enum shim_result apply_filters(struct shim_profiler_handle *handle)
{
	state_call_locked(claim_slots, handle);
	if ((handle->filter && handle->filter_slot < 0) ||
	    ((handle->mapper || handle->mapper2) && handle->mapper_slot < 0))
		return SHIM_E_OUTOFMEMORY;
	return SHIM_OK;
}

enum shim_result
shim_profiler_set_function_id_mapper(struct shim_profiler_handle *handle,
				     shim_function_id_mapper mapper)
{
	ENTRY_ASYNC_OF(handle);
	handle->mapper = mapper;
	return apply_filters(handle);
}

enum shim_result
shim_profiler_set_function_id_mapper2(struct shim_profiler_handle *handle,
				      shim_function_id_mapper2 mapper,
				      void *client_data)
{
	ENTRY_ASYNC_OF(handle);
	handle->mapper_data = client_data;
	handle->mapper2 = mapper;
	return apply_filters(handle);
}

enum shim_result shim_profiler_set_call_instrumentation_filter_callback(
	struct shim_profiler_handle *handle,
	shim_call_instrumentation_filter_callback filter)
{
	ENTRY_ASYNC_OF(handle);
	handle->filter = filter;
	return apply_filters(handle);
}

static int invalidate_filters(void *unused)
{
	(void)unused;
	filter_cache_invalidate_filters();
	return 0;
}

enum shim_result shim_filters_invalidate(void)
{
	ENTRY_ASYNC();
	state_call_locked(invalidate_filters, NULL);
	return SHIM_OK;
}
