/*
 * Functions that no compiler has marked (SHIM_PATCH): a jump to a thunk takes the place of
 * their first instructions, which run in the thunk.
 */
#ifndef SHIM_UNMARKED_H
#define SHIM_UNMARKED_H

#include "sources/sources.h"

/* Whether SHIM_PATCH is set, and the decoder was not opened yet. */
bool unmarked_is_waiting(void);
/* The decoder is open, or there is none. */
void unmarked_begin(void);

/* Adds the chosen functions of an image that has no other marks for them, and whose first
 * instructions can be moved.  The image's marks are sorted.  Returns 0 or -errno. */
int unmarked_find(struct source_image *image, source_add *add);

/* The size of the instructions in [@code, @code + @length) when they are at @to; 0: they
 * cannot be moved.  @copy is of the @copy_size bytes at @code. */
size_t unmarked_moved_size(const unsigned char *copy, size_t copy_size,
			   uintptr_t code, size_t length, uintptr_t to);

/* Writes the thunks of the image's marks of this kind, with the moved instructions.  State
 * lock held. */
void unmarked_put(const struct source_image *image, const void *slot);

#endif
