/*
 * The GOT slots through which images call the allocator and libc's locks.
 *
 * shim has wrappers of these functions (edge/allocations.c, edge/mutex.c).  If no
 * profiler enables the events of a family, calls bypass the wrappers: the slots are
 * pointed at the functions that the program would call without shim.  They are pointed
 * back when a profiler is attached that enables the events.  Only slots for calls
 * change, so that a function has one address in comparisons.  Slots of objects that
 * are loaded later change when shim notices the object, at its first hooked call.
 */
#ifndef SHIM_GOT_SLOTS_H
#define SHIM_GOT_SLOTS_H

#include "dispatch/hook_table.h"

/* Each family is decided for itself. */
enum got_slots_family { SLOTS_ALLOCATIONS, SLOTS_LOCKS, SLOTS_FAMILIES };

#define SLOTS_FUNCTIONS 40 /* of a family, at most */

/* A wrapper, and the function behind it. */
struct got_slots_function {
	const char *name;
	void *wrapper;
	void *target;
};

/*
 * The image calls @name through the slot @place; @is_undefined: the image does not
 * define it.  The slot is stored, and pointed at once if its family bypasses.
 */
void got_slots_found(const struct hook_table_image *image, const char *name,
		     uintptr_t place, bool is_undefined);

/* Decides that calls bypass the wrappers; called again, changes the targets, for
 * example back to the wrappers.  @is_first: images loaded at the start resolve these
 * names to the wrappers.  Takes the state lock. */
void got_slots_pass_by(
	enum got_slots_family family,
	const struct got_slots_function functions[SLOTS_FUNCTIONS],
	bool is_first);

/* Decides that calls go through the wrappers.  Takes the state lock. */
void got_slots_stay(enum got_slots_family family);

/* Forgets the slots in an address range that was unmapped. */
void got_slots_forget(uintptr_t start, uintptr_t end);

#endif
