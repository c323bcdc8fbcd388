/*
 * Reads /proc/self/maps line by line, without stdio.
 */
#define _GNU_SOURCE
#include "os/maps.h"

#include "os/sys.h"
#include "os/text.h"

#include <errno.h>
#include <fcntl.h>

#include <shim/banned.h>

static char buffer[8192];

static bool file_exists(const char *path)
{
	int fd = sys_open(path, O_PATH | O_CLOEXEC, 0);

	if (fd >= 0)
		sys_close(fd);
	return fd >= 0;
}

#define NEWLINE "\\012"

static bool has_newline(const char *path)
{
	while (*path != '\0' && !text_after(path, NEWLINE))
		path++;
	return *path != '\0';
}

/* The kernel writes a newline in a path as NEWLINE, and a backslash unchanged.  So a path
 * with NEWLINE may also be the name of a file with these four characters: if that file
 * exists, the path stays as it is. */
static void restore_newlines(char *path)
{
	const char *at = path, *after;
	char *to = path;

	if (path[0] != '/' || !has_newline(path) || file_exists(path))
		return;
	while (*at != '\0') {
		after = text_after(at, NEWLINE);
		*to++ = after ? '\n' : *at;
		at = after ? after : at + 1;
	}
	*to = '\0';
}

static void parse_line(char *text, struct map *map)
{
	const char *line = text;

	uint64_t major, minor;

	map->start = text_read_hex(&line);
	line++;
	map->end = text_read_hex(&line);
	line++;
	map->readable = line[0] == 'r';
	map->writable = line[1] == 'w';
	map->executable = line[2] == 'x';
	map->shared = line[3] == 's';
	line += 5;
	map->offset = text_read_hex(&line);
	line++;
	major = text_read_hex(&line);
	line++;
	minor = text_read_hex(&line);
	line++;
	map->device = major << 32 | minor;
	map->inode = text_read_decimal(&line);
	while (*line == ' ')
		line++;
	map->path = line;
	restore_newlines(text + (line - text));
}

/* /proc/self/maps is empty after the first thread has ended, even if others still run. */
static const char *const paths[] = { "/proc/self/maps",
				     "/proc/thread-self/maps" };

/* *@is_empty tells whether the file was empty. */
static int read_file(const char *path,
		     bool (*each)(const struct map *map, void *argument),
		     void *argument, bool *is_empty)
{
	int fd = sys_open(path, O_RDONLY | O_CLOEXEC, 0);
	size_t have = 0;
	bool go_on = true;
	long r = 0;

	*is_empty = true;
	if (fd < 0)
		return fd;
	while (go_on) {
		size_t begin = 0;

		r = sys_read(fd, buffer + have, sizeof(buffer) - have);
		if (r == -EINTR)
			continue;
		if (r <= 0)
			break;
		*is_empty = false;
		have += (size_t)r;
		for (size_t i = begin; go_on && i < have; i++) {
			struct map map;

			if (buffer[i] != '\n')
				continue;
			buffer[i] = '\0';
			if (i - begin > 32) {
				parse_line(buffer + begin, &map);
				go_on = each(&map, argument);
			}
			begin = i + 1;
		}
		/* A path may have any length.  A line that fills the buffer is
		 * dropped. */
		if (begin == 0 && have == sizeof(buffer))
			begin = have;
		for (size_t i = begin; i < have; i++)
			buffer[i - begin] = buffer[i];
		have -= begin;
	}
	sys_close(fd);
	return r < 0 ? (int)r : 0;
}

int maps_read(bool (*each)(const struct map *map, void *argument),
	      void *argument)
{
	bool is_empty;
	int r = 0;

	for (unsigned i = 0; i < 2; i++) {
		r = read_file(paths[i], each, argument, &is_empty);
		if (!is_empty || (r < 0 && r != -ESRCH))
			return r;
	}
	return -ESRCH;
}

/* Whether the kernel is older than Linux 6.11: later calls need not open the file. */
static bool is_unsupported;

/* Asks for mappings from @address on, until @each returns false. */
static int query(const char *path, uintptr_t address, bool or_next,
		 bool (*each)(const struct map *map, void *argument),
		 void *argument)
{
	int fd = sys_open(path, O_RDONLY | O_CLOEXEC, 0), r;
	struct map map;

	if (fd < 0)
		return fd;
	do {
		r = sys_find_mapping(fd, address, or_next, &map, buffer,
				     sizeof(buffer));
		if (r < 0)
			break;
		address = map.end;
	} while (each(&map, argument));
	sys_close(fd);
	return r;
}

static int query_either(uintptr_t address, bool or_next,
			bool (*each)(const struct map *map, void *argument),
			void *argument)
{
	int r = -ESRCH;

	if (__atomic_load_n(&is_unsupported, __ATOMIC_RELAXED))
		return -ENOTTY;
	for (unsigned i = 0; i < 2 && r == -ESRCH; i++)
		r = query(paths[i], address, or_next, each, argument);
	if (r == -ENOTTY)
		__atomic_store_n(&is_unsupported, true, __ATOMIC_RELAXED);
	return r;
}

struct range {
	uintptr_t end;
	bool (*each)(const struct map *map, void *argument);
	void *argument;
};

static bool visit_in_range(const struct map *map, void *argument)
{
	const struct range *range = argument;

	return map->start < range->end && range->each(map, range->argument) &&
	       map->end < range->end;
}

int maps_read_range(uintptr_t start, uintptr_t end,
		    bool (*each)(const struct map *map, void *argument),
		    void *argument)
{
	struct range range = { end, each, argument };
	int r = query_either(start, true, visit_in_range, &range);

	return r == -ENOENT ? 0 : r;
}

struct found {
	uintptr_t *low, *high;
	bool *executable;
	char *name;
};

static bool copy_mapping(const struct map *map, void *argument)
{
	struct found *found = argument;
	size_t i;

	*found->low = map->start;
	*found->high = map->end;
	*found->executable = map->executable;
	for (i = 0; i < 63 && map->path[i] != '\0'; i++)
		found->name[i] = map->path[i];
	found->name[i] = '\0';
	return false;
}

int maps_find(uintptr_t address, uintptr_t *low, uintptr_t *high,
	      bool *executable, char name[64])
{
	struct found found = { low, high, executable, name };

	return query_either(address, false, copy_mapping, &found);
}
