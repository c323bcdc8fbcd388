/*
 * Writes gzip with zlib's stream functions, not with its file functions:
 * output_open() then decides where the output goes and when it gets its name.
 */
#include <stddef.h>
#include <stdio.h>

#include "base/gzip.h"
#include "base/messages.h"

/* Bits of the window, plus 16 for a gzip header; the header holds no time. */
#define GZIP_WINDOW (15 + 16)
/* zlib's default */
#define GZIP_MEMORY 8

void gzip_begin(struct gzip *gzip, FILE *out)
{
	gzip->out = out;
	gzip->stream = (z_stream){ .next_out = gzip->buffer,
				   .avail_out = sizeof(gzip->buffer) };
	/* Paths repeat each other, so a higher level hardly makes them
	 * smaller. */
	if (deflateInit2(&gzip->stream, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW,
			 GZIP_MEMORY, Z_DEFAULT_STRATEGY) != Z_OK)
		die("out of memory");
}

static void empty_buffer(struct gzip *gzip)
{
	fwrite(gzip->buffer, 1, sizeof(gzip->buffer) - gzip->stream.avail_out,
	       gzip->out);
	gzip->stream.next_out = gzip->buffer;
	gzip->stream.avail_out = sizeof(gzip->buffer);
}

void gzip_write(struct gzip *gzip, const void *data, size_t size)
{
	const unsigned char *at = data;
	uInt step;

	for (; size; size -= step, at += step) {
		step = size < 1 << 30 ? (uInt)size : 1 << 30;
		gzip->stream.next_in = (unsigned char *)at;
		gzip->stream.avail_in = step;
		while (gzip->stream.avail_in) {
			deflate(&gzip->stream, Z_NO_FLUSH);
			if (gzip->stream.avail_out == 0)
				empty_buffer(gzip);
		}
	}
}

void gzip_end(struct gzip *gzip)
{
	while (deflate(&gzip->stream, Z_FINISH) != Z_STREAM_END)
		empty_buffer(gzip);
	empty_buffer(gzip);
	deflateEnd(&gzip->stream);
}
