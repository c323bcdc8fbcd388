/* A gzip output that is written piece by piece. */
#ifndef REPORT_BASE_GZIP_H
#define REPORT_BASE_GZIP_H

#include <stddef.h>
#include <stdio.h>
#include <zlib.h>

struct gzip {
	z_stream stream;
	FILE *out; /* owned by the caller, who also checks it for errors */
	unsigned char buffer[65536];
};

void gzip_begin(struct gzip *gzip, FILE *out);
void gzip_write(struct gzip *gzip, const void *data, size_t size);
/* Writes the rest to @out and frees the memory. */
void gzip_end(struct gzip *gzip);

#endif
