/* The profilers that a user chose, and which of them go together. */
#ifndef RUN_PROFILES_H
#define RUN_PROFILES_H

#include <stdbool.h>
#include <stddef.h>

struct settings;

/* profiles_names - the names of the built-in profilers, as one text */
const char *profiles_names(void);

/*
 * profiles_next - take the first of *@list, which moves behind it; NULL: none.
 * profiles_add - the reverse; false: it does not fit into @size
 *
 * Semicolons separate the profilers.  A semicolon after a backslash belongs to the
 * profiler's arguments; two backslashes stand for one.
 */
char *profiles_next(char **list);
bool profiles_add(char *list, size_t size, const char *item);

/* profiles_given - the profilers to run: NAME[:ARGS];... */
const char *profiles_given(const struct settings *settings);

/* profiles_nearest - the built-in profiler that NAME[:ARGS] may mean, or NULL */
const char *profiles_nearest(const char *profiler);

/* profiles_is_builtin - whether NAME[:ARGS] is a built-in profiler */
bool profiles_is_builtin(const char *profiler);

/* profiles_record_calls - whether the profilers record the call tree */
bool profiles_record_calls(const struct settings *settings);

/* profiles_want_tick - whether hooks will read the tick that profrun writes */
bool profiles_want_tick(const struct settings *settings);

/*
 * profiles_check - refuse an empty list, and unknown profilers or arguments
 * profiles_check_budget - refuse a budget that is no percentage
 * profiles_check_together - refuse profilers that cannot record together
 *
 * In that case a message says why, and the functions do not return (status 2).  @where: the
 * option or variable that gave the text.
 */
void profiles_check(const struct settings *settings, const char *text,
		    const char *where);
void profiles_check_budget(const struct settings *settings, const char *text,
			   const char *where);
void profiles_check_together(const struct settings *settings);

#endif
