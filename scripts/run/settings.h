/* The user's settings: options, else the SHIM_ variables. */
#ifndef RUN_SETTINGS_H
#define RUN_SETTINGS_H

#include <limits.h>
#include <stdbool.h>

#include "filter.h"

#define REPORT_OPTIONS_MAX 64
#define PROFILE_SIZE	   131000

struct settings {
	bool is_record; /* only record; no report */
	bool is_stat;	/* one paragraph instead of the report */
	bool is_quiet;
	bool is_verbose;
	bool wants_report;
	bool is_live;	     /* show the screen of profrun top */
	bool has_node_files; /* put the ranks of a host into one file at the end */

	/* For SHIM_PROFILE; empty: the variable stays as it is.  The size is the
	 * library's limit, and that of the system for one variable. */
	char profile[PROFILE_SIZE];
	const char *budget;	/* for SHIM_BUDGET; NULL: the variable stays */
	bool is_disabled;	/* SHIM_DISABLE: run without shim */
	struct filter filter;	/* the functions to record */
	struct filter patch;	/* functions without marks to record */
	struct filter libcalls; /* library calls to record */
	bool has_control;	/* allow `profrun ctl` */
	bool has_gaps;		/* record when threads had no processor */
	unsigned counters_ms;	/* the system's counters' period; 0: none */
	unsigned tick_hz;	/* of calltree's clock; 0: the kernel's */
	bool is_tick_given;
	const char *output; /* pattern for the recording's name */
	bool is_output_given;

	char library[PATH_MAX]; /* libshim.so.0 */
	const char *report;	/* shim-report */
	/* Options for the report, NULL-terminated. */
	const char *report_option[REPORT_OPTIONS_MAX + 1];

	char **command; /* the program and its arguments */
};

/* settings_is_number - whether @value has one to nine digits, and nothing else */
bool settings_is_number(const char *value);

/* settings_usage_error - name the help, and exit with status 2 */
void settings_usage_error(const struct settings *settings)
	__attribute__((noreturn));

/*
 * settings_read - fill @settings from the words of the command line
 *
 * @word begins with the verb.  Does not return on a usage error (status 2)
 * or on --help.
 */
void settings_read(struct settings *settings, int words, char **word);

#endif
