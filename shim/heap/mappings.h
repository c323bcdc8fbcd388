/*
 * Mappings that the program makes itself, and their events, raised for calls that
 * edge/mappings.c reports.
 *
 * A program has few mappings, and each change costs a system call anyway.  So all
 * mappings are in one list under the state lock.
 */
#ifndef SHIM_MAPPINGS_INSIDE_H
#define SHIM_MAPPINGS_INSIDE_H

#include <shim/mappings.h>
#include <stdbool.h>
#include <stddef.h>

/* The program unmaps [address, address + size).  Raises the events of the mappings
 * there. */
void mappings_give(uintptr_t address, size_t size);
/* The program has mapped this range; earlier mappings there are gone. */
void mappings_got(uintptr_t address, size_t size, int protection, int flags);

/* Called around mremap of the range at @address.  Takes the range out of the list. */
struct mappings_change {
	struct shim_mapping before;
	uint64_t note;
	bool is_known;
};
void mappings_change_begins(struct mappings_change *change, uintptr_t address,
			    size_t size);
/* The range is now at @address; 0: mremap failed. */
void mappings_changed(struct mappings_change *change, uintptr_t address,
		      size_t size);

void mappings_break_moved(uintptr_t before, uintptr_t after);

/* Returns the end of the first writable mapping that ends above @at, and its start in
 * *@low; 0 after the last mapping. */
uintptr_t mappings_next(uintptr_t at, uintptr_t *low);

#endif
