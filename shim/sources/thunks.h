/*
 * Code near an image, a thunk for each of its marks that are only at entries: it tells
 * arch/.../returns.S the function.  For entries that no compiler has marked, a thunk also
 * has the moved instructions, and a switch: a word in the pages behind the thunks.
 */
#ifndef SHIM_THUNKS_H
#define SHIM_THUNKS_H

#include "sources/entry_code.h"
#include "sources/returns.h"
#include "sources/sources.h"

/* Makes the thunks of all marks of the image; false without memory near it. */
bool thunks_make(struct source_image *image);
void thunks_drop(struct source_image *image);

static inline uintptr_t thunk_of(const struct source_image *image,
				 const struct source_mark *mark)
{
	return image->thunks ?
		       image->thunks + (uintptr_t)(mark - image->marks) *
					       image->thunk_size :
		       0;
}

/* The switch of a mark's thunk, PATCHED_ON or PATCHED_MOVED bytes behind the thunk; 0: the
 * instructions could not be moved.  NULL without such thunks. */
static inline uintptr_t *thunk_switch(const struct source_image *image,
				      const struct source_mark *mark)
{
	return image->switches ? image->switches + (mark - image->marks) : NULL;
}

#endif
