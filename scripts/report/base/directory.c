/*
 * Writes an output that is a directory: either all of it appears, or nothing.
 * The functions that remove it allocate nothing, because signal handlers call
 * them.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/directory.h"
#include "base/memory.h"
#include "base/messages.h"
#include "base/unfinished.h"

#define DEPTH_MAX 16

static const char *wanted;
static const char *volatile unfinished; /* NULL: none */

/* --- removing --- */

static void remove_entry(int directory, const char *name, int depth);

static void remove_content(int directory, int depth)
{
	_Alignas(struct dirent64) char buffer[2048];
	long size;

	while ((size = syscall(SYS_getdents64, directory, buffer,
			       sizeof(buffer))) > 0)
		for (long at = 0; at < size;) {
			struct dirent64 *entry = (void *)(buffer + at);

			at += entry->d_reclen;
			if (strcmp(entry->d_name, ".") != 0 &&
			    strcmp(entry->d_name, "..") != 0)
				remove_entry(directory, entry->d_name, depth);
		}
}

static void remove_entry(int directory, const char *name, int depth)
{
	int fd;

	if (unlinkat(directory, name, 0) == 0 || depth == 0)
		return;
	fd = openat(directory, name,
		    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return;
	remove_content(fd, depth - 1);
	close(fd);
	unlinkat(directory, name, AT_REMOVEDIR);
}

void directory_remove(int directory, const char *name)
{
	remove_entry(directory, name, DEPTH_MAX);
}

/* --- the output --- */

static void remove_unfinished(void)
{
	const char *name = unfinished;

	unfinished = NULL;
	if (name)
		directory_remove(AT_FDCWD, name);
}

static int make(char *name)
{
	return mkdir(name, 0700);
}

static int make_with_free_name(char *name)
{
	return mkdtemp(name) ? 0 : -1;
}

/* No signal comes between the directory and the note of it. */
static void make_unfinished(char *name, int (*how)(char *name))
{
	sigset_t blocked, before;
	int r;

	unfinished_add(remove_unfinished);
	unfinished_signals(&blocked);
	sigprocmask(SIG_BLOCK, &blocked, &before);
	r = how(name);
	if (r == 0)
		unfinished = name;
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (r < 0)
		die("%s: %s", name, strerror(errno));
}

_Noreturn void directory_give_up(const char *path)
{
	die("%s: %s", path, strerror(errno));
}

const char *directory_begin(const char *path)
{
	char *name;

	if (access(path, F_OK) == 0)
		die("%s: exists; it is not overwritten", path);
	if (asprintf(&name, "%s.unfinished", path) < 0)
		die("out of memory");
	wanted = path;
	make_unfinished(name, make);
	return name;
}

const char *directory_make_temporary(const char *place, const char *name)
{
	char *path;

	if (asprintf(&path, "%s/%s.XXXXXX", place, name) < 0)
		die("out of memory");
	make_unfinished(path, make_with_free_name);
	atexit(remove_unfinished);
	return path;
}

void directory_end(void)
{
	if (rename(unfinished, wanted) < 0)
		directory_give_up(wanted);
	unfinished = NULL;
}
