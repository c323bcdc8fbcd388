/*
 * What an object calls itself, whatever its file is called: DT_SONAME.
 */
#ifndef SHIM_SONAME_H
#define SHIM_SONAME_H

#include "image/image.h"

#define SONAME_SIZE 256

/* False: it has none, or one too long.  @image is pinned. */
bool soname_read(const struct image_entry *image, char name[SONAME_SIZE]);

#endif
