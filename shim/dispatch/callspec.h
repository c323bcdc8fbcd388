/*
 * Which functions the option --filter lets through (row M-82): a list of items
 * separated by commas, of which the last that fits a function decides.
 *
 *     all               every function
 *     none, disabled    none
 *     program           those of the program itself, not of its libraries
 *     libfoo.so         those of that object
 *     N:a::b            C++ namespace
 *     T:Class           C++ class, also a::Class
 *     M:name            function: linker name, or a C++ function's own name
 *     F:file.c          source file (needs debug information)
 *     -item             not these
 *
 * '*' and '?' stand for any text and any character.  A list that begins with
 * "-" begins with all functions, any other with none.
 */
#ifndef SHIM_CALLSPEC_H
#define SHIM_CALLSPEC_H

#include <shim/hooks.h>
#include <stdbool.h>

/* Takes the list apart.  False, and a line in the log, if it cannot be read. */
bool callspec_read(const char *list);
/*
 * Makes one list of the lines of a file, in place: with one or more items on a line
 * and commas between them.  Blanks around them do not count, and '#' at the begin of
 * a line or behind a blank begins a comment.
 */
void callspec_join(char *text);
/* Whether it needs names, and source files. */
bool callspec_needs_symbols(void);
bool callspec_needs_files(void);

/* Reads SHIM_FILTER; empties it if it cannot be read.  After config_read. */
void callspec_configure(void);
/* Gives our own profilers the filter that SHIM_FILTER asks for.  State lock
 * held, after they have been made. */
void callspec_start(void);
/* Opens what will be needed and must not be opened in a hook. */
void callspec_prepare(void);

/* What a filter callback answers. */
enum shim_call_instrumentation_flags
callspec_filter(struct shim_profiler *profiler, shim_function function);

/* Whether the function of these names is let through; an empty string is not
 * known. */
bool callspec_admits(const char *object, bool is_program, const char *name,
		     const char *file);

#endif
