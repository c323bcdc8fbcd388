/*
 * Memory that another thread may unmap meanwhile, read by the page: what is looked at
 * in a table here and there takes one system call for all of a page.
 */
#ifndef SHIM_PAGES_H
#define SHIM_PAGES_H

#include <stdbool.h>
#include <stddef.h>

/* State lock held in between; what is read is as it was after the first. */
void pages_begin(void);
void pages_end(void);

/* 0 or -errno. */
int pages_read(const void *from, void *to, size_t size);

/* A string of less than @size bytes; false: it is longer, or not there. */
bool pages_read_text(const char *from, char *to, size_t size);

#endif
