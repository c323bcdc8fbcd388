/* Starts a built-in profiler: reads its options, and makes its entry in the list of
 * profilers. */
#ifndef OPTIONS_START_H
#define OPTIONS_START_H

#include "options/options.h"

#include <shim/builtin.h>

/*
 * Reads @arguments, passes each option to @take, and calls @start.  @start logs the
 * reason and returns false if the profiler cannot start.  The result is that of @start
 * in struct shim_builtin.
 */
int options_start(const char *profiler, const char *arguments,
		  option_taker *take, bool (*start)(void));

/* Defines the entry of a profiler, at the end of its file.  The arguments after @START
 * are fields of the entry. */
#define BUILTIN(NAME, TAKE, START, ...) \
	static int NAME##_start(const char *arguments) \
	{ \
		return options_start(#NAME, arguments, TAKE, START); \
	} \
	static struct shim_builtin NAME##_builtin = { .name = #NAME, \
						      .start = NAME##_start, \
						      __VA_ARGS__ }; \
	SHIM_BUILTIN(NAME##_builtin)

#endif
