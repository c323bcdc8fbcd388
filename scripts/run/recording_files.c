/* Whoever wrote the files may have damaged them: nothing but a regular file is read. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "recording_files.h"

size_t recording_read_at(int fd, void *memory, size_t size, uint64_t offset)
{
	size_t done = 0;
	ssize_t r;

	while (done < size) {
		r = pread(fd, (char *)memory + done, size - done,
			  offset + done);
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			break;
		done += r;
	}
	return done;
}

static bool is_regular(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

int recording_open_file(int directory, const char *name)
{
	int fd;

	fd = openat(directory, name,
		    O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0 && !is_regular(fd)) {
		close(fd);
		errno = EINVAL;
		return -1;
	}
	return fd;
}

static int is_process(const struct dirent *entry)
{
	return entry->d_name[0] >= '0' && entry->d_name[0] <= '9';
}

int recording_each_process(const char *path, visit_process visit, void *data)
{
	bool is_wanted = true;
	struct dirent **entry;
	int n, fd;

	n = scandir(path, &entry, is_process, versionsort);
	for (int i = 0; i < n; i++) {
		char name[PATH_MAX];

		snprintf(name, sizeof(name), "%s/%s", path, entry[i]->d_name);
		fd = open(name,
			  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0) {
			if (is_wanted)
				is_wanted = visit(fd, entry[i]->d_name, data);
			close(fd);
		}
		free(entry[i]);
	}
	if (n >= 0)
		free(entry);
	return n;
}

bool recording_read_meta(int directory, struct shim_meta *meta)
{
	bool ok;
	int fd;

	fd = recording_open_file(directory, "meta");
	if (fd < 0)
		return false;
	ok = recording_read_at(fd, meta, sizeof(*meta), 0) == sizeof(*meta) &&
	     memcmp(meta->magic, SHIM_META_MAGIC, 8) == 0 &&
	     meta->version >= SHIM_FORMAT_VERSION &&
	     meta->version <= SHIM_FORMAT_VERSION_GROUPS;
	close(fd);
	return ok;
}
