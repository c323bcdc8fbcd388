/*
 * Calls of malloc, free and their like, after an attach, through a slot that also has the
 * function's address, as in an object that passes free as a destructor.
 *
 * This address must stay what it is, because the program may compare it with one that it has
 * had since before.  So the slot stays, and shim lets the linker's stub, through which the
 * calls go, jump through a slot of shim's own near the object.
 *
 * All functions: state lock held.
 */
#ifndef SHIM_STUB_REDIRECTS_H
#define SHIM_STUB_REDIRECTS_H

#include <stdbool.h>
#include <stdint.h>

/* An image is scanned: forgets what was noted. */
void stub_redirects_begin(void);
/* The slot at @place has the address of a function, and calls of it are to lead to @ours. */
void stub_redirects_note(uintptr_t place, uintptr_t ours);
/*
 * stub_redirects_make - lets the stubs of all noted slots lead to shim
 *
 * @code: where the image's stubs begin, after its function for DT_INIT; 0: unknown.
 * @is_undone: shim is detached: stub_redirects_switch() will do it.
 *
 * Returns true if all slots have a stub; else no stub is changed.
 */
bool stub_redirects_make(uintptr_t code, bool is_undone);
/* Gives all stubs shim's slots, or their own. */
void stub_redirects_switch(bool is_on);
/* Removes those in an address range that was unmapped. */
void stub_redirects_forget(uintptr_t start, uintptr_t end);

#endif
