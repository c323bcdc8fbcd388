#include "events.h"

#include "state.h"

#include <shim/banned.h>

struct shim_handle events_handles[EVENTS_HANDLES];
unsigned events_count;

/* Handles are made while shim starts, under the state lock. */
struct shim_handle *shim_profiler_create(struct shim_profiler *profiler)
{
	struct shim_handle *handle;

	if (state_get() != STATE_LOADED || events_count == EVENTS_HANDLES)
		return NULL;
	handle = &events_handles[events_count];
	handle->profiler = profiler;
	__atomic_store_n(&events_count, events_count + 1, __ATOMIC_RELEASE);
	return handle;
}

#define EVENT(name, contract, parameters)                                      \
	void shim_profiler_on_##name(struct shim_handle *handle,               \
				     shim_##name##_callback callback)          \
	{                                                                      \
		__atomic_store_n(&handle->name, callback, __ATOMIC_RELEASE);   \
	}
#include <shim/events.def>
#undef EVENT

enum shim_result shim_set_enter_leave_function_hooks3(
	struct shim_handle *handle, shim_function_hook enter,
	shim_function_hook leave, shim_function_hook tailcall)
{
	if (!handle || (!enter && !leave && !tailcall))
		return SHIM_E_ARGUMENT;
	if (state_get() != STATE_LOADED)
		return SHIM_E_TOO_LATE;
	for (unsigned i = 0; i < events_count; i++)
		if (&events_handles[i] != handle &&
		    (events_handles[i].enter || events_handles[i].leave))
			return SHIM_E_IN_USE;
	handle->enter = enter;
	handle->leave = leave;
	return SHIM_OK;
}
