/*
 * Finds the image and the function of a query, for info.c and info_debuginfo.c.
 */
#ifndef SHIM_INFO_LOCATION_H
#define SHIM_INFO_LOCATION_H

#include "image/image.h"
#include "image/symbols.h"

#include <shim/info.h>

struct info_location {
	struct image_entry *image;
	uint64_t address;			 /* as the file has it */
	const struct symbols *symbols;		 /* NULL: not read yet */
	const struct symbols_function *function; /* NULL: no symbol */
};

/* The image of @address may be loaded without shim's knowledge.  A callback that shim
 * called with the state lock held cannot search for the image. */
void info_scan_for(uintptr_t address);

/* Finds the image of @address, and the function if its symbols were read.  The caller
 * has pinned the images. */
enum shim_result info_find_address(uintptr_t address,
				   struct info_location *location);

/* An address inside a function is not a function. */
enum shim_result info_find_function(shim_function function,
				    struct info_location *location);

/* Like info_find_function, but the function must have a symbol. */
enum shim_result info_find_symbol(shim_function function,
				  struct info_location *location);

/* If symbols cannot be read, the failure surfaces at the next lookup. */
enum shim_result info_read_symbols(uintptr_t address);

/* Finds the function, of those with symbols, that contains @address.  Pins the images
 * itself. */
enum shim_result info_function_at(const void *address, shim_function *function);

/* The linker names of the function, each with its NUL. */
static inline const char *info_names_of(const struct info_location *location)
{
	return location->symbols->text + location->function->names;
}

#endif
