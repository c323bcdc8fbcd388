/*
 * A piece of an image's memory, whose content shim does not trust: the memory itself, or a
 * copy if another thread may unmap the image meanwhile.
 */
#ifndef SHIM_MEMORY_VIEW_H
#define SHIM_MEMORY_VIEW_H

#include <stddef.h>
#include <stdint.h>

struct view {
	uintptr_t start; /* its address in the program */
	size_t size;
	const unsigned char *bytes; /* where it can be read */
};

/* The @size bytes at @address, or NULL if the view does not contain them all. */
static inline const unsigned char *view_at(const struct view *view,
					   uintptr_t address, size_t size)
{
	if (address < view->start || size > view->size ||
	    address - view->start > view->size - size)
		return NULL;
	return view->bytes + (address - view->start);
}

#endif
