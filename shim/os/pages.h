/*
 * Memory that another thread may unmap at any time.  shim reads whole pages and caches
 * them: many reads of a table cost one system call for each page.
 */
#ifndef SHIM_PAGES_H
#define SHIM_PAGES_H

#include <stdbool.h>
#include <stddef.h>

/* The caller holds the state lock from pages_begin to pages_end.  Between them, every read
 * of a page returns its content at the first read. */
void pages_begin(void);
void pages_end(void);

/* Returns 0 or -errno. */
int pages_read(const void *from, void *to, size_t size);

/* Reads a string of less than @size bytes; false if it is longer or unmapped. */
bool pages_read_text(const char *from, char *to, size_t size);

#endif
