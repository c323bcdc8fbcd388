/*
 * Lists the processes that shim records: those of the user whose mappings have the `meta`
 * file of a recording, and whose recording has a socket if they can be controlled.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/running.h"
#include "ctl_list.h"
#include "json_text.h"
#include "say.h"

static void read_name(long pid, char name[64])
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%ld/comm", pid);
	file = fopen(path, "re");
	if (file == NULL || fgets(name, 64, file) == NULL)
		strcpy(name, "?");
	name[strcspn(name, "\n")] = '\0';
	if (file != NULL)
		fclose(file);
}

/* Root sees the processes of all users. */
static bool is_ours(const char *pid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%.20s", pid);
	return isdigit((unsigned char)pid[0]) && stat(path, &st) == 0 &&
	       (geteuid() == 0 || st.st_uid == geteuid());
}

static bool has_socket(const char *directory)
{
	char path[PATH_MAX + 16];
	struct stat st;

	snprintf(path, sizeof(path), "%s/control", directory);
	return lstat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

static int compare(const void *left, const void *right)
{
	const long *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

/* The ids of the processes, sorted; the caller frees them. */
static long *list_processes(size_t *count)
{
	DIR *processes = opendir("/proc");
	long *list = NULL, *more;
	struct dirent *entry;
	size_t room = 0;

	*count = 0;
	while (processes != NULL && (entry = readdir(processes)) != NULL) {
		if (!is_ours(entry->d_name))
			continue;
		if (*count == room) {
			room = room ? 2 * room : 256;
			more = realloc(list, room * sizeof(*list));
			if (more == NULL)
				break;
			list = more;
		}
		list[(*count)++] = strtol(entry->d_name, NULL, 10);
	}
	if (processes != NULL)
		closedir(processes);
	if (*count > 0)
		qsort(list, *count, sizeof(*list), compare);
	return list;
}

static void put_json(long pid, const char *name, bool has_control,
		     const char *directory, bool is_first)
{
	printf("%s\n{\"pid\":%ld,\"program\":", is_first ? "" : ",", pid);
	json_text(name);
	printf(",\"control\":%s,\"recording\":",
	       has_control ? "true" : "false");
	json_text(directory);
	putchar('}');
}

int ctl_list(bool is_json)
{
	char directory[PATH_MAX], name[64], *slash;
	bool is_first = true, has_control;
	size_t count;
	long *list = list_processes(&count);

	if (is_json)
		fputs("{\"processes\":[", stdout);
	for (size_t i = 0; i < count; i++) {
		if (!running_recording(list[i], directory))
			continue;
		read_name(list[i], name);
		has_control = has_socket(directory);
		slash = strrchr(directory, '/');
		if (slash != NULL && slash != directory)
			*slash = '\0';
		if (is_json) {
			put_json(list[i], name, has_control, directory,
				 is_first);
			is_first = false;
			continue;
		}
		if (is_first)
			say_plainly("%7s  %-15s  %-7s  %s", "PID", "program",
				    "control", "recording");
		is_first = false;
		say_plainly("%7ld  %-15s  %-7s  %s", list[i], name,
			    has_control ? "yes" : "no", directory);
	}
	free(list);
	if (is_json)
		puts("]}");
	if (is_json || !is_first)
		return 0;
	say("ctl: shim records no process%s",
	    geteuid() == 0 ? "" : " of yours");
	return 1;
}
