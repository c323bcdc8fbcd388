/*
 * Source files of functions.  Debug information names them as they were when the program
 * was compiled; the user may say where they are now.
 */
#ifndef REPORT_NAMES_SOURCE_H
#define REPORT_NAMES_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

struct object;

#define SOURCE_PLACES_MAX 64

/* The values of --source-dir, in their order: a directory, or FROM=TO. */
struct source_places {
	const char *text[SOURCE_PLACES_MAX];
	uint32_t count;
};

struct source_file {
	const char *name;  /* as debug information has it */
	const char *path;  /* where it was found; NULL: nowhere */
	const char **line; /* without the newline; line 1 is the first */
	uint32_t line_count;
	bool is_newer;	    /* it was changed after the object was made */
	const char *sought; /* if it was not found: where, separated by ", " */
};

/*
 * source_find - read the source file that debug information calls @name
 *
 * It is sought where a FROM=TO of @places leads, at its own path, below each directory of
 * @places (with all of its path, then with less and less of it), and, if the user allows
 * the network, on the servers of debuginfod.  Only regular files are read.  @object may
 * be NULL.  The same name gives the same source again.
 */
const struct source_file *source_find(const char *name,
				      const struct source_places *places,
				      const struct object *object);

/* The text of a line, or NULL. */
const char *source_line(const struct source_file *source, int line);

#endif
