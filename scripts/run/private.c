/*
 * In directories that other users may write, they decide what a name leads to.  So a
 * directory is opened, checked, and used by its descriptor.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "private.h"

enum { OTHER_OWNER = 5001, OTHER_ACCESS };

static int check_owner(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_uid != geteuid())
		return -OTHER_OWNER;
	return st.st_mode & (S_IRWXG | S_IRWXO) ? -OTHER_ACCESS : 0;
}

static int open_directory(int above, const char *name)
{
	int fd = openat(above, name,
			O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int finish(int fd, int r)
{
	if (r < 0)
		close(fd);
	return r < 0 ? r : fd;
}

int private_open(int above, const char *name)
{
	int fd = open_directory(above, name);

	return fd < 0 ? fd : finish(fd, check_owner(fd));
}

/* The umask may have removed bits, and a default ACL may have added some.  By now the
 * directory's name may lead elsewhere, but its descriptor does not. */
static void give_mode(int fd)
{
	struct stat st;
	char path[40];

	if (fstat(fd, &st) < 0 || st.st_uid != geteuid() ||
	    (st.st_mode & ACCESSPERMS) == S_IRWXU)
		return;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	chmod(path, S_IRWXU);
}

int private_make(int above, const char *name)
{
	int fd;

	if (mkdirat(above, name, S_IRWXU) < 0)
		return -errno;
	fd = open_directory(above, name);
	if (fd < 0)
		return fd;
	give_mode(fd);
	return finish(fd, check_owner(fd));
}

int private_create(const char *path, const char *name)
{
	int above = private_open(AT_FDCWD, path), fd;

	if (above < 0)
		return above;
	fd = openat(above, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		fd = -errno;
	else
		fchmod(fd, 0600);
	close(above);
	return fd;
}

void private_remove(const char *path, const char *name)
{
	int above = private_open(AT_FDCWD, path);

	if (above < 0)
		return;
	unlinkat(above, name, 0);
	close(above);
}

const char *private_error(int error)
{
	switch (-error) {
	case OTHER_OWNER: return "belongs to another user";
	case OTHER_ACCESS: return "other users have access to it (chmod go=)";
	default: return strerror(-error);
	}
}
