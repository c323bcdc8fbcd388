/*
 * The marks of an image: found in its file, kept in its order.
 */
#ifndef SHIM_MARKS_H
#define SHIM_MARKS_H

#include "sources/sources.h"

/* Finds the marks of an image.  Returns 0 or -errno.  After a lack of memory or
 * descriptors, the next call tries again. */
int marks_find(struct source_image *image);

/* Finds only those that are cheaper once shim has changed them (idles()). */
int marks_find_idle(struct source_image *image);

/* Whether the object at [@start, @end), which no scan has found yet, may have marks: false if
 * its file lists none.  State lock held. */
bool marks_may_be_in(uintptr_t start, uintptr_t end);

/* The mark whose call returns to @address, or NULL. */
struct source_mark *marks_find_return(const struct source_image *image,
				      uintptr_t address);

/* A mark that enters @function, or NULL.  @after: the last answer, for functions that have
 * several. */
struct source_mark *marks_find_function(const struct source_image *image,
					uintptr_t function);

void marks_drop(struct source_image *image);

#endif
