/*
 * Heap snapshots: with -p memory, a program writes its allocated blocks, by
 * call path, and its unreachable blocks into the recording.
 *
 * The program is not linked to shim: without shim, shim_heap_snapshot does
 * nothing.
 *
 * Example:
 *
 *     #include <shim/heap.h>
 *
 *     void loaded(void);
 *     void loaded(void)
 *     {
 *             shim_heap_snapshot();
 *     }
 */
#ifndef SHIM_HEAP_H
#define SHIM_HEAP_H

#include <shim/shim.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * shim_heap_snapshot_now - take a heap snapshot
 *
 * The snapshot has all blocks that are allocated from its begin to its end, and
 * some of the other blocks.  Other threads run meanwhile: shim may see a pointer before or
 * after a change, and not at all if it is in a register (<shim/reach.h>).  With
 * memory:period=SIZE, numbers are estimates and unreachable blocks are not
 * searched.  *@number, unless @number is NULL, gets the snapshot's number in
 * the process, from 1 on.
 *
 * Returns SHIM_OK; SHIM_S_FALSE if no profiler records memory; SHIM_E_FAIL
 * without room for the snapshot, or if a snapshot is already in progress.  The
 * snapshot counts the blocks that did not fit.
 *
 * Contract: async; `profrun ctl PID heap` does the same.  Cost: reads the
 * program's memory once, on the calling thread, for at most a second
 * (memory:leaks=MS).  CLR: ForceGC.  Mono: mono_gc_collect.
 */
SHIM_API enum shim_result
shim_heap_snapshot_now(SHIM_OUT_OPT uint32_t *number) SHIM_ASYNC;
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
