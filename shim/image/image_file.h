/*
 * The file "images" of a recording: which objects were loaded, where and when.  State
 * lock held.
 */
#ifndef SHIM_IMAGE_FILE_H
#define SHIM_IMAGE_FILE_H

#include <stdbool.h>

struct image_entry;

/* A new one; in a forked child beside its parent's.  0, or -errno, which the log says. */
int image_file_open(void);
bool image_file_is_open(void);
/* Sets image->record, which is NULL if there was no room: that is counted. */
void image_file_add(struct image_entry *image);
/* Counts one that is not even known. */
void image_file_lose(void);
/* It has gone, as the generation that it has. */
void image_file_end(const struct image_entry *image);

#endif
