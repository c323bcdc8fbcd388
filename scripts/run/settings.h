/* What the user asked for: options, else the SHIM_ variables. */
#ifndef RUN_SETTINGS_H
#define RUN_SETTINGS_H

#include <limits.h>
#include <stdbool.h>

#include "filter.h"

#define REPORT_OPTIONS_MAX 64
#define PROFILE_SIZE 131000

struct settings {
	bool is_record;			/* run only, no report */
	bool is_quiet;
	bool is_verbose;
	bool wants_report;

	/* For SHIM_PROFILE; empty: as it is.  The library has room for this,
	 * and the system for a variable no longer. */
	char profile[PROFILE_SIZE];
	bool is_disabled;		/* SHIM_DISABLE: nothing of ours */
	struct filter filter;		/* which functions */
	bool has_control;		/* let `profrun ctl` in */
	bool has_gaps;			/* note when threads had no processor */
	unsigned counters_ms;		/* note the system's counters; 0: no */
	const char *output;		/* pattern for the recording's name */
	bool is_output_given;

	char library[PATH_MAX];		/* libshim.so.0 */
	const char *report;		/* shim-report */
	/* Options handed to the report, NULL-terminated. */
	const char *report_option[REPORT_OPTIONS_MAX + 1];

	char **command;			/* the program and its arguments */
};

/* settings_profilers - the names of those in the library, as one text */
const char *settings_profilers(void);

/*
 * settings_next_profiler - the first of *@list, which goes on behind it, or NULL
 * settings_add_profiler - the reverse; false: it does not fit into @size
 *
 * They are separated by semicolons; one that a backslash precedes belongs to the
 * profiler's arguments, and so does the second of two backslashes.
 */
char *settings_next_profiler(char **list);
bool settings_add_profiler(char *list, size_t size, const char *item);

/* settings_given_profile - what is to be recorded: NAME[:ARGS];... */
const char *settings_given_profile(const struct settings *settings);

/* settings_nearest_profiler - the name in the library that NAME[:ARGS] may have
 * been meant for, or NULL */
const char *settings_nearest_profiler(const char *profiler);

/*
 * settings_check_together - refuse profilers that cannot record together
 *
 * Then a message says why, and this does not return (status 2).
 */
void settings_check_together(const struct settings *settings);

/* settings_is_builtin - whether NAME[:ARGS] is in the library */
bool settings_is_builtin(const char *profiler);

/* settings_records_calls - whether the call tree is among what was asked for */
bool settings_records_calls(const struct settings *settings);

/*
 * settings_read - fill @settings from the words of the command line
 *
 * @word begins with the verb.  Does not return on a usage error (status 2)
 * or on --help.
 */
void settings_read(struct settings *settings, int words, char **word);

#endif
