/* The start of a built-in profiler: its options, and its entry in the list of
 * profilers. */
#ifndef OPTIONS_START_H
#define OPTIONS_START_H

#include "options/options.h"

#include <shim/builtin.h>

/*
 * Reads @arguments, passes each option to @take, and calls @start, which returns false,
 * after it has logged the reason, if the profiler cannot start.  The result is that of
 * @start in struct shim_builtin.
 */
int options_start(const char *profiler, const char *arguments,
		  option_taker *take, bool (*start)(void));

/* Stands at the end of a profiler's file.  The arguments after @START are fields of its
 * entry. */
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
