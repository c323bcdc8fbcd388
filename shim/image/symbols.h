/*
 * The functions of an image: where they begin and end and what they are called.
 *
 * An index is built whole, published with one store and never changed, so that
 * a reader, who has pinned its image, needs no lock.  Addresses in it are those
 * in the file.
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
	uint32_t part, part_count;  /* of symbols->parts: but for the first */
	uint32_t names, names_size; /* of symbols->text: NUL after each */
};

struct symbols {
	size_t size; /* of this memory */
	uint32_t function_count, range_count, part_count;
	const struct symbols_function *functions; /* by address */
	const struct symbols_range *ranges;	  /* by address */
	const uint32_t *outer;		   /* the range around each, + 1 */
	const struct symbols_range *parts; /* by function */
	const char *text;
};

/* What image->symbols is when the file has gone or has no symbols. */
extern const struct symbols symbols_none;

/* Reads the image's symbols unless that is done.  0 or -errno, and then it may
 * be tried again.  State lock held. */
int symbols_read(struct image_entry *image);
/* State lock held, and nobody reads. */
void symbols_free(struct image_entry *image);

/* From now on each image is read when it comes; those that are here, now. */
void symbols_enable(void);
bool symbols_are_enabled(void);

/* The function that @address lies in, or NULL. */
const struct symbols_function *symbols_find(const struct symbols *symbols,
					    uint64_t address);

/* ".comment" of the image: the compiler that made it, cut to @size, or "".
 * State lock held. */
void symbols_read_compiler(const struct image_entry *image, char *text,
			   size_t size);

#endif
