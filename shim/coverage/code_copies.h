/*
 * Copies of code whose traps cannot be removed, because the kernel refuses all ways to
 * write code (in a sandbox that began before shim knew of it).  A thread that hits such
 * a trap continues in a copy, which has the same effect and marks the lines that it
 * reaches.
 *
 * The memory is mapped when the traps are set.  Then copies need no system call.
 */
#ifndef SHIM_CODE_COPIES_H
#define SHIM_CODE_COPIES_H

#include "coverage/coverage.h"

/* Maps the memory near the object, before traps are set in it.  Without memory or a
 * decoder, copies are never made.  The caller does not hold the state lock. */
void code_copies_prepare(struct coverage_object *object);

/* Returns the copy of the code at @line; 0 if it has not been made. */
uintptr_t code_copies_find(const struct coverage_object *object, uint32_t line);
/* Makes the copy first if necessary; 0 on failure.  Async. */
uintptr_t code_copies_make(const struct coverage_object *object, uint32_t line);

/* Replaces the traps in @bytes, a copy of the code at @address. */
void code_copies_restore(const struct coverage_object *object,
			 uintptr_t address, unsigned char *bytes, size_t size);

#endif
