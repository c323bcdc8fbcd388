/*
 * Events of allocations, raised for calls that edge/allocations.c reports.
 *
 * shim keeps the calls until it is decided whether a profiler enables their events.
 * Then shim raises the events in order, or drops the calls.
 */
#ifndef SHIM_ALLOCATIONS_INSIDE_H
#define SHIM_ALLOCATIONS_INSIDE_H

#include <shim/allocations.h>
#include <stdbool.h>

/* The allocator has returned @pointer, which is not NULL. */
void allocations_got(void *pointer, size_t size, size_t alignment,
		     enum shim_allocation_kind kind);
/* The caller is about to free @pointer. */
void allocations_gives(void *pointer);

/* Called around a realloc of @pointer.  Takes the block out of the table first, because
 * another thread may get the same address before realloc returns. */
struct allocations_change {
	struct shim_block before;
	uint64_t note;
	bool is_known;
};
void allocations_change_begins(struct allocations_change *change,
			       void *pointer);
/* The block is now at @pointer.  NULL: realloc failed, or freed it if @size is 0. */
void allocations_changed(struct allocations_change *change, void *pointer,
			 size_t size);

/* Profilers have been set up.  Raises the events of kept calls if a profiler has
 * enabled allocations; drops the calls if this was the last chance.  False while this
 * is undecided. */
bool allocations_decide(bool is_last_chance);

/* Whether a profiler has enabled allocations after that decision. */
bool allocations_wait_for_late(void);
/* Raises the events of allocations from now on. */
void allocations_begin_late(void);
/* shim was attached, for the first time or again: forgets all blocks.  Blocks that the table
 * lacks are older. */
void allocations_attached(void);
/* Whether allocations raise events. */
bool allocations_raise_events(void);
/* Whether the calling thread runs the program's code, not a profiler's. */
bool allocations_are_the_programs(void);
/* Whether the table has all blocks: the profiler does not sample, shim was not attached to
 * a running program, and memory never ran out. */
bool allocations_have_all_blocks(void);
/* Fills in the fields that that the table does not store. */
void allocations_complete(struct shim_block *block);

#endif
