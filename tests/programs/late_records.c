/*
 * A library that is loaded before shim-report's own ones and imitates a program that writes
 * a record while it is read: of the bytes at LATE_AT, LATE_SIZE are zeros for the first read
 * of them that begins before.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

ssize_t pread64(int fd, void *buffer, size_t size, off64_t offset)
{
	static ssize_t (*next)(int, void *, size_t, off64_t);
	static int has_read;
	off64_t late = atol(getenv("LATE_AT"));
	size_t late_size = (size_t)atol(getenv("LATE_SIZE"));
	ssize_t got;

	if (!next)
		next = (ssize_t(*)(int, void *, size_t, off64_t))dlsym(
			RTLD_NEXT, "pread64");
	got = next(fd, buffer, size, offset);
	/* The reads of heads of blocks are shorter. */
	if (!has_read && offset < late && size > 1024 &&
	    offset + got >= late + (off64_t)late_size) {
		memset((char *)buffer + (late - offset), 0, late_size);
		has_read = 1;
	}
	return got;
}
