/*
 * The option --filter chooses functions (row M-82).  It is a list of items separated by
 * commas.  The last item that matches a function decides.
 *
 *     all               every function
 *     none, disabled    no function
 *     program           functions of the program itself, not of its libraries
 *     libfoo.so         functions of that object
 *     N:a::b            C++ namespace
 *     T:Class           C++ class, also a::Class
 *     M:name            function: linker name, or a C++ function's own name
 *     F:file.c          source file (needs debug information)
 *     -item             excludes these functions
 *
 * '*' and '?' stand for any text and any character.  If the first item begins with "-",
 * a function that no item matches is recorded; otherwise it is not.
 */
#ifndef SHIM_CALLSPEC_H
#define SHIM_CALLSPEC_H

#include "runtime/subscribe.h"

#include <shim/hooks.h>
#include <stdbool.h>

/* Parses the list.  False, with a line in the log, if the list is invalid. */
bool callspec_read(const char *list);
/*
 * Joins the lines of a file to one list, in place.  A line has one or more items
 * separated by commas.  Blanks around items are ignored.  '#' at the beginning of a
 * line or after a blank begins a comment.
 */
void callspec_join(char *text);
/* Whether the option has a valid list. */
bool callspec_has_filter(void);
/* Whether the list needs names of functions, or source files. */
bool callspec_needs_symbols(void);
bool callspec_needs_files(void);

/*
 * The list of SHIM_PATCH, in the same language, chooses functions that no compiler has
 * marked.  An item without a letter is a function, as M:item, unless it has ".so" in it.
 * There is no F:.  Functions of system libraries are chosen only by the object's name:
 * @is_system.  @names has all names of the function, @size bytes, each with a NUL.  State lock
 * held.
 */
bool callspec_patches(const char *object, bool is_program, bool is_system,
		      const char *names, size_t size);

/*
 * The list of SHIM_LIBCALLS, as that of SHIM_PATCH, chooses calls of the library function
 * @name that @object makes.  An item with a function chooses its calls by all objects but
 * system libraries.  A list that begins with an exclusion leaves out calls of the program.
 */
bool callspec_takes_call(const char *object, bool is_program, bool is_system,
			 const char *name);

/* Parses SHIM_FILTER, SHIM_PATCH and SHIM_LIBCALLS; empties those in config that are
 * invalid.  Called after config_read. */
void callspec_configure(void);
/* Sets SHIM_FILTER as the filter of built-in profilers that have none.  Called after
 * they were created.  State lock held. */
void callspec_start(void);
/* Another recording has another SHIM_FILTER.  The caller updates the plan.  State lock
 * held. */
void callspec_renew(void);
/* Sets another SHIM_FILTER while shim records; the same is true for the caller.  Threads that
 * ask meanwhile get an answer of the former or the new list.  False, with lines in the log, if
 * @list is invalid: the filter stays. */
bool callspec_change(const char *list);
/* The same for SHIM_LIBCALLS. */
bool callspec_change_libcalls(const char *list);
/* SHIM_LIBCALLS has changed.  State lock held. */
TOPIC(libcalls_changed, void);
/* Opens the helper for debug information if the list needs it, because a hook must not
 * open it. */
void callspec_prepare(void);

/* The filter callback for SHIM_FILTER. */
enum shim_call_instrumentation_flags
callspec_filter(struct shim_profiler *profiler, shim_function function);

/* Whether the list admits a function with these names; "" is an unknown name. */
bool callspec_admits(const char *object, bool is_program, const char *name,
		     const char *file);

#endif
