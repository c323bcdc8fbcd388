/*
 * Directories of the recording.  shim opens a directory again for each file.  It must then
 * have the same owner and inode as at first: another user may have replaced it.
 */
#define _GNU_SOURCE
#include "os/directory.h"

#include "os/sys.h"
#include "os/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <shim/banned.h>

#define OPEN_FLAGS (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static int close_on_failure(int fd, int r)
{
	if (r < 0)
		sys_close(fd);
	return r < 0 ? r : fd;
}

/* The umask may have removed bits of a new directory's mode.  Sets the mode through the
 * descriptor.  A directory that gives other users access is not the one that shim has
 * created: a user who may write to the directory above has replaced it. */
static void correct_mode(int fd, struct sys_status *status)
{
	unsigned user;

	if ((status->mode & ACCESSPERMS & ~S_IRWXU) ||
	    (status->mode & ACCESSPERMS) == S_IRWXU || sys_user(&user) < 0 ||
	    user != status->user)
		return;
	sys_set_mode(fd, S_IRWXU);
	sys_get_status(fd, status);
}

static int open_own(int parent, const char *name, bool is_new,
		    struct sys_status *status)
{
	int fd = sys_open_at(parent, name, OPEN_FLAGS, 0), r;

	if (fd < 0)
		return fd;
	r = sys_get_status(fd, status);
	if (r == 0 && is_new)
		correct_mode(fd, status);
	if (r == 0)
		r = trust_own(status);
	return close_on_failure(fd, r);
}

static void store_identity(struct directory *directory,
			   const struct sys_status *status)
{
	directory->device = status->device;
	directory->inode = status->inode;
	directory->user = status->user;
}

static int open_and_identify(struct directory *directory, bool is_new)
{
	struct sys_status status;
	int fd = open_own(AT_FDCWD, directory->path, is_new, &status);

	if (fd >= 0)
		store_identity(directory, &status);
	return fd;
}

int directory_identify(struct directory *directory, int fd)
{
	struct sys_status status;
	int r = sys_get_status(fd, &status);

	if (r == 0)
		store_identity(directory, &status);
	return close_on_failure(fd, r);
}

int directory_find(struct directory *directory)
{
	return open_and_identify(directory, false);
}

int directory_make(struct directory *directory)
{
	int r = sys_make_directory_at(AT_FDCWD, directory->path, S_IRWXU);

	return r < 0 ? r : open_and_identify(directory, true);
}

int directory_open(const struct directory *directory)
{
	struct sys_status status;
	int fd = sys_open_at(AT_FDCWD, directory->path, OPEN_FLAGS, 0), r;

	if (fd < 0)
		return fd;
	r = sys_get_status(fd, &status);
	if (r == 0 && (status.device != directory->device ||
		       status.inode != directory->inode))
		r = -TRUST_REPLACED;
	if (r == 0)
		r = trust_owner(&status, directory->user);
	if (r == 0 && (status.mode & (S_IRWXG | S_IRWXO)))
		r = -TRUST_ACCESS;
	return close_on_failure(fd, r);
}

static bool is_own_file(int fd)
{
	struct sys_status status;

	return sys_get_status(fd, &status) == 0 && trust_own(&status) == 0 &&
	       trust_file(&status) == 0;
}

bool directory_holds(int fd, const char *name, const char *file)
{
	struct sys_status status;
	int inner = open_own(fd, name, false, &status), found;
	bool is_there;

	if (inner < 0)
		return false;
	found = sys_open_at(inner, file, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
	is_there = found >= 0 && is_own_file(found);
	if (found >= 0)
		sys_close(found);
	sys_close(inner);
	return is_there;
}
