/*
 * Calls of library functions as functions of their own (SHIM_LIBCALLS): a GOT slot through
 * which an image calls another's function leads to a thunk, which enters the function as a
 * mark at its beginning would (returns.h), and jumps on to it.
 *
 * The function is known by the address of its symbol.  For an ifunc that is the resolver's,
 * because the code that the resolver chooses often has no symbol.
 *
 * All functions: state lock held.
 */
#ifndef SHIM_LIBCALLS_H
#define SHIM_LIBCALLS_H

#include "sources/sources.h"

struct plan_route;

/* Whether SHIM_LIBCALLS is set, and libcalls_begin was not called yet: objects may not be
 * relocated. */
bool libcalls_are_waiting(void);
void libcalls_begin(void);

/* Lets thunks enter functions for @route. */
void libcalls_route(const struct plan_route *route);

/* Finds the slots of new images, and points all slots.  After the marks of all images were
 * found: a function with marks keeps these.  Returns 0; -EBUSY if it is to be called again,
 * because an object may be unloaded now; -errno. */
int libcalls_settle(bool is_on);

/* SHIM_LIBCALLS has changed: all slots are as the loader left them, and are searched again. */
void libcalls_restart(void);

/* Whether calls of @function go through thunks. */
bool libcalls_have(uintptr_t function);

#endif
