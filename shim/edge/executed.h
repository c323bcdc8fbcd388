/*
 * Programs that the process executes: where their files are, whether shim can be loaded into
 * them, and their environment if it cannot.
 */
#ifndef SHIM_EXECUTED_H
#define SHIM_EXECUTED_H

#include "os/trust.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum executed_kind {
	EXECUTED_ORDINARY, /* also what is no ELF file, or cannot be read */
	EXECUTED_STATIC,   /* no dynamic linker loads it */
	EXECUTED_FOREIGN,  /* another processor's, or of another word size */
};

/* Instead of a directory: a name without a slash is looked for in PATH, as execvp does. */
#define EXECUTED_IN_PATH INT_MIN

/* Of a script, both are its interpreter's. */
struct executed {
	struct sys_status status;
	enum executed_kind kind;
};

/* @directory: that of execveat, AT_FDCWD or EXECUTED_IN_PATH.  False if the file cannot be
 * executed. */
bool executed_find(int directory, const char *name, struct executed *executed);

/* Whether a list of libraries, as in LD_PRELOAD, names shim; NULL is an empty list. */
bool executed_names_shim(const char *list);
bool executed_preloads_shim(char *const environment[]);
/* Whether the dynamic linker finds shim by its path there.  It does not in another root
 * directory, nor as a user who may not look into shim's. */
bool executed_opens_shim(char *const environment[]);

/*
 * The environment without shim in LD_PRELOAD.  The dynamic linker of a foreign program cannot
 * load it, and would say so on the program's standard error.  Other libraries stay: the user
 * has chosen them.  @room: executed_room() pointers.
 */
size_t executed_room(char *const environment[]);
char *const *executed_without_shim(char *const environment[], char **room);

#endif
