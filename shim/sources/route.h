/*
 * The stubs that marks call (arch/.../sources.S), and the code near an image that jumps to
 * them.  A change of the plan changes a few words, and no mark.
 */
#ifndef SHIM_ROUTE_H
#define SHIM_ROUTE_H

#include "dispatch/plan.h"
#include "sources/sources.h"

/* Lets the code near all images jump to the stubs for @route. */
void route_set(const struct plan_route *route);

/* Code near the image, or 0: there is no memory near it, or the system refuses to make
 * memory executable. */
uintptr_t route_near(const struct source_image *image);

/* The begin of the code near an image that covers @address, or 0.  Async. */
uintptr_t route_part(uintptr_t address);
/* Whether there are any. */
bool route_is_used(void);

/* What thunks jump to (thunks.h). */
uintptr_t route_entry(void);

#endif
