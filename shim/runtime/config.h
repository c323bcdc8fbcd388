/*
 * The settings, read once from the environment at the start.
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
/* Whether libc has the environment.  Before libc's constructor has run, shim reads the
 * environment from the stack, where the kernel has stored it. */
bool config_is_complete(void);
/* The value of an environment variable, or NULL. */
const char *config_variable(const char *name);

#endif
