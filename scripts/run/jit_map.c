/*
 * Keeps the names of code that a program made while it ran.  Node, Java, LuaJIT and others
 * write them to /tmp/perf-PID.map, where anybody may write: the file must be a regular one
 * that belongs to the user, and is copied before the pid can belong to another process.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jit_map.h"
#include "say.h"

#define SIZE_MOST (256 << 20)

/* Times of files are coarser than the clock. */
#define COARSE_NS 20000000

bool jit_file_is_ours(int fd, uint64_t start_real_ns, uint64_t size_most)
{
	struct stat info;
	uint64_t changed;

	if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) ||
	    info.st_uid != geteuid() || info.st_nlink != 1 ||
	    (uint64_t)info.st_size > size_most)
		return false;
	changed = (uint64_t)info.st_mtim.tv_sec * 1000000000 +
		  (uint64_t)info.st_mtim.tv_nsec;
	return changed + COARSE_NS >= start_real_ns;
}

static bool copy_file(int from, int to)
{
	char part[1 << 16];
	ssize_t size, done, r;

	while ((size = read(from, part, sizeof(part))) > 0)
		for (done = 0; done < size; done += r) {
			r = write(to, part + done, size - done);
			if (r <= 0)
				return false;
		}
	return size == 0;
}

void jit_map_keep(int directory, uint32_t pid, uint64_t start_real_ns)
{
	char path[64];
	int from, to;

	snprintf(path, sizeof(path), "/tmp/perf-%u.map", pid);
	from = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (from < 0)
		return;
	if (jit_file_is_ours(from, start_real_ns, SIZE_MOST)) {
		to = openat(directory, "jit-map",
			    O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (to < 0 || !copy_file(from, to)) {
			say("%s: cannot be kept: %s", path, strerror(errno));
			if (to >= 0)
				unlinkat(directory, "jit-map", 0);
		}
		if (to >= 0)
			close(to);
	}
	close(from);
}
