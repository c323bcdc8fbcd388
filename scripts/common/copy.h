/* Copies files with holes, such as those of recordings. */
#ifndef COMMON_COPY_H
#define COMMON_COPY_H

#include <stddef.h>

/*
 * copy_with_holes - copies the content of @from to @to, an empty file
 *
 * Holes stay holes.  @from may grow or shrink meanwhile.  @tell, which may be NULL, gets
 * the size of each part when it has been copied.
 *
 * Returns 0, or -1 with errno.
 */
int copy_with_holes(int from, int to, void (*tell)(size_t bytes));

#endif
