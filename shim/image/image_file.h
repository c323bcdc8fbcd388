/*
 * The file "images" of a recording: the loaded objects, with their addresses and times.
 * All functions: state lock held.
 */
#ifndef SHIM_IMAGE_FILE_H
#define SHIM_IMAGE_FILE_H

#include <stdbool.h>

struct image_entry;

/* Creates the file; a forked child creates its own.  Returns 0; or -errno, after
 * logging it. */
int image_file_open(void);
bool image_file_is_open(void);
/* Writes a record and stores it in image->record.  Without room, stores NULL and counts the
 * loss. */
void image_file_add(struct image_entry *image);
/* Counts an image that shim cannot record, because it has no entry for it. */
void image_file_lose(void);
/* Writes the time of unloading and the generation of an image. */
void image_file_end(const struct image_entry *image);

#endif
