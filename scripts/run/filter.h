/* The lists of --filter, --patch and --libcalls, of any length, from arguments and files. */
#ifndef RUN_FILTER_H
#define RUN_FILTER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct filter {
	const char *option; /* "patch", or "libcalls"; NULL: "filter" */
	char *list;	    /* items with commas between; NULL: none */
	size_t size;	    /* of the memory */
	char error[PATH_MAX + 512];
};

/*
 * filter_add - append a list of items, or with @FILE the items of a file
 *
 * The grammar is that of shim/dispatch/callspec.h: but for --filter, a bare item is a
 * function, and there is no F:.  Returns false if an item is wrong,
 * or the file cannot be read or has no items; @filter->error is then the message, with
 * the file and its line.
 */
bool filter_add(struct filter *filter, const char *text);

/*
 * filter_export - set SHIM_FILTER, SHIM_PATCH or SHIM_LIBCALLS for the program
 *
 * A list that is too long for a variable goes into a file of the recording @directory with
 * the name of the option.  Returns 0 or -errno.
 */
int filter_export(const struct filter *filter, const char *directory);

/* "filter", "patch" or "libcalls". */
const char *filter_option(const struct filter *filter);

#endif
