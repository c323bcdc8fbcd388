/*
 * Tracing a part of a run.
 *
 * -p trace records from the start, -p trace:off from the first
 * shim_trace_start() on; both stop at shim_trace_stop().  The program is not
 * linked to shim: without shim these calls do nothing.
 *
 * Example:
 *
 *     #include <shim/trace.h>
 *
 *     void request(void (*serve)(void));
 *     void request(void (*serve)(void))
 *     {
 *             shim_trace_start();
 *             serve();
 *             shim_trace_stop();
 *     }
 */
#ifndef SHIM_TRACE_H
#define SHIM_TRACE_H

#include <shim/shim.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * shim_trace_switch - switch tracing on (@is_on is not 0) or off
 *
 * Applies to all threads; each thread follows with its next call.  Hooks run
 * all the same, so each thread knows its open calls when tracing starts again;
 * shim_hooks_disable() of <shim/hooks.h> costs less while it is off.
 *
 * Returns SHIM_OK, also if no profiler traces.
 *
 * Contract: async; `profrun ctl PID trace-start` and trace-stop do the same.
 * CLR: none.  Mono: none.  Tru64: moncontrol(3).
 */
SHIM_API enum shim_result shim_trace_switch(SHIM_IN int is_on) SHIM_ASYNC;
#ifndef SHIM_MARKS_ARE_HERE
#pragma weak shim_trace_switch

SHIM_QUIET static inline void shim_trace_start(void)
{
	if (shim_trace_switch)
		shim_trace_switch(1);
}

SHIM_QUIET static inline void shim_trace_stop(void)
{
	if (shim_trace_switch)
		shim_trace_switch(0);
}

#endif

#ifdef __cplusplus
}
#endif
#endif
