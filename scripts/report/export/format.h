/*
 * An export format.  The file that writes a format defines it, and formats.c lists it;
 * --help, messages and the checks of options come from there.
 */
#ifndef REPORT_EXPORT_FORMAT_H
#define REPORT_EXPORT_FORMAT_H

#include <stdbool.h>
#include <stdio.h>

#include "model/options.h"

struct coverage;
struct model;
struct lanes;

/* Values of --value, as bits of struct export_format.values. */
#define VALUE_BIT(value) (1u << (value))
#define VALUES_OF_CALLS \
	(VALUE_BIT(VALUE_SELF) | VALUE_BIT(VALUE_TOTAL) | \
	 VALUE_BIT(VALUE_CALLS))
#define VALUES_OF_MEMORY \
	(VALUE_BIT(VALUE_BYTES) | VALUE_BIT(VALUE_ALLOCATIONS) | \
	 VALUE_BIT(VALUE_PEAK) | VALUE_BIT(VALUE_LEAKED) | \
	 VALUE_BIT(VALUE_LOST))

struct export_format {
	const char *name;
	const char *extension;	 /* of a file; "": it is a directory */
	const char *description; /* for --help: one line */
	unsigned int values;	 /* that --value may have; 0: it has none */
	bool is_binary;		 /* nothing for a terminal */
	bool has_no_threads;	 /* no --threads */
	bool has_threads_always; /* --threads is as if given */
	bool shows_one_value;	 /* memory only if --value is of it */
	bool has_object;	 /* --object is for it */
	bool is_of_memory;	 /* and of nothing else */
	bool keeps_tests;	 /* coverage of each test is apart */
	/* whatever --value is, and does not say which are estimates */
	bool has_calls_always;
	bool needs_no_times; /* untimed calls are fine with --value self */

	/* One of these. */
	void (*print)(FILE *out, struct model *model,
		      const struct options *options);
	void (*print_trace)(FILE *out, struct lanes *lanes);
	void (*print_coverage)(FILE *out, const struct coverage *coverage,
			       const struct options *options);
	/* At @path: a directory of a trace; several files. */
	void (*write_trace)(const char *path, struct lanes *lanes);
	void (*write_files)(struct model *calls, struct model *samples,
			    const char *path);
};

#endif
