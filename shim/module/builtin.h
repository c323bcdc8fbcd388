/*
 * The built-in profilers, which are part of libshim.so (../hooks), by name.  The linker
 * collects them in a list (<shim/builtin.h>), so the code here names no profiler.
 */
#ifndef SHIM_MODULE_BUILTIN_H
#define SHIM_MODULE_BUILTIN_H

#include <stdbool.h>
#include <stdint.h>

enum builtin_found {
	BUILTIN_UNKNOWN,
	BUILTIN_STOPPED,
	BUILTIN_STARTED,
	BUILTIN_OFF,	  /* started, but records nothing now */
	BUILTIN_TOO_LATE, /* stopped, and can only start together with shim */
};

enum builtin_found builtin_find(const char *profile);

/*
 * builtin_start - starts the profiler NAME[:ARGUMENTS]; each profiler starts once
 *
 * Returns 0; 1 if the profiler runs already; -1 if no profiler has that name; -2 if its
 * arguments are wrong; -3 if it cannot start.  The log has the reason for -2 and -3.
 */
int builtin_start(const char *profile);

/* Calls `begin` of the running profilers.  Called after a group of them has started. */
void builtin_begin(void);

/* Lets a profiler that was started record, or not.  Returns false, with the reason in @why,
 * or in the log if @why is NULL then. */
bool builtin_record(const char *profile, bool is_on, const char **why);

/* Why the profiler cannot stop; NULL: it can. */
const char *builtin_stays(const char *name);
/* Why the profiler NAME[:OPTIONS], which was not started, cannot be any more; NULL: it can. */
const char *builtin_is_too_late(const char *profile);
/* Whether the profiler NAME[:OPTIONS] can record with these options.  False only if it has
 * started with others. */
bool builtin_has_options_of(const char *profile);

/* Calls each(name, records, argument) for the profilers that were started. */
void builtin_each(void (*each)(const char *name, bool records, void *argument),
		  void *argument);

/* Gives calltree another budget, 1 to 99 percent; false: it has none. */
bool builtin_change_budget(uint32_t percent);

#endif
