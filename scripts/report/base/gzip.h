/*
 * A gzip output that is written piece by piece.  A thread of its own compresses one
 * buffer while the caller fills the other one.
 */
#ifndef REPORT_BASE_GZIP_H
#define REPORT_BASE_GZIP_H

#include <stddef.h>
#include <stdio.h>

struct gzip;

/* @out belongs to the caller, who also checks it for errors, and must not write to it
 * before gzip_end(). */
struct gzip *gzip_begin(FILE *out);

/* Bytes that the caller may write from gzip_room() on, before gzip_wrote() tells how
 * many it wrote. */
#define GZIP_ROOM 256

unsigned char *gzip_room(struct gzip *gzip);
void gzip_wrote(struct gzip *gzip, size_t size); /* at most GZIP_ROOM */

void gzip_write(struct gzip *gzip, const void *data, size_t size);

/* Writes the rest to @out and frees the memory. */
void gzip_end(struct gzip *gzip);

#endif
