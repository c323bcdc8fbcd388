/*
 * The GOT slots through which images call the allocator and libc's locks.
 *
 * shim has wrappers of these functions (edge/allocations.c, edge/mutex.c).  If no
 * profiler enables the events of a family, calls bypass the wrappers: shim points the
 * slots at the functions that the program would call without shim.  When a profiler is
 * attached that enables the events, shim points the slots at the wrappers again.  It
 * changes only slots for calls, so that a function has one address in comparisons.  It
 * changes the slots of an object that is loaded later when it finds the object, at the
 * object's first hooked call.  If shim records nothing, it finds the objects of the start
 * only.
 */
#ifndef SHIM_GOT_SLOTS_H
#define SHIM_GOT_SLOTS_H

#include "dispatch/hook_table.h"
#include "runtime/subscribe.h"

/* shim decides for each family separately. */
enum got_slots_family { SLOTS_ALLOCATIONS, SLOTS_LOCKS, SLOTS_FAMILIES };

#define SLOTS_FUNCTIONS 40 /* of a family, at most */

/* A wrapper, and the function that calls reach instead. */
struct got_slots_function {
	const char *name;
	void *wrapper;
	void *target;
};

/*
 * The image calls @name through the slot @place.  @is_undefined: the image does not
 * define @name.  Stores the slot, and points it if its family bypasses the wrappers.
 */
void got_slots_add(const struct hook_table_image *image, const char *name,
		   uintptr_t place, bool is_undefined);

/* Decides that calls bypass the wrappers.  A second call changes the targets, for
 * example back to the wrappers.  @is_first: images loaded at the start resolve these
 * names to the wrappers.  Takes the state lock. */
void got_slots_bypass(
	enum got_slots_family family,
	const struct got_slots_function functions[SLOTS_FUNCTIONS],
	bool is_first);

/* Decides that calls go through the wrappers.  Takes the state lock. */
void got_slots_use_wrappers(enum got_slots_family family);

/* A slot may lead to a thunk of a room above, which jumps to *@target: then shim points
 * the thunk instead. */
struct slot_thunk {
	uintptr_t place;
	uintptr_t *target; /* stays NULL if the slot leads to none */
};
/* State lock held. */
TOPIC(slot_thunk_wanted, struct slot_thunk *thunk);

/* Removes the slots in an address range that was unmapped. */
void got_slots_forget(uintptr_t start, uintptr_t end);

#endif
