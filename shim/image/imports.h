/*
 * The imports of an image: symbols of other objects, and the GOT slots through which the
 * image reaches them.
 */
#ifndef SHIM_IMPORTS_H
#define SHIM_IMPORTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct import {
	const char *name;
	const char *version; /* NULL: none */
	uintptr_t slot;	     /* its address */
	/* The slot is for calls.  Others may serve calls, or tell the symbol's address. */
	bool is_call;
};

struct imports_image {
	uintptr_t bias, dynamic;
	size_t dynamic_size;
	/* Another thread may unload the image at any time: read it by system calls. */
	bool may_go;
};

/*
 * Calls take(argument, import) for each slot of an undefined symbol that is not known to be
 * data.  @import is valid until @take returns.  Ignores names of more than 1023 bytes.
 * Returns 0; -EFAULT if the image was unmapped meanwhile.  State lock held.
 */
int imports_read(const struct imports_image *image,
		 void (*take)(void *argument, const struct import *import),
		 void *argument);

#endif
