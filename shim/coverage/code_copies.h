/*
 * Copies of code whose traps cannot be removed, because the kernel refuses all ways to
 * write code (in a sandbox that shim did not see begin).  A thread that hits such a trap
 * continues in a copy, which does the same and marks the lines that it reaches.
 *
 * The memory is mapped when the traps are set.  Then copies need no system call.
 */
#ifndef SHIM_CODE_COPIES_H
#define SHIM_CODE_COPIES_H

#include "coverage/coverage.h"

/* Maps the memory near the object, which is about to get traps; without memory or a
 * decoder there are no copies.  The caller does not hold the state lock. */
void code_copies_prepare(struct coverage_object *object);

/* The copy of the code at @line, if there is one already; 0 if not. */
uintptr_t code_copies_find(const struct coverage_object *object, uint32_t line);
/* Makes it first if there is none; 0 on failure.  Async. */
uintptr_t code_copies_make(const struct coverage_object *object, uint32_t line);

#endif
