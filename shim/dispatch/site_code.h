/*
 * The code of call sites: reading it, and writing the wanted state into it.  All
 * functions: state lock held.
 */
#ifndef SHIM_SITE_CODE_H
#define SHIM_SITE_CODE_H

#include "dispatch/patch.h"
#include "dispatch/site_images.h"

#include <stddef.h>

#define SITE_BUFFER PATCH_RUN_ROOM /* a run fits */

/* What site_read_code has read last. */
extern unsigned char site_buffer[SITE_BUFFER];

/* Reads at most SITE_BUFFER bytes.  Returns 0 or -errno. */
int site_read_code(const struct site_image *image, uintptr_t start,
		   size_t size);

/*
 * Writes the wanted state into the code of the sites from @first to @end.  Returns 0;
 * -EBUSY while the object may be unloaded; -errno.  Does not synchronize the processors, so
 * a thread may make one more call.
 */
int sites_settle_some(struct site_image *image, uint32_t first, uint32_t end);

/* The same for all images.  @find: also of images that were not scanned.  After this, no
 * thread executes the old code. */
int sites_settle_all(bool find);

/* Throttles the site, or ends that, in the next sites_settle_changed. */
void site_change(struct site_image *image, struct site *site, bool on);

/* Writes the changes of site_change.  An object that is being unloaded is changed later,
 * which is not an error. */
int sites_settle_changed(void);

#endif
