/*
 * The name in an object's DT_SONAME, which may differ from its file's name.
 */
#ifndef SHIM_SONAME_H
#define SHIM_SONAME_H

#include "image/image.h"

#define SONAME_SIZE 256

/* False if the object has no soname, or a name that does not fit.  The caller must have
 * pinned @image. */
bool soname_read(const struct image_entry *image, char name[SONAME_SIZE]);

#endif
