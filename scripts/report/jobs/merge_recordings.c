/*
 * profrun merge of recordings: the result is a directory with one recording in
 * each subdirectory.  Every reader of recordings adds these up.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/directory.h"
#include "base/memory.h"
#include "base/messages.h"
#include "base/text.h"
#include "common/copy.h"
#include "jobs/merge_recordings.h"
#include "read/files.h"
#include "read/packed.h"
#include "read/recording.h"

static uint64_t bytes_copied, bytes_of_all;

static int add_size(const char *path, const struct stat *info, int kind,
		    struct FTW *place)
{
	(void)path;
	(void)place;
	if (kind == FTW_F)
		bytes_of_all += (uint64_t)info->st_blocks * 512;
	return 0;
}

static void tell_copied(size_t bytes)
{
	bytes_copied += bytes;
	/* Blocks are a little more than the data in them, or less. */
	progress("copying",
		 bytes_copied < bytes_of_all ? bytes_copied : bytes_of_all,
		 bytes_of_all);
}

static void copy_file(int from, const char *path)
{
	int to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (to < 0 || copy_with_holes(from, to, tell_copied) || close(to))
		directory_give_up(path);
}

/* Copies regular files and directories; a finished recording holds nothing
 * else. */
static void copy_tree(int from, const char *path, int depth)
{
	DIR *stream = fdopendir(from);
	struct dirent *entry;

	if (!stream || mkdir(path, 0700) < 0)
		directory_give_up(path);
	while ((entry = readdir(stream))) {
		const char *name = entry->d_name, *target;
		struct stat info;
		int fd;

		if (!strcmp(name, ".") || !strcmp(name, ".."))
			continue;
		target = keep_format("%s/%s", path, name);
		fd = openat(dirfd(stream), name,
			    O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK |
				    O_NOCTTY);
		if (fd < 0 && (errno == ELOOP || errno == ENXIO))
			continue;
		if (fd < 0 || fstat(fd, &info) < 0)
			directory_give_up(target);
		if (S_ISDIR(info.st_mode) && depth > 0) {
			copy_tree(fd, target, depth - 1);
			continue;
		}
		if (S_ISREG(info.st_mode))
			copy_file(fd, target);
		close(fd);
	}
	closedir(stream);
}

static bool is_any(const char *name)
{
	(void)name;
	return true;
}

/* Copies a rank out of an archive. */
static void copy_packed(int from, const char *path)
{
	size_t count, i;
	char **names = list_names(from, is_any, &count);

	if (mkdir(path, 0700) < 0)
		directory_give_up(path);
	for (i = 0; i < count; i++) {
		const char *target = keep_format("%s/%s", path, names[i]);
		int fd = packed_open_directory(from, names[i]);

		if (fd >= 0) {
			copy_packed(fd, target);
		} else {
			fd = packed_open_file(from, names[i]);
			if (fd < 0)
				directory_give_up(target);
			copy_file(fd, target);
		}
		close(fd);
	}
	free(names);
}

/* Chooses "run.1" if "run" exists. */
static const char *free_name(const char *directory, const char *name)
{
	const char *path = keep_format("%s/%s", directory, name);
	int i;

	for (i = 1; access(path, F_OK) == 0; i++)
		path = keep_format("%s/%s.%d", directory, name, i);
	return path;
}

/* The last component of @path, without slashes and dots. */
static const char *own_name(const char *path)
{
	char *real = realpath(path, NULL);
	const char *name = keep_text(real ? base_name(real) : base_name(path),
				     SIZE_MAX);

	free(real);
	return name;
}

static void join_one(const char *target, const char *path)
{
	int fd, directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	size_t count, i;
	char **names;

	if (directory < 0)
		directory_give_up(path);
	names = recording_parts(directory, &count);
	for (i = 0; i < count; i++) {
		fd = try_directory(directory, names[i]);
		if (fd < 0)
			directory_give_up(path);
		if (packed_is(fd)) {
			copy_packed(fd, free_name(target, names[i]));
			close(fd);
		} else {
			copy_tree(fd, free_name(target, names[i]), 1);
		}
	}
	if (count > 0)
		close(directory);
	else
		copy_tree(directory, free_name(target, own_name(path)), 1);
	free(names);
}

/* Dies if @path is no recording. */
static void check_recording(const char *path)
{
	struct recording recording;

	recording_open(&recording, path, 0);
}

void merge_recordings(const char *output, char **paths, int count)
{
	const char *target;
	int i;

	for (i = 0; i < count; i++)
		check_recording(paths[i]);
	for (i = 0; i < count; i++)
		nftw(paths[i], add_size, 16, FTW_PHYS);
	target = directory_begin(output);
	for (i = 0; i < count; i++)
		join_one(target, paths[i]);
	progress_end();
	directory_end();
}
