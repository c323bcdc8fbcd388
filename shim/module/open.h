/*
 * dlopen for libraries that shim loads, and the steps after any dlopen.
 */
#ifndef SHIM_OPEN_H
#define SHIM_OPEN_H

/* As dlopen.  Raises image_loaded, but not image_loading or image_failed. */
void *module_open(const char *path, int flags);

/* Finds new objects after a dlopen, and raises their events.  @added: those that have code,
 * if the loader has done nothing else (image_look_for_added); NULL: not known. */
struct image_objects;
void open_look_again(const struct image_objects *added);

#endif
