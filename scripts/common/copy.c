/*
 * Copies a file with its holes: SEEK_DATA and SEEK_HOLE find the parts with data, and
 * only these are written, because a recording is mostly holes.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "common/copy.h"

#include <errno.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

static int write_all(int to, const char *bytes, size_t size, off_t at)
{
	while (size > 0) {
		ssize_t done = pwrite(to, bytes, size, at);

		if (done < 0)
			return -1;
		bytes += done;
		size -= (size_t)done;
		at += done;
	}
	return 0;
}

/* Copies [at, end), or up to the end of the file if that comes first. */
static int copy_part(int from, int to, off_t at, off_t end,
		     void (*tell)(size_t bytes))
{
	char bytes[65536];

	while (at < end) {
		size_t want = end - at < (off_t)sizeof(bytes) ?
				      (size_t)(end - at) :
				      sizeof(bytes);
		ssize_t got = pread(from, bytes, want, at);

		if (got < 0)
			return -1;
		if (got == 0)
			break;
		if (write_all(to, bytes, (size_t)got, at))
			return -1;
		at += got;
		if (tell)
			tell((size_t)got);
	}
	return 0;
}

int copy_with_holes(int from, int to, void (*tell)(size_t bytes))
{
	off_t at = 0, end;
	struct stat info;

	if (fstat(from, &info) || ftruncate(to, info.st_size))
		return -1;
	while ((at = lseek(from, at, SEEK_DATA)) >= 0) {
		end = lseek(from, at, SEEK_HOLE);
		if (end < 0)
			break;
		if (copy_part(from, to, at, end, tell))
			return -1;
		at = end;
	}
	return errno == ENXIO ? 0 : -1;
}
