/*
 * Memory that another thread may unmap at any time.  shim reads whole pages and caches
 * them: many reads of a table cost one system call for some pages.
 */
#ifndef SHIM_PAGES_H
#define SHIM_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From here to the next pages_begin, every read of a page returns its content at the first
 * read.  Pages below @limit, the end of an image, may be read before they are asked for.
 * State lock held, here and below. */
void pages_begin(uintptr_t limit);
/* Gives the memory of the cache back, after the last read of several. */
void pages_drop(void);

/* Returns 0 or -errno. */
int pages_read(const void *from, void *to, size_t size);

/* Reads a string of less than @size bytes; false if it is longer or unmapped. */
bool pages_read_text(const char *from, char *to, size_t size);

#endif
