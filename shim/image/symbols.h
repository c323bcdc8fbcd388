/*
 * The functions of an image: their addresses, sizes and names.
 *
 * shim builds an index completely, publishes it with one store, and never changes it,
 * so that a reader needs no lock.  The reader must have pinned the image.  Addresses
 * are those in the file.
 */
#ifndef SHIM_SYMBOLS_H
#define SHIM_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct image_entry;

struct symbols_range {
	uint64_t start;
	uint32_t size;
	uint32_t function;
};

struct symbols_function {
	uint64_t start;
	uint32_t size;
	uint32_t part, part_count;  /* its other ranges, in symbols->parts */
	uint32_t names, names_size; /* in symbols->text, each with a NUL */
};

struct symbols {
	size_t size; /* of this memory */
	uint32_t function_count, range_count, part_count;
	const struct symbols_function *functions; /* by address */
	const struct symbols_range *ranges;	  /* by address */
	const uint32_t *outer; /* the enclosing range + 1; 0: none */
	const struct symbols_range *parts; /* by function */
	const char *text;
};

/* The value of image->symbols if the file was removed or has no symbols. */
extern const struct symbols symbols_none;

/* Reads the image's symbols unless it has them.  Returns 0, or -errno if another try may
 * succeed.  State lock held. */
int symbols_read(struct image_entry *image);
/* Frees the image's symbols.  State lock held; no thread reads. */
void symbols_free(struct image_entry *image);

/* Reads the symbols of all images now, and of each new image later. */
void symbols_enable(void);
bool symbols_are_enabled(void);

/* The function that contains @address, or NULL. */
const struct symbols_function *symbols_find(const struct symbols *symbols,
					    uint64_t address);

/* Stores ".comment" of the image, which names its compiler, in @text: cut to @size
 * bytes, or "".  State lock held. */
void symbols_read_compiler(const struct image_entry *image, char *text,
			   size_t size);

#endif
