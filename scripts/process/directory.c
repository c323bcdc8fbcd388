/*
 * The directory of an attach's recording, in the file system of the process, and the library
 * in it: a link whose name tells the library's constructor to wait for
 * profrun_attach_start (<shim/attach.h>).  For a process in another mount namespace, it is a
 * copy of the library.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <shim/attach.h>

#include "base/memory.h"
#include "base/messages.h"
#include "base/text.h"
#include "common/copy.h"
#include "process/steps.h"

#define LINK_NAME SHIM_ATTACH_NAME "so"

static const char *expand(const struct attach *attach, const char *pattern)
{
	char host[128] = "?", *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		die("%s", strerror(errno));
	gethostname(host, sizeof(host) - 1);
	for (; *pattern; pattern++) {
		if (*pattern != '%' || !pattern[1]) {
			fputc(*pattern, out);
			continue;
		}
		switch (*++pattern) {
		case 'p': fprintf(out, "%d", (int)attach->target.pid); break;
		case 'h': fputs(host, out); break;
		case 'n': {
			const char *at = attach->target.name;

			for (; *at; at++)
				fputc(*at == '/' ? '_' : *at, out);
			break;
		}
		case 'r': fputc('0', out); break;
		default: fputc(*pattern, out);
		}
	}
	if (fclose(out) != 0)
		die("%s", strerror(errno));
	return text;
}

/* The path from here of the process's file @path. */
static const char *path_here(const struct attach *attach, const char *path)
{
	return keep_format("%s%s", attach->root, path);
}

/* Whether the process finds the same directory by the name @path. */
static bool is_same_there(const struct attach *attach, const char *path)
{
	const char *there = path_here(attach, path);

	return access(path, F_OK) == 0 && access(there, F_OK) == 0 &&
	       target_is_same_file(path, there);
}

void attach_make_directory(struct attach *attach, const char *output)
{
	const char *name = expand(attach, output ? output : "profrun.%n.%p");
	char current[PATH_MAX] = "";
	long uid = attach_status_number(attach, "Uid:"),
	     gid = attach_status_number(attach, "Gid:");
	unsigned i;

	if (name[0] != '/') {
		if (!getcwd(current, sizeof(current) - 1))
			die("%s", strerror(errno));
		if (!is_same_there(attach, current))
			strcpy(current, "/tmp");
		strcat(current, "/");
	}
	for (i = 0; i < 10000; i++) {
		if (snprintf(attach->directory, sizeof(attach->directory),
			     i ? "%s%s.%u" : "%s%s", current, name,
			     i) >= PATH_MAX - 64)
			die("the name of the recording is too long");
		if (mkdir(path_here(attach, attach->directory), 0700) == 0)
			break;
		if (errno != EEXIST || output)
			die("%s: %s%s", attach->directory, strerror(errno),
			    errno == EEXIST ?
				    "; a recording is never overwritten" :
				    "");
	}
	if (geteuid() == 0 && uid != 0 &&
	    chown(path_here(attach, attach->directory), (uid_t)uid,
		  (gid_t)gid) < 0)
		die("%s: %s", attach->directory, strerror(errno));
}

const char *attach_name_here(const struct attach *attach)
{
	return is_same_there(attach, attach->directory) ?
		       attach->directory :
		       path_here(attach, attach->directory);
}

const char *attach_library(const struct attach *attach)
{
	return keep_format("%s/" LINK_NAME, attach->directory);
}

void attach_send_library(struct attach *attach, const char *library)
{
	const char *path = path_here(attach, attach_library(attach));
	char real[PATH_MAX];
	int in, out;

	if (!realpath(library, real))
		die("%s: %s", library, strerror(errno));
	if (!attach->root[0]) {
		if (symlink(real, path) < 0)
			die("%s: %s", path, strerror(errno));
		return;
	}
	in = open(real, O_RDONLY | O_CLOEXEC);
	out = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	if (in < 0 || out < 0 || copy_with_holes(in, out, NULL) < 0 ||
	    close(out) < 0)
		die("%s: %s", path, strerror(errno));
	close(in);
}

static void remove_library(const struct attach *attach)
{
	unlink(path_here(attach, attach_library(attach)));
}

/* The link stays: gdb asks the loader for the name of each library, and reads the file. */
void attach_drop_copy(const struct attach *attach)
{
	if (attach->root[0])
		remove_library(attach);
}

static const struct attach *unused;

/* Removes what no recording has begun in. */
static void remove_unused(void)
{
	if (!unused)
		return;
	remove_library(unused);
	/* shim has told profrun what is in it, too. */
	unlink(path_here(unused, keep_format("%s/log", unused->directory)));
	rmdir(path_here(unused, unused->directory));
}

void attach_note_unused(const struct attach *attach)
{
	static bool is_registered;

	unused = attach;
	if (!is_registered)
		atexit(remove_unused);
	is_registered = true;
}
