/*
 * A piece of an image's memory, which is read without trusting its content: the
 * memory itself, or a copy if another thread may unmap it meanwhile.
 */
#ifndef SHIM_MEMORY_VIEW_H
#define SHIM_MEMORY_VIEW_H

#include <stddef.h>
#include <stdint.h>

struct view {
	uintptr_t start; /* the address it has in the program */
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
