/* A gzip'ed output, written piece by piece. */
#ifndef REPORT_BASE_GZIP_H
#define REPORT_BASE_GZIP_H

#include <stddef.h>
#include <stdio.h>
#include <zlib.h>

struct gzip {
	z_stream stream;
	FILE *out; /* the caller's; its errors are, too */
	unsigned char buffer[65536];
};

void gzip_begin(struct gzip *gzip, FILE *out);
void gzip_write(struct gzip *gzip, const void *data, size_t size);
/* Everything is in @out; the memory is free. */
void gzip_end(struct gzip *gzip);

#endif
