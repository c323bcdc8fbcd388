/*
 * Built-in profilers that come and go while the program runs: by `profrun ctl`, and by a
 * `profrun attach` after the first.
 */
#ifndef SHIM_MODULE_LATE_H
#define SHIM_MODULE_LATE_H

#include "module/module.h"
#include "os/text.h"

#include <shim/shim.h>
#include <stdbool.h>

/* Starts the built-in profiler, or lets it record again.  False if none has that name;
 * otherwise stores the result, and a reason in @text. */
bool late_load(const char *description, struct text *text,
	       enum shim_result *result);

/* Lets it record nothing from now on. */
enum shim_result late_unload(const char *name, struct text *text);

/* Another recording has the profilers of @list, "NAME[:OPTIONS];...".  Whether those that
 * run can stop, and the others have the options of their start; if not, stores a reason. */
bool late_can_choose(const char *list, struct text *why);
/* Stops all but those; starts those, modules by module_load.  The log has what fails. */
void late_stop_others(const char *list);
void late_start_all(const char *list, typeof(module_load) *load_module);

#endif
