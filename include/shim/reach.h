/*
 * Reach: which blocks of memory the program can still get at.
 *
 * Begins at what is no block - the data of loaded objects, the stacks of threads
 * with what they keep beside them, memory that the program has mapped - and follows
 * whatever looks like the address of a block, or of a place in one, from block to
 * block.  So what is said to be lost is, unless its address is kept where nobody
 * looks (compressed, in a file, in a register of another thread); what is said to be
 * reached may be lost all the same.  Blocks are those of <shim/allocations.h>.
 */
#ifndef SHIM_REACH_H
#define SHIM_REACH_H

#include <shim/allocations.h>

#ifdef __cplusplus
extern "C" {
#endif

enum shim_reach {
	SHIM_REACH_LOST = 0,	/* no pointer to it was found */
	SHIM_REACH_FROM_LOST = 1,	/* only in blocks that are lost */
	SHIM_REACH_REACHED = 2,
};

/* Anything but SHIM_OK ends the walk. */
typedef enum shim_result (*shim_reach_callback)(const struct shim_block *block,
						enum shim_reach reach,
						void *client_data);

/*
 * shim_heap_find_leaks - for each block that lives, whether it can be reached
 *
 * Takes at most @limit_ns, about, to find out; then calls @callback for each block
 * that has lived all the time, in the order of their addresses.  Other threads may
 * run meanwhile: what they do with their pointers is seen at one moment or another.
 * What the callback may do is what the caller may.  Rows C-4, 2.1 number 53.
 *
 * Returns SHIM_OK; SHIM_E_INVALIDARG without @callback; SHIM_S_FALSE when the
 * callback ended it; SHIM_E_UNEXPECTED when it threw an exception;
 * SHIM_E_NOT_YET_AVAILABLE when the time was over, and nothing is known;
 * SHIM_E_INCONSISTENT_WITH_FLAGS if not all allocations are told, nobody has
 * enabled them, or some could not be noted; SHIM_E_OUTOFMEMORY; SHIM_E_FAIL if the
 * system does not say what is mapped, or somebody else is at it;
 * SHIM_E_PROFILER_DETACHING.
 *
 * Contract: async; blocks signals and takes the lock of the runtime for a moment.
 * Cost: reads all of these once; 49 bytes a block.
 */
SHIM_API enum shim_result
shim_heap_find_leaks(SHIM_IN shim_reach_callback callback,
		 SHIM_IN void *client_data, SHIM_IN uint64_t limit_ns)
	SHIM_ASYNC;

#ifdef __cplusplus
}
#endif
#endif
