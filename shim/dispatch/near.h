/*
 * Memory near an image, for code that the image's code calls.
 */
#ifndef SHIM_NEAR_H
#define SHIM_NEAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Maps @size bytes that fork children share, near the image at @start: below it if there
 * is room.  Returns the address, or 0.  State lock held. */
uintptr_t near_map(uintptr_t start, size_t size);

/* Whether a call in the image [@start, @end) reaches all of the @size bytes at @part. */
bool near_reaches(uintptr_t part, size_t size, uintptr_t start, uintptr_t end);

#endif
