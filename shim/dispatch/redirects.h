/*
 * GOT slots of a program that was started without shim.
 *
 * Its images call libc's empty hooks, and libc's functions instead of shim's wrappers.
 * After the attach, shim stores its own functions in these slots, and remembers the
 * former values.  From then on hook_table and got_slots handle the slots as those of a
 * program with shim preloaded.  A detach stores the former values again.
 *
 * shim changes slots for calls, so that a function has one address in comparisons; and
 * all slots for the compiler's hooks.  A slot for a hook that the program defines itself
 * stays as it is.  For malloc, free and their like, stub_redirects.h finds calls through
 * slots that are not only for calls; where it does not, an image's slots for all of them stay:
 * its blocks would be allocated and never released.
 */
#ifndef SHIM_REDIRECTS_H
#define SHIM_REDIRECTS_H

#include "dispatch/hook_table.h"

/* shim was attached: redirects_add changes slots.  State lock held, before the first
 * scan of images. */
void redirects_enable(void);

/* An image is scanned: first its slots with addresses of functions, then those for calls. */
void redirects_begin(void);
void redirects_note_address(const char *name, uintptr_t place);
/* @stubs: where the linker's stubs begin; 0: unknown. */
void redirects_end_addresses(const struct hook_table_image *image,
			     uintptr_t stubs);

/* Whether shim was attached and has a function @name for slots of this kind.  @is_call:
 * the slot is for calls only. */
bool redirects_want(const char *name, bool is_call);

/*
 * Stores shim's function in the slot for @name at @place, which redirects_want wants, if
 * the slot leads to the function that shim's function stands in front of.  @lazy: the
 * loader would resolve an unresolved slot in the program's list.  State lock held.
 */
void redirects_add(const struct hook_table_image *image, const char *name,
		   uintptr_t place, bool lazy);

/* Stores the former values in all slots, or shim's functions again.  State lock held. */
void redirects_undo(void);
void redirects_redo(void);

/* Removes the slots in an address range that was unmapped.  State lock held. */
void redirects_forget(uintptr_t start, uintptr_t end);

#endif
