/*
 * Allocations: from the doors of edge/allocations.c to those who want events.
 *
 * Until it is known whether anybody does, calls are kept; then they are told in
 * their order, or forgotten.
 */
#ifndef SHIM_ALLOCATIONS_INSIDE_H
#define SHIM_ALLOCATIONS_INSIDE_H

#include <shim/allocations.h>
#include <stdbool.h>

/* @pointer, which the allocator has just given out, is not NULL. */
void allocations_got(void *pointer, size_t size, size_t alignment,
		     enum shim_allocation_kind kind);
/* @pointer is about to go back to the allocator. */
void allocations_gives(void *pointer);

/* Around a realloc of @pointer: it may be anybody's as soon as the allocator has
 * it. */
struct allocations_change {
	struct shim_block before;
	uint64_t note;
	bool is_known;
};
void allocations_change_begins(struct allocations_change *change,
			       void *pointer);
/* It is now @pointer; NULL: nothing has changed or, for a @size of 0, it was given
 * back. */
void allocations_changed(struct allocations_change *change, void *pointer,
			 size_t size);

/* Profilers have been set up: tells what was kept if somebody has enabled
 * allocations, forgets it if this was the last chance; false: go on keeping. */
bool allocations_decide(bool is_last_chance);

/* Somebody has asked when that was over; and they are told from now on. */
bool allocations_wait_for_late(void);
void allocations_begin_late(void);
bool allocations_are_told(void);
/* What the calling thread does now is not a profiler's. */
bool allocations_are_the_programs(void);
/* ... and none is left out, by chance or for want of memory. */
bool allocations_are_all_told(void);
/* Fills in what is not kept with a block. */
void allocations_complete(struct shim_block *block);

#endif
