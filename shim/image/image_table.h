/*
 * The entries of images, for the files that work on them: image.c, which finds images, and
 * image_events.c, which raises their events.
 */
#ifndef SHIM_IMAGE_TABLE_H
#define SHIM_IMAGE_TABLE_H

#include "image/image.h"

enum image_status {
	IMAGE_FREE,
	IMAGE_LOADED,
	IMAGE_GONE, /* a thread may still read it */
};

/* The entry @index, which is less than image_entries(). */
struct image_entry *image_at(uint32_t index);
/* The number of entries, used or not.  State lock held. */
uint32_t image_entries(void);

/* Frees old lists and the entries of unloaded images, unless a thread reads.  State lock
 * held. */
void image_reclaim(void);

/* The number of a new notice: an event to raise to modules.  State lock held. */
uint64_t image_next_notice(void);

#endif
