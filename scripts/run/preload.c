/*
 * The entry for libshim.so in LD_PRELOAD.  The dynamic linker splits that list
 * at blanks and colons; a library in a directory with a blank is named without
 * its directory, which goes into LD_LIBRARY_PATH.
 */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "preload.h"

static bool has_blank(const char *library)
{
	return strpbrk(library, " \t\n") != NULL;
}

const char *preload_error(const char *library)
{
	if (strpbrk(library, ":;") != NULL)
		return "cannot be preloaded: there is a colon or a semicolon in"
		       " its path";
	if (has_blank(strrchr(library, '/') ? strrchr(library, '/') : library))
		return "cannot be preloaded: there is a blank in its name";
	return NULL;
}

/* Puts @directory in front of LD_LIBRARY_PATH, once. */
static void search_in(const char *directory, size_t length)
{
	const char *old = getenv("LD_LIBRARY_PATH");
	char *list;

	if (old == NULL)
		old = "";
	if (strncmp(old, directory, length) == 0 &&
	    (old[length] == '\0' || old[length] == ':'))
		return;
	/* An empty entry would be the working directory. */
	if (asprintf(&list, "%.*s%s%s", (int)length, directory,
		     *old != '\0' ? ":" : "", old) < 0)
		return;
	setenv("LD_LIBRARY_PATH", list, 1);
	free(list);
}

const char *preload_entry(const char *library)
{
	const char *slash = strrchr(library, '/');

	if (slash == NULL || !has_blank(library))
		return library;
	search_in(library, slash - library);
	return slash + 1;
}
