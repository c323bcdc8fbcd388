/*
 * Finds and reads source files.  Their names come from debug information of strangers:
 * what is opened is a regular file of limited size, and its text is shown escaped.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/names.h"
#include "names/object_file.h"
#include "names/source.h"
#include "names/symbols.h"

/* The limit of a file; generated sources of this size are not for people. */
#define SIZE_MOST (64 << 20)

struct search {
	struct source_file *source;
	struct stat info;
	char *text;
	size_t size;
};

static bool read_all(int fd, char *text, size_t size)
{
	size_t done = 0;
	ssize_t part;

	while (done < size) {
		part = read(fd, text + done, size - done);
		if (part <= 0)
			return false;
		done += (size_t)part;
	}
	return true;
}

/* Opening a device or a pipe may have an effect, or wait. */
static int open_regular(const char *path, struct stat *info)
{
	int fd;

	if (stat(path, info) != 0 || !S_ISREG(info->st_mode))
		return -1;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd >= 0 && fstat(fd, info) == 0 && S_ISREG(info->st_mode) &&
	    info->st_size <= SIZE_MOST)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static void note_tried_path(struct source_file *source, const char *path)
{
	source->sought = source->sought ?
				 keep_format("%s, %s", source->sought, path) :
				 path;
}

static bool try_path(struct search *search, const char *path)
{
	int fd = open_regular(path, &search->info);
	bool good;

	if (fd < 0) {
		note_tried_path(search->source, path);
		return false;
	}
	search->size = (size_t)search->info.st_size;
	search->text = allocate(search->size + 1, 1);
	good = read_all(fd, search->text, search->size);
	close(fd);
	if (good)
		search->source->path = path;
	else
		note_tried_path(search->source, path);
	return good;
}

/* --- where --- */

/* FROM=TO puts TO in the place of FROM at the beginning of the name. */
static bool try_map(struct search *search, const char *map)
{
	const char *equal = strchr(map, '='), *name = search->source->name;
	size_t length = equal ? (size_t)(equal - map) : 0;

	if (!equal || strncmp(name, map, length))
		return false;
	/* "/src" is not the beginning of "/srcs/a.c". */
	if (length && map[length - 1] != '/' && name[length] != '/' &&
	    name[length])
		return false;
	return try_path(search, keep_format("%s%s", equal + 1, name + length));
}

/* Whether the path leads out of the directory that it is joined to. */
static bool leads_up(const char *path)
{
	return !strncmp(path, "../", 3) || strstr(path, "/../");
}

static bool try_below(struct search *search, const char *directory)
{
	const char *part = search->source->name;

	if (strchr(directory, '='))
		return false;
	for (; part; part = strchr(part, '/')) {
		part += *part == '/';
		if (*part && !leads_up(part) &&
		    try_path(search, keep_format("%s/%s", directory, part)))
			return true;
	}
	return false;
}

static bool try_all(struct search *search, const struct source_places *places,
		    const struct object *object)
{
	const char *name = search->source->name, *fetched, *below;
	uint32_t i;

	for (i = 0; i < places->count; i++)
		if (try_map(search, places->text[i]))
			return true;
	below = object_file_below(name);
	if (below && try_path(search, below))
		return true;
	if (name[0] == '/' && try_path(search, name))
		return true;
	for (i = 0; i < places->count; i++)
		if (try_below(search, places->text[i]))
			return true;
	fetched = object && name[0] == '/' ?
			  object_file_fetch_source(object, name) :
			  NULL;
	return fetched && try_path(search, fetched);
}

/* --- lines --- */

static void split(struct source_file *source, char *text, size_t size)
{
	char *end = text + size, *line, *next;
	uint32_t room = 0;

	for (line = text; line < end; line = next) {
		next = memchr(line, '\n', (size_t)(end - line));
		next = next ? next + 1 : end;
		GROW(source->line, source->line_count, room);
		source->line[source->line_count++] = line;
		if (next[-1] == '\n')
			next[-1] = '\0';
		if (next - line > 1 && next[-2] == '\r')
			next[-2] = '\0';
	}
}

static bool is_newer(const struct stat *info, const struct object *object)
{
	struct stat made;

	return object && stat(object->path, &made) == 0 &&
	       info->st_mtime > made.st_mtime;
}

const struct source_file *source_find(const char *name,
				      const struct source_places *places,
				      const struct object *object)
{
	static struct names names;
	static struct source_file **sources;
	static uint32_t room;
	uint32_t number = names_find(&names, name);
	struct search search = { .text = NULL };

	if (number != NONE)
		return sources[number];
	number = names_add(&names, keep_text(name, SIZE_MAX));
	GROW(sources, number, room);
	search.source = sources[number] = allocate(1, sizeof(**sources));
	search.source->name = names.text[number];
	if (try_all(&search, places, object)) {
		search.source->is_newer = is_newer(&search.info, object);
		split(search.source, search.text, search.size);
	}
	return search.source;
}

const char *source_line(const struct source_file *source, int line)
{
	return line > 0 && (uint32_t)line <= source->line_count ?
		       source->line[line - 1] :
		       NULL;
}
