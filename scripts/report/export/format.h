/*
 * An export format.  The file that writes a format defines its struct with
 * EXPORT_FORMAT(), which also registers it; no other file knows its name.
 * --help, messages and the checks of options use these structs:
 *
 *	EXPORT_FORMAT(folded) = {
 *		.name = "folded",
 *		...
 *	};
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
	/* extension of a file; "": the output is a directory */
	const char *extension;
	const char *description; /* one line for --help */
	/* allowed values of --value; 0: --value is an error */
	unsigned int values;
	bool is_binary;		 /* refused on a terminal */
	bool has_no_threads;	 /* --threads is an error */
	bool has_threads_always; /* behaves as if --threads was given */
	/* memory is shown only if --value asks for memory */
	bool shows_one_value;
	bool has_object;     /* accepts --object */
	bool has_lines;	     /* paths of different lines stay separate */
	bool may_have_lines; /* the same with --lines */
	bool is_of_memory;   /* shows memory only */
	bool keeps_tests;    /* keeps the coverage of each test separate */
	/* shows calls whatever --value is, and does not mark estimates */
	bool has_calls_always;
	bool needs_no_times; /* --value self accepts untimed calls */
	uint32_t max_depth;  /* without --max-depth; 0: 4096 */

	/* One of these is set; a format of call paths may have print_trace as
	 * well, for a window of a trace. */
	void (*print)(FILE *out, struct model *model,
		      const struct options *options);
	void (*print_trace)(FILE *out, struct lanes *lanes);
	void (*print_coverage)(FILE *out, const struct coverage *coverage,
			       const struct options *options);
	/* These write to @path: a directory of a trace, or several files. */
	void (*write_trace)(const char *path, struct lanes *lanes);
	void (*write_files)(struct model *calls, struct model *samples,
			    const char *path);
	/* Of @write_files: tells how to read @path; or NULL. */
	void (*say_how)(const char *path);
	/* Does all of the export itself; returns the exit status. */
	int (*run)(struct options *options, const char *recording);
};

/* The linker puts these pointers side by side; formats.c reads them. */
#define EXPORT_FORMAT(name) \
	static const struct export_format format_##name; \
	static const struct export_format *const registered_##name \
		__attribute__((used, \
			       section("export_formats"))) = &format_##name; \
	static const struct export_format format_##name

#endif
