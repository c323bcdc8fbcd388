/* Copies files with holes, such as those of recordings. */
#ifndef COMMON_COPY_H
#define COMMON_COPY_H

/*
 * copy_with_holes - copies the content of @from to @to, an empty file
 *
 * Holes stay holes.  @from may grow or shrink meanwhile.
 *
 * Returns 0, or -1 with errno.
 */
int copy_with_holes(int from, int to);

#endif
