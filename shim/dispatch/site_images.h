/*
 * The images that have call sites, and what is wanted of all their sites.  All functions:
 * state lock held.
 */
#ifndef SHIM_SITE_IMAGES_H
#define SHIM_SITE_IMAGES_H

#include "dispatch/find_sites.h"

#define SITE_IMAGES_MAX 256

extern struct site_image site_images[SITE_IMAGES_MAX];
extern unsigned site_image_count;

extern bool sites_all_off;
/* shim is detached: all sites are on, whatever profilers want. */
extern bool sites_are_detached;
/* The code of an image may differ from the wanted state. */
extern bool sites_are_unsettled;

/* The image with the address, or NULL. */
struct site_image *site_image_of(uintptr_t address);

/* The index of the first site at or after @offset. */
uint32_t site_from(const struct site_image *image, uint32_t offset);

/* Finds the call that returns to @return_address, and its image.  Returns 0 or -errno. */
int site_of_return(uintptr_t return_address, struct site_image **image,
		   struct site **site);

#endif
