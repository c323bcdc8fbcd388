/*
 * A look at the heap while the program runs: with -p memory what lives now goes into
 * the recording, by path, and what of it nothing points to.
 *
 * The program is not linked to shim: where that is not there, shim_heap_snapshot does
 * nothing.
 */
#ifndef SHIM_HEAP_H
#define SHIM_HEAP_H

#include <shim/shim.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * shim_heap_snapshot_now - what shim_heap_snapshot calls
 *
 * Blocks that live all the while are written down, of others some; what other threads
 * do meanwhile with their pointers is seen at one moment or another, and not at all if
 * they are in a register (<shim/reach.h>).  With memory:period=SIZE these are estimates
 * and nothing is said of what is lost.  *@number, if @number is not NULL, gets the
 * snapshot's number in the process, from 1 on.  Row M-83.
 *
 * Returns SHIM_OK; SHIM_S_FALSE if nobody looks at memory; SHIM_E_FAIL if there is no
 * room for it or somebody else is at it.  (What did not fit is counted in it.)
 *
 * Contract: async; `profrun ctl PID heap` does the same.  Cost: reads what the program
 * has in memory once, for at most a second (memory:leaks=MS), on the calling thread.
 */
SHIM_API enum shim_result shim_heap_snapshot_now(SHIM_OUT_OPT uint32_t *number) SHIM_ASYNC;
#ifndef SHIM_MARKS_ARE_HERE
#pragma weak shim_heap_snapshot_now

SHIM_QUIET static inline void shim_heap_snapshot(void)
{
	if (shim_heap_snapshot_now)
		shim_heap_snapshot_now(0);
}

#endif

#ifdef __cplusplus
}
#endif
#endif
