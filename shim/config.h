/*
 * The settings, read once from the environment the process began with.
 */
#ifndef SHIM_CONFIG_H
#define SHIM_CONFIG_H

struct config {
#define OPTION(name, size, value, help) char name[size];
#define LONG_OPTION(name, help) const char *name;
#include "config.def"
#undef OPTION
#undef LONG_OPTION
};

extern struct config config;

void config_read(void);
/* The value of an environment variable, or NULL. */
const char *config_variable(const char *name);

#endif
