/*
 * Leaks: the blocks of memory to which the program has no pointer.
 *
 * The scan starts at the roots: all memory outside heap blocks, which is the
 * data of loaded objects, the stacks of threads with their thread-local
 * storage, and mapped memory.  It follows each word that could be an address in
 * a block (interior addresses included) from block to block.  A block that the
 * scan calls lost is unreachable, unless its address exists only in a form or
 * place that the scan does not read (compressed, in a file, in a register of
 * another thread).  A block that the scan calls reached may be unreachable all
 * the same.  Blocks are those of <shim/allocations.h>.
 *
 * Example: count the bytes of unreachable blocks, in one second at most.
 *
 *     #include <shim/reach.h>
 *
 *     static enum shim_result add(const struct shim_block *block,
 *                                 enum shim_reach reach, void *client_data)
 *     {
 *             if (reach != SHIM_REACH_REACHED)
 *                     *(uint64_t *)client_data += block->size;
 *             return SHIM_OK;
 *     }
 *
 *     uint64_t leaked_bytes(void);
 *     uint64_t leaked_bytes(void)
 *     {
 *             uint64_t bytes = 0;
 *
 *             shim_heap_find_leaks(add, &bytes, 1000000000);
 *             return bytes;
 *     }
 */
#ifndef SHIM_REACH_H
#define SHIM_REACH_H

#include <shim/allocations.h>

#ifdef __cplusplus
extern "C" {
#endif

enum shim_reach {
	SHIM_REACH_LOST = 0,	  /* the scan found no pointer to it */
	SHIM_REACH_FROM_LOST = 1, /* pointers to it only in lost blocks */
	SHIM_REACH_REACHED = 2,
};

/* Any result but SHIM_OK ends the walk. */
typedef enum shim_result (*shim_reach_callback)(const struct shim_block *block,
						enum shim_reach reach,
						void *client_data);

/*
 * shim_heap_find_leaks - call @callback for each block with its reach
 *
 * Scans for about @limit_ns nanoseconds at most.  Then calls @callback, in the
 * order of addresses, for each block that was allocated the whole time.  Other
 * threads may run meanwhile: the scan sees a pointer before or after a change.
 * @callback may call all functions that the caller may call.
 *
 * Returns SHIM_OK; SHIM_E_INVALIDARG if @callback is NULL; SHIM_S_FALSE if
 * @callback ended the walk; SHIM_E_UNEXPECTED if it threw an exception;
 * SHIM_E_NOT_YET_AVAILABLE if the time was over, before any call of @callback;
 * SHIM_E_INCONSISTENT_WITH_FLAGS if allocations are not enabled or sampled,
 * some blocks had no room in the table, or shim was attached to the program
 * while it ran; SHIM_E_OUTOFMEMORY; SHIM_E_FAIL if the
 * kernel does not list the mappings, or a scan is already in progress;
 * SHIM_E_PROFILER_DETACHING.
 *
 * Contract: async; blocks signals and takes the lock of the runtime for a
 * moment.  Cost: reads all roots and blocks once; 49 bytes of memory for each
 * block.  CLR: RootReferences, ObjectReferences.  Mono:
 * mono_profiler_set_gc_roots_callback.
 */
SHIM_API enum shim_result
shim_heap_find_leaks(SHIM_IN shim_reach_callback callback,
		     SHIM_IN void *client_data,
		     SHIM_IN uint64_t limit_ns) SHIM_ASYNC;

#ifdef __cplusplus
}
#endif
#endif
