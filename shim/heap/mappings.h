/*
 * Mappings: what the program has mapped by itself, from the doors of
 * edge/mappings.c to those who have enabled allocations.
 *
 * They are few and change at the cost of a system call, so they stand in one list,
 * under the lock of state.h.
 */
#ifndef SHIM_MAPPINGS_INSIDE_H
#define SHIM_MAPPINGS_INSIDE_H

#include <shim/mappings.h>
#include <stdbool.h>
#include <stddef.h>

/* What was at [address, address + size) has gone, or goes now: tells it. */
void mappings_give(uintptr_t address, size_t size);
/* It is there now; whatever was there before has gone. */
void mappings_got(uintptr_t address, size_t size, int protection, int flags);

/* Around mremap of what is at @address: takes it out. */
struct mappings_change {
	struct shim_mapping before;
	uint64_t note;
	bool is_known;
};
void mappings_change_begins(struct mappings_change *change, uintptr_t address,
			    size_t size);
/* It is now at @address; 0: nothing has changed. */
void mappings_changed(struct mappings_change *change, uintptr_t address,
		      size_t size);

void mappings_break_moved(uintptr_t before, uintptr_t after);

/* The end of the first one that ends above @at and is written to, and where it
 * begins; 0: there is none. */
uintptr_t mappings_next(uintptr_t at, uintptr_t *low);

#endif
