/*
 * Memory that another thread may unmap at any time, read one page at a time:
 * many reads of a table cost one system call for each page.
 */
#ifndef SHIM_PAGES_H
#define SHIM_PAGES_H

#include <stdbool.h>
#include <stddef.h>

/* The caller holds the state lock from begin to end; repeated reads of a
 * page return its content at the first read. */
void pages_begin(void);
void pages_end(void);

/* 0 or -errno. */
int pages_read(const void *from, void *to, size_t size);

/* Reads a string of less than @size bytes; false if it is longer or not mapped. */
bool pages_read_text(const char *from, char *to, size_t size);

#endif
