/*
 * Checks owner and mode of a file and of each directory above it.  A user who can write to
 * any of them could replace the file.
 */
#define _GNU_SOURCE
#include "os/trust.h"

#include "os/sys.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/stat.h>

#include <shim/banned.h>

int trust_own(const struct sys_status *status)
{
	unsigned user;
	int r = sys_user(&user);

	if (r < 0)
		return r;
	if (status->user != user)
		return -TRUST_OWNER;
	return status->mode & (S_IRWXG | S_IRWXO) ? -TRUST_ACCESS : 0;
}

int trust_owner(const struct sys_status *status, unsigned user)
{
	unsigned now;
	int r;

	if (status->user == user)
		return 0;
	r = sys_user(&now);
	if (r < 0)
		return r;
	return status->user == now ? 0 : -TRUST_REPLACED;
}

int trust_code(const struct sys_status *status)
{
	unsigned user;
	int r = sys_user(&user);

	if (r < 0)
		return r;
	if (!S_ISREG(status->mode))
		return -TRUST_KIND;
	if (status->user != 0 && status->user != user)
		return -TRUST_OWNER;
	return status->mode & (S_IWGRP | S_IWOTH) ? -TRUST_WRITE : 0;
}

static int get_directory_status(const char *path, struct sys_status *status)
{
	int fd = sys_open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
			  0);
	int r;

	if (fd < 0)
		return fd;
	r = sys_get_status(fd, status);
	sys_close(fd);
	return r;
}

/* @root is the owner of "/", whom shim treats as root: in a user namespace, root may
 * have no id. */
static int trust_directory(const char *path, unsigned user, unsigned root)
{
	struct sys_status status;
	unsigned others = S_IWGRP | S_IWOTH;
	int r = get_directory_status(path, &status);

	if (r < 0)
		return r;
	if (status.user != 0 && status.user != user && status.user != root)
		return -TRUST_OWNER;
	if (status.user != user || user == 0)
		others &= ~(unsigned)S_IWGRP;
	return status.mode & others && !(status.mode & S_ISVTX) ? -TRUST_WRITE :
								  0;
}

int trust_above(char *path)
{
	struct sys_status top;
	unsigned user;
	int r = get_directory_status("/", &top);

	if (r == 0)
		r = sys_user(&user);
	for (size_t i = 1; r == 0 && path[i]; i++) {
		if (path[i] != '/')
			continue;
		path[i] = '\0';
		r = trust_directory(path, user, top.user);
		if (r == 0)
			path[i] = '/';
	}
	return r;
}

int trust_file(const struct sys_status *status)
{
	if (!S_ISREG(status->mode))
		return -TRUST_KIND;
	return status->links == 1 ? 0 : -TRUST_LINKS;
}

const char *trust_reason(int error)
{
	switch (-error) {
	case TRUST_OWNER: return "it belongs to another user";
	case TRUST_ACCESS: return "other users have access to it (chmod go=)";
	case TRUST_WRITE: return "other users may write it (chmod go-w)";
	case TRUST_REPLACED: return "another file is in its place";
	case TRUST_KIND: return "it is not a regular file";
	case TRUST_LINKS: return "it has a second name (a hard link)";
	case TRUST_SHORTENED: return "it was truncated";
	default: return NULL;
	}
}
