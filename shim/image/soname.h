/*
 * The name that an object gives itself (DT_SONAME), whatever its file's name is.
 */
#ifndef SHIM_SONAME_H
#define SHIM_SONAME_H

#include "image/image.h"

#define SONAME_SIZE 256

/* False if it has none or a longer one.  The caller has pinned @image. */
bool soname_read(const struct image_entry *image, char name[SONAME_SIZE]);

#endif
