/*
 * The settings, read once at the start: from the environment, or from the request to
 * attach to a running program.
 */
#ifndef SHIM_CONFIG_H
#define SHIM_CONFIG_H

#include <stdbool.h>

struct config {
#define OPTION(name, size, value, help) char name[size];
#define LONG_OPTION(name, help)		const char *name;
#include "runtime/config.def"
#undef OPTION
#undef LONG_OPTION
};

extern struct config config;

void config_read(void);
/*
 * Takes the settings from @settings instead of the environment: strings NAME=VALUE, each
 * with its NUL, then an empty string.  Copies them.  Returns 0 or -errno.  Called before
 * config_read.
 */
int config_take(const char *settings);
/* The same for another recording: only its directory, and `control` if it is 1; the other
 * settings stay. */
int config_renew(const char *settings);
/* Adds a profiler that was started later, NAME[:ARGUMENTS], to `profile`.  False if the list
 * has its name, or has no room.  State lock held. */
bool config_add_profiler(const char *item);
/* Whether libc has the environment.  Before libc's constructor has run, shim reads the
 * environment from the stack, where the kernel has stored it. */
bool config_is_complete(void);
/* The value of an environment variable, or NULL. */
const char *config_variable(const char *name);

#endif
