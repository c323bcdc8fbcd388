/*
 * The values of --filter, --patch and --libcalls: joins its pieces and files into one list.  A long
 * list goes into a file, because the environment of a program has limited
 * room.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "filter.h"

/* A longer list goes into a file: a program's environment has limited room, and less if
 * the program starts others with long arguments. */
#define VARIABLE_MAX 4096

static const char blanks[] = " \t\r\n";

/* --- items ---------------------------------------------------------------- */

const char *filter_option(const struct filter *filter)
{
	return filter->option != NULL ? filter->option : "filter";
}

static bool is_item(const struct filter *filter, const char *item)
{
	item += *item == '-';
	if (item[0] == '\0' || item[0] == '@')
		return false;
	if (item[1] != ':')
		return true;
	return strchr(filter->option != NULL ? "NTM" : "NTMF", item[0]) !=
		       NULL &&
	       item[2] != '\0';
}

static bool append(struct filter *filter, const char *item)
{
	size_t used = filter->list != NULL ? strlen(filter->list) : 0;
	size_t needed = used + strlen(item) + 2;
	char *larger;

	if (needed > filter->size) {
		larger = realloc(filter->list, 2 * needed);
		if (larger == NULL) {
			snprintf(filter->error, sizeof(filter->error), "%s",
				 strerror(ENOMEM));
			return false;
		}
		filter->list = larger;
		filter->size = 2 * needed;
	}
	sprintf(filter->list + used, "%s%s", used > 0 ? "," : "", item);
	return true;
}

static char *trim(char *item)
{
	char *end;

	item += strspn(item, blanks);
	end = item + strlen(item);
	while (end > item && strchr(blanks, end[-1]) != NULL)
		*--end = '\0';
	return item;
}

/* @where: "FILE:3: ", or "". */
static bool add_items(struct filter *filter, char *list, const char *where)
{
	char *item;

	while ((item = strsep(&list, ",")) != NULL) {
		item = trim(item);
		if (*item == '\0')
			continue;
		if (!is_item(filter, item)) {
			snprintf(
				filter->error, sizeof(filter->error),
				"%s'%.200s' is not an item: there are all, "
				"none, program, %s, each with or without '-'"
				" before it, and @FILE alone",
				where, item,
				filter->option != NULL ?
					"the name of a function, libOBJECT.so,"
					" N:namespace, T:class and M:function" :
					"the name of an object, N:namespace,"
					" T:class, M:function and F:file");
			return false;
		}
		if (!append(filter, item))
			return false;
	}
	return true;
}

/* --- files ---------------------------------------------------------------- */

static void cut_comment(char *line)
{
	char *at = line;

	while ((at = strchr(at, '#')) != NULL) {
		if (at == line || strchr(blanks, at[-1]) != NULL) {
			*at = '\0';
			break;
		}
		at++;
	}
}

static bool add_line(struct filter *filter, char *line, const char *where)
{
	cut_comment(line);
	return add_items(filter, line, where);
}

static bool add_lines(struct filter *filter, FILE *file, const char *path)
{
	char *line = NULL, where[PATH_MAX + 32];
	bool is_good = true;
	size_t size = 0;
	ssize_t length;

	for (int n = 1; is_good && (length = getline(&line, &size, file)) >= 0;
	     n++) {
		snprintf(where, sizeof(where), "%s:%d: ", path, n);
		is_good = strlen(line) == (size_t)length;
		if (!is_good)
			snprintf(filter->error, sizeof(filter->error),
				 "%snot a line of text", where);
		else
			is_good = add_line(filter, line, where);
	}
	if (is_good && ferror(file)) {
		snprintf(filter->error, sizeof(filter->error), "%s: %s", path,
			 strerror(errno));
		is_good = false;
	}
	free(line);
	return is_good;
}

static bool add_file(struct filter *filter, const char *path)
{
	size_t before = filter->list != NULL ? strlen(filter->list) : 0;
	FILE *file = fopen(path, "re");
	bool is_good;

	if (file == NULL) {
		snprintf(filter->error, sizeof(filter->error), "%s: %s", path,
			 strerror(errno));
		return false;
	}
	is_good = add_lines(filter, file, path);
	fclose(file);
	if (is_good &&
	    (filter->list == NULL || strlen(filter->list) == before)) {
		snprintf(filter->error, sizeof(filter->error),
			 "%s has no items", path);
		return false;
	}
	return is_good;
}

bool filter_add(struct filter *filter, const char *text)
{
	bool is_good;
	char *copy;

	if (text[0] == '@')
		return add_file(filter, text + 1);
	copy = strdup(text);
	is_good = copy != NULL && add_items(filter, copy, "");
	free(copy);
	return is_good;
}

/* --- for the program ------------------------------------------------------ */

/* Writes one item a line. */
static int write_list(const char *list, const char *path)
{
	int fd, r = 0;
	FILE *file;

	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		  0600);
	if (fd < 0)
		return -errno;
	file = fdopen(fd, "w");
	if (file == NULL)
		return -errno;
	for (; *list != '\0'; list++)
		putc(*list == ',' ? '\n' : *list, file);
	putc('\n', file);
	if (ferror(file))
		r = -errno;
	if (fclose(file) != 0 && r == 0)
		r = -errno;
	return r;
}

int filter_export(const struct filter *filter, const char *directory)
{
	const char *option = filter_option(filter);
	const char *name = *option == 'p' ? "SHIM_PATCH" :
			   *option == 'l' ? "SHIM_LIBCALLS" :
					    "SHIM_FILTER";
	char value[PATH_MAX + 16];
	int r;

	if (strlen(filter->list) < VARIABLE_MAX)
		return setenv(name, filter->list, 1) < 0 ? -errno : 0;
	snprintf(value, sizeof(value), "@%s/%s", directory, option);
	r = write_list(filter->list, value + 1);
	if (r < 0)
		return r;
	return setenv(name, value, 1) < 0 ? -errno : 0;
}
