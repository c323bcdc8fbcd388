/*
 * Profilers: who gets which events.
 *
 * A profiler is a handle with a pointer of its own and one callback per event
 * it wants.  Any number of them live side by side; each event goes to all that
 * asked for it, newest profiler first.
 */
#ifndef SHIM_PROFILER_H
#define SHIM_PROFILER_H

#include <shim/shim.h>

#ifdef __cplusplus
extern "C" {
#endif

struct shim_profiler;		/* yours; shim only hands it back */
struct shim_handle;

/*
 * shim_profiler_create - a new profiler
 *
 * @profiler is passed to every callback of this handle and may be NULL.
 * Returns the handle, which lives as long as the process, or NULL if there are
 * too many (8) or it is too late.  Rows M-18, M-19.
 *
 * Contract: init.
 */
SHIM_API struct shim_handle *
shim_profiler_create(struct shim_profiler *profiler) SHIM_INIT;

/*
 * shim_profiler_on_EVENT - set, replace or (NULL) remove a callback
 *
 * The types and the events are those of <shim/events.def>.  Rows M-10, M-66.
 *
 * Contract: async.
 */
#define EVENT(name, contract, parameters)                                      \
	typedef void(*shim_##name##_callback) parameters;                      \
	SHIM_API void shim_profiler_on_##name(                                 \
		struct shim_handle *handle,                                    \
		shim_##name##_callback callback) SHIM_ASYNC;
#include <shim/events.def>
#undef EVENT

#ifdef __cplusplus
}
#endif
#endif
