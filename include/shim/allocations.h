/*
 * Allocations: the blocks of memory that the program gets and gives back.
 *
 * A profiler that wants them enables them while it is set up and gets three
 * events (<shim/events.def>): allocation, deallocation, reallocation.  They come from
 * malloc, calloc, realloc, reallocarray, free, posix_memalign, aligned_alloc,
 * memalign, valloc and pvalloc, whoever calls them: the program, its libraries,
 * libc itself, operator new.  Calls that fail are no events, nor are those of
 * callbacks, slow hooks and threads of profilers.  What libraries allocated before
 * profilers could be set up is told as soon as they are, in its order.
 *
 * If nobody enables them the program calls its allocator as it always did.  A
 * program that has a malloc of its own, or is linked with one, does not let us see
 * what it calls: the log says so.  Rows M-44 to M-46.
 */
#ifndef SHIM_ALLOCATIONS_H
#define SHIM_ALLOCATIONS_H

#include <shim/profiler.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What was called. */
enum shim_allocation_kind {
	SHIM_ALLOCATION_MALLOC = 0,
	SHIM_ALLOCATION_CALLOC = 1,
	SHIM_ALLOCATION_REALLOC = 2,	/* and reallocarray */
	SHIM_ALLOCATION_ALIGNED = 3,	/* and all others that align */
	SHIM_ALLOCATION_NEW = 4,	/* by operator new, also new[], if its function
					 * could be found by name when profilers had
					 * been set up; else it is malloc's */
};

/*
 * A block.  In an event it is valid while the callback runs.
 */
struct shim_block {
	uintptr_t address;
	uint64_t size;		/* that was asked for */
	/* No two blocks of a process have the same, whatever their addresses; a
	 * block keeps it when it is reallocated.  A forked child goes on with its
	 * parent's.  Not ordered between threads. */
	uint64_t serial;
	uint64_t alignment;	/* that was asked for; 0: none */
	uint32_t kind;		/* enum shim_allocation_kind; of the last call */
	/* In a release: the calling thread has got or reallocated nothing since
	 * it did this. */
	uint32_t is_last;
	/* How many blocks it stands for, and bytes: 1 and its size if all are told.
	 * The same in its release. */
	uint64_t weight;
	uint64_t weight_bytes;
	uint64_t clock;		/* when it was got, or reallocated: by the coarse
				 * clock, in its release up to half a tick earlier;
				 * 0: not known */
	/* A word that is kept with the block while it lives, 0 at first, for the
	 * profilers that are part of shim: others leave it alone. */
	uint64_t *note;
};

/*
 * shim_profiler_enable_allocations - ask for allocation events
 *
 * Without it they are not raised.  For the whole process, whichever handle asked, and
 * from then on.  Row M-45.
 *
 * For a module that is attached they begin when its init function has returned.  Of
 * blocks that the program had before, releases are not told if nobody had enabled
 * allocations until then, and a realloc is told as an allocation; if somebody had,
 * releases of blocks are told that the module has not been told of (row P-65).
 *
 * Returns SHIM_OK, also to those who come later; SHIM_S_FALSE if only some are told
 * and it is too late to change that; SHIM_E_INVALIDARG;
 * SHIM_E_CALL_ONLY_FROM_INIT; SHIM_E_PROFILER_DETACHING.
 *
 * Contract: init.
 */
SHIM_API enum shim_result
shim_profiler_enable_allocations(SHIM_IN struct shim_profiler_handle *handle) SHIM_INIT;

/* Larger periods are refused. */
#define SHIM_ALLOCATION_PERIOD_MAX (1ull << 40)

/*
 * shim_profiler_enable_sampled_allocations - ask for some of them
 *
 * Each byte that is allocated has the same chance, 1 / @period (in bytes), that its
 * block is told, whatever else is: a block's weight says for how many it stands,
 * so that sums of these are right on average.  With
 * a @seed other than 0 the choice is the same in each run, as far as threads begin
 * to allocate in the same order.  If others enable all allocations all are told,
 * with weight 1; of several periods the shortest counts.
 *
 * Returns as shim_profiler_enable_allocations; SHIM_E_INVALIDARG also for a period
 * of less than 2 bytes or more than SHIM_ALLOCATION_PERIOD_MAX.
 *
 * Contract: init.
 */
SHIM_API enum shim_result
shim_profiler_enable_sampled_allocations(SHIM_IN struct shim_profiler_handle *handle,
					 SHIM_IN uint64_t period,
					 SHIM_IN uint64_t seed) SHIM_INIT;

/* Anything but SHIM_OK ends the walk. */
typedef enum shim_result (*shim_block_callback)(const struct shim_block *block,
						void *client_data);

/*
 * shim_block_walk - the blocks that live
 *
 * Calls @callback for each that lives from the beginning of the walk to its end,
 * in no order, and for some of those that came or went meanwhile.  A walk that the
 * callback has ended is over: the next begins anew.  What the callback may do is
 * what the caller may.  Row C-4.
 *
 * Returns SHIM_OK; SHIM_E_INVALIDARG without @callback; SHIM_S_FALSE when the
 * callback ended it; SHIM_E_UNEXPECTED when it threw an exception;
 * SHIM_E_PROFILER_DETACHING.  Nothing is walked if nobody has enabled allocations.
 *
 * Contract: async.  Takes no lock.  Cost: all memory in which blocks are noted.
 */
SHIM_API enum shim_result
shim_block_walk(SHIM_IN shim_block_callback callback,
		SHIM_IN void *client_data) SHIM_ASYNC;

/* Of the process since it began; a forked child goes on with its parent's. */
struct shim_allocation_counts {
	uint64_t unknown;	/* releases of blocks that nobody was told of; 0 if not
				 * all are told */
	uint64_t untold;	/* blocks there was no memory to note: their release is
				 * not told */
	uint64_t early_lost;	/* calls before profilers were set up, beyond what could
				 * be kept */
};

/* A struct of the same name is there on purpose. */
#ifdef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#endif

/*
 * shim_get_allocation_counts - what could not be told as it should
 *
 * Returns SHIM_OK; SHIM_E_INVALIDARG; SHIM_E_PROFILER_DETACHING.
 *
 * Contract: async.
 */
SHIM_API enum shim_result
shim_get_allocation_counts(SHIM_OUT struct shim_allocation_counts *counts)
	SHIM_ASYNC;

#ifdef __cplusplus
#pragma GCC diagnostic pop
}
#endif
#endif
