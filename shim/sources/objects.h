/*
 * Objects that a list of functions does not mean, unless it names them, and those that shim
 * leaves as they are.
 */
#ifndef SHIM_OBJECTS_H
#define SHIM_OBJECTS_H

#include <stdbool.h>

struct image_entry;

/* Libraries that everything else stands on: a pattern of functions does not mean theirs. */
bool objects_is_system(const char *path);

/* The virtual machine of Java finds frames by return addresses in memory (generated.h), and
 * cannot be told where they are. */
bool objects_is_java(const char *path);

/* The loader runs before and under everything; its functions stay as they are, as do those
 * of shim, and what the kernel maps. */
bool objects_is_untouchable(const struct image_entry *entry);

#endif
