/*
 * The option --filter chooses functions (row M-82).  It is a list of items separated
 * by commas; the last item that fits a function decides.
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

/* Parses the list.  False, with a line in the log, if it is invalid. */
bool callspec_read(const char *list);
/*
 * Makes one list of the lines of a file, in place.  A line has one or more items
 * separated by commas.  Blanks around items are ignored.  '#' at the beginning of a
 * line or behind a blank begins a comment.
 */
void callspec_join(char *text);
/* Whether the list needs names of functions, or source files. */
bool callspec_needs_symbols(void);
bool callspec_needs_files(void);

/* Parses SHIM_FILTER; empties it if it is invalid.  After config_read. */
void callspec_configure(void);
/* Gives built-in profilers without a filter that of SHIM_FILTER.  State lock held,
 * after they were created. */
void callspec_start(void);
/* Opens the helper for debug information if needed: a hook must not do it. */
void callspec_prepare(void);

/* A filter callback for SHIM_FILTER. */
enum shim_call_instrumentation_flags
callspec_filter(struct shim_profiler *profiler, shim_function function);

/* Whether the list admits a function with these names; "" is an unknown name. */
bool callspec_admits(const char *object, bool is_program, const char *name,
		     const char *file);

#endif
