/*
 * Finds the recording of a running process by the process's mappings, because its
 * `meta` file is mapped.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "common/running.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

long running_own_id(long id)
{
	char name[64], line[256], *last;
	FILE *file;

	snprintf(name, sizeof(name), "/proc/%ld/status", id);
	file = fopen(name, "re");
	/* The ids in all namespaces of the process, its own last. */
	while (file != NULL && fgets(line, sizeof(line), file) != NULL)
		if (strncmp(line, "NSpid:", 6) == 0) {
			last = strrchr(line, '\t');
			if (last != NULL && atol(last) > 0)
				id = atol(last);
			break;
		}
	if (file != NULL)
		fclose(file);
	return id;
}

static bool read_meta(const char *path, long own, struct shim_meta *meta)
{
	bool ok;
	int fd;

	fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return false;
	ok = read(fd, meta, sizeof(*meta)) == sizeof(*meta) &&
	     memcmp(meta->magic, SHIM_META_MAGIC, 8) == 0 && meta->pid == own;
	close(fd);
	return ok;
}

/* The kernel writes each newline in a name as \012. */
static void restore_newlines(char *path)
{
	char *at = path;

	while ((at = strstr(at, "\\012")) != NULL) {
		*at++ = '\n';
		memmove(at, at + 3, strlen(at + 3) + 1);
	}
}

bool running_meta(const char *path, long pid, struct shim_meta *meta)
{
	return read_meta(path, running_own_id(pid), meta);
}

static bool is_meta_of(char *path, long own, struct shim_meta *meta)
{
	if (read_meta(path, own, meta))
		return true;
	restore_newlines(path);
	return read_meta(path, own, meta);
}

/* Reads the mappings of one task.  Stores the path without "/meta".  *@is_empty tells
 * whether the task has no mappings. */
static bool find_in_maps(const char *maps, long own, char directory[PATH_MAX],
			 bool *is_empty)
{
	FILE *file = fopen(maps, "re");
	char *line = NULL, *path, *slash;
	struct shim_meta meta;
	bool found = false;
	size_t size = 0;
	ssize_t length;

	while (file != NULL && !found &&
	       (length = getline(&line, &size, file)) > 0) {
		*is_empty = false;
		path = strchr(line, '/');
		slash = strrchr(line, '/');
		if (line[length - 1] == '\n')
			line[length - 1] = '\0';
		if (path == NULL || strcmp(slash, "/meta") != 0 ||
		    strlen(path) >= PATH_MAX || !is_meta_of(path, own, &meta))
			continue;
		*strrchr(path, '/') = '\0';
		strcpy(directory, path);
		found = true;
	}
	free(line);
	if (file != NULL)
		fclose(file);
	return found;
}

/* A main thread that ended by pthread_exit has no mappings.  The other threads share
 * theirs. */
bool running_recording(long pid, char directory[PATH_MAX])
{
	char name[PATH_MAX];
	struct dirent *entry;
	bool found = false, is_empty = true;
	long own = running_own_id(pid);
	DIR *tasks;

	snprintf(name, sizeof(name), "/proc/%ld/task", pid);
	tasks = opendir(name);
	while (tasks != NULL && is_empty && (entry = readdir(tasks)) != NULL) {
		snprintf(name, sizeof(name), "/proc/%ld/task/%.20s/maps", pid,
			 entry->d_name);
		if (isdigit((unsigned char)entry->d_name[0]))
			found = find_in_maps(name, own, directory, &is_empty);
	}
	if (tasks != NULL)
		closedir(tasks);
	return found;
}
