/* Writes an output that is a directory: either all of it appears, or nothing. */
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/directory.h"
#include "base/memory.h"
#include "base/messages.h"

static const char *wanted, *unfinished;

static int remove_one(const char *path, const struct stat *info, int kind,
		      struct FTW *walk)
{
	(void)info;
	(void)kind;
	(void)walk;
	return remove(path);
}

_Noreturn void directory_give_up(const char *path)
{
	int error = errno;

	nftw(unfinished, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	die("%s: %s", path, strerror(error));
}

const char *directory_begin(const char *path)
{
	if (access(path, F_OK) == 0)
		die("%s: exists; it is not overwritten", path);
	wanted = path;
	unfinished = keep_format("%s.unfinished", path);
	if (mkdir(unfinished, 0700) < 0)
		die("%s: %s", unfinished, strerror(errno));
	return unfinished;
}

void directory_end(void)
{
	if (rename(unfinished, wanted) < 0)
		directory_give_up(wanted);
}
