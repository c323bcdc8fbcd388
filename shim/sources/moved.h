/*
 * The addresses in thunks and veneers where a thread may be interrupted, for the unwinder: no
 * unwind table describes them, but they stand for an address in the function.
 */
#ifndef SHIM_MOVED_H
#define SHIM_MOVED_H

#include "sources/sources.h"

/* The thunks of the image are complete, and have @size bytes.  State lock held. */
void moved_note(const struct source_image *image, size_t size);
/* They are about to be unmapped. */
void moved_forget(uintptr_t thunks);

#endif
