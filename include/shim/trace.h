/*
 * Tracing a part of a run: -p trace records from the start, -p trace:off from the
 * first shim_trace_start() on, both until shim_trace_stop().
 *
 * The program is not linked to shim: where that is not there these do nothing.
 */
#ifndef SHIM_TRACE_H
#define SHIM_TRACE_H

#include <shim/shim.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * shim_trace_switch - what the functions below call
 *
 * From now on calls of all threads are recorded (@is_on is not 0), or are not.  The
 * hooks are called all the same, so each thread knows what it is in when it goes
 * on; shim_hooks_disable() of <shim/hooks.h> costs less while it is off.  Each thread
 * heeds it with its next call.
 *
 * Returns SHIM_OK, also if nobody traces.
 * Contract: async; `profrun ctl PID trace-start` and trace-stop do the same.
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
