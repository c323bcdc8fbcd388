/*
 * The slots through which images call the allocator, and libc's locks.
 *
 * Our doors stand before them (edge/allocations.c, edge/mutex.c).  When nobody asks
 * for a family of events, calls need not come by: the slots of images are pointed at
 * what would have been called without us, and back when a profiler that is attached
 * asks.  Only those that calls alone go through: a
 * function keeps its one address for those who compare it.  Objects that come later
 * have theirs pointed when they are noticed, by their first hooked call.
 */
#ifndef SHIM_GOT_SLOTS_H
#define SHIM_GOT_SLOTS_H

#include "dispatch/hook_table.h"

/* Decided one by one. */
enum got_slots_family { SLOTS_ALLOCATIONS, SLOTS_LOCKS, SLOTS_FAMILIES };

#define SLOTS_FUNCTIONS 40	/* of a family, at most */

/* What is behind our doors, and the doors. */
struct got_slots_function {
	const char *name;
	void *door;
	void *target;
};

/*
 * @name is called through @place; @is_undefined: by the image's own word it is
 * another's.  Remembered, or dealt with at once when it is decided.
 */
void got_slots_found(const struct hook_table_image *image, const char *name,
		 uintptr_t place, bool is_undefined);

/* Decides that calls need not come by; or, once more, that they go somewhere else
 * now, such as back to the doors.  @is_first: ours are the first of these names that
 * the images of the program's start find.  Takes the state lock. */
void got_slots_pass_by(enum got_slots_family family,
		   const struct got_slots_function functions[SLOTS_FUNCTIONS],
		   bool is_first);

/* Decides that they shall. */
void got_slots_stay(enum got_slots_family family);

/* Forgets an address range that is gone. */
void got_slots_forget(uintptr_t start, uintptr_t end);

#endif
