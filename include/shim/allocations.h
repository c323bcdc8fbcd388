/*
 * Allocations: the blocks of memory that the program allocates and frees.
 *
 * A profiler enables them in its init function and gets three events
 * (<shim/events.def>): allocation, deallocation, reallocation.  The events come
 * from malloc, calloc, realloc, reallocarray, free, posix_memalign,
 * aligned_alloc, memalign, valloc and pvalloc, called by the program, its
 * libraries, libc itself or operator new.  A call that fails raises no event,
 * nor does a call from a callback, a slow hook or a profiler's thread.  Blocks
 * that libraries allocated before profilers were set up raise their events as
 * soon as profilers are set up, in order.
 *
 * Unless a profiler enables allocations, the program calls its allocator
 * directly.  shim cannot see the calls of a program that has its own malloc, or
 * is linked with another malloc than libc's; the log then has a line.
 *
 * Example: count the bytes that are allocated.
 *
 *     #include <shim/allocations.h>
 *
 *     static uint64_t bytes;
 *
 *     static void got(struct shim_profiler *profiler, const struct shim_block *block)
 *     {
 *             (void)profiler;
 *             __atomic_add_fetch(&bytes, block->size, __ATOMIC_RELAXED);
 *     }
 *
 *     SHIM_PROFILER_MODULE(bytes)
 *     {
 *             struct shim_profiler_handle *handle = shim_profiler_create(NULL);
 *
 *             shim_profiler_on_allocation(handle, got);
 *             return shim_profiler_enable_allocations(handle);
 *     }
 */
#ifndef SHIM_ALLOCATIONS_H
#define SHIM_ALLOCATIONS_H

#include <shim/profiler.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The function that was called. */
enum shim_allocation_kind {
	SHIM_ALLOCATION_MALLOC = 0,
	SHIM_ALLOCATION_CALLOC = 1,
	SHIM_ALLOCATION_REALLOC = 2, /* or reallocarray */
	SHIM_ALLOCATION_ALIGNED = 3, /* any other function that aligns */
	/* by operator new or new[], if shim found the function by name when
	 * profilers were set up; else SHIM_ALLOCATION_MALLOC */
	SHIM_ALLOCATION_NEW = 4,
};

/* A block.  In an event it is valid while the callback runs. */
struct shim_block {
	uintptr_t address;
	uint64_t size; /* bytes requested */
	/* Unique in the process, whatever the address; a reallocation keeps it.
	 * A fork child continues its parent's numbers.  Not ordered between
	 * threads. */
	uint64_t serial;
	uint64_t alignment; /* bytes requested; 0: none */
	uint32_t kind;	    /* enum shim_allocation_kind, of the last call */
	/* In a deallocation: the calling thread has neither allocated nor
	 * reallocated a block since it allocated this one. */
	uint32_t is_last;
	/* The number of blocks that this block represents, and their bytes: 1 and
	 * its size unless blocks are sampled.  The deallocation has the same
	 * values. */
	uint64_t weight;
	uint64_t weight_bytes;
	/* The time of the allocation or reallocation, by shim_clock_coarse(); in a
	 * deallocation it may be up to half a tick earlier; 0: unknown. */
	uint64_t clock;
	/* A word that stays with the block while it is allocated, 0 at first.
	 * Reserved for shim's own profilers. */
	uint64_t *note;
};

/*
 * shim_profiler_enable_allocations - enable allocation events
 *
 * Applies to the whole process, whichever handle calls it.
 *
 * For a module that is attached, events begin when its init function has
 * returned.  If no profiler had enabled allocations before, frees of older
 * blocks raise no events, and a realloc of an older block is an allocation.
 * Otherwise the module gets deallocations of blocks whose allocation it did not
 * get.
 *
 * Returns SHIM_OK, also if allocations were enabled; SHIM_S_FALSE if
 * allocations are sampled and it is too late to change that; SHIM_E_INVALIDARG
 * for a wrong @handle; SHIM_E_CALL_ONLY_FROM_INIT; SHIM_E_PROFILER_DETACHING.
 *
 * Contract: init.  CLR: COR_PRF_ENABLE_OBJECT_ALLOCATED.  Mono:
 * mono_profiler_enable_allocations.
 */
SHIM_API enum shim_result shim_profiler_enable_allocations(
	SHIM_IN struct shim_profiler_handle *handle) SHIM_INIT;

/* Bytes; larger periods are refused. */
#define SHIM_ALLOCATION_PERIOD_MAX (1ull << 40)

/*
 * shim_profiler_enable_sampled_allocations - enable events for a sample of the blocks
 *
 * Each allocated byte has the same probability, 1 / @period (in bytes), to
 * select its block.  The weight of a block in an event is the number of blocks
 * that it represents, so sums of weights are right on average.  With a @seed
 * other than 0 the choice is the same in each run, as far as threads begin to
 * allocate in the same order.  If another profiler enables all allocations, all
 * blocks raise events, with weight 1.  If profilers set several periods, the
 * shortest applies.
 *
 * Returns as shim_profiler_enable_allocations; SHIM_E_INVALIDARG also for a
 * period of less than 2 bytes or more than SHIM_ALLOCATION_PERIOD_MAX.
 *
 * Contract: init.  No counterpart.
 */
SHIM_API enum shim_result shim_profiler_enable_sampled_allocations(
	SHIM_IN struct shim_profiler_handle *handle, SHIM_IN uint64_t period,
	SHIM_IN uint64_t seed) SHIM_INIT;

/* Any result but SHIM_OK ends the walk. */
typedef enum shim_result (*shim_block_callback)(const struct shim_block *block,
						void *client_data);

/*
 * shim_block_walk - call @callback for each allocated block
 *
 * Calls @callback, in no order, for each block that is allocated from the
 * beginning of the walk to its end, and for some of the blocks that are
 * allocated or freed meanwhile.  The next walk starts from the beginning, even
 * if @callback ended this one.  @callback may call all functions that the caller may call.
 *
 * Returns SHIM_OK, also if no profiler has enabled allocations;
 * SHIM_E_INVALIDARG if @callback is NULL; SHIM_S_FALSE if @callback ended the
 * walk; SHIM_E_UNEXPECTED if it threw an exception; SHIM_E_PROFILER_DETACHING.
 *
 * Contract: async.  Takes no lock.  Cost: reads the whole table of blocks.
 * CLR: EnumerateGCHeapObjects.  Mono: mono_gc_walk_heap.
 */
SHIM_API enum shim_result shim_block_walk(SHIM_IN shim_block_callback callback,
					  SHIM_IN void *client_data) SHIM_ASYNC;

/* Counts of the process since its start; a fork child continues its parent's. */
struct shim_allocation_counts {
	/* frees of blocks without an allocation event; 0 if blocks are sampled */
	uint64_t unknown;
	/* blocks without room in the table: their free raises no event */
	uint64_t untold;
	/* calls before profilers were set up that exceeded the buffer for them */
	uint64_t early_lost;
};

/* The function and the struct share their name, as stat(2) does. */
#ifdef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#endif

/*
 * shim_get_allocation_counts - blocks whose events are missing
 *
 * Returns SHIM_OK; SHIM_E_INVALIDARG for NULL; SHIM_E_PROFILER_DETACHING.
 *
 * Contract: async.  No counterpart.
 */
SHIM_API enum shim_result shim_get_allocation_counts(
	SHIM_OUT struct shim_allocation_counts *counts) SHIM_ASYNC;

#ifdef __cplusplus
#pragma GCC diagnostic pop
}
#endif
#endif
