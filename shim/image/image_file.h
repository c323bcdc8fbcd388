/*
 * The file "images" of a recording: the loaded objects, with their addresses and times.
 * All functions: state lock held.
 */
#ifndef SHIM_IMAGE_FILE_H
#define SHIM_IMAGE_FILE_H

#include <stdbool.h>

struct image_entry;

/* Creates the file; a forked child creates its own.  Returns 0, or -errno, which the
 * log has. */
int image_file_open(void);
bool image_file_is_open(void);
/* Writes a record and sets image->record: NULL if there was no room, which is
 * counted. */
void image_file_add(struct image_entry *image);
/* Counts an image that has no entry. */
void image_file_lose(void);
/* Writes the end and the generation of an unloaded image. */
void image_file_end(const struct image_entry *image);

#endif
