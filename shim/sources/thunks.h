/*
 * Code near an image, a thunk for each of its marks that are only at entries: it tells
 * arch/.../returns.S the function.
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
		       image->thunks +
			       (uintptr_t)(mark - image->marks) * THUNK_SIZE :
		       0;
}

#endif
