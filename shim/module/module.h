/*
 * Modules: profilers in libraries of their own.  shim finds a module by name, loads it,
 * checks its version, and unloads it after the detach of its last handle.
 *
 * The state lock protects the table.  shim holds no lock while the loader or code of a
 * module runs.
 */
#ifndef SHIM_MODULE_H
#define SHIM_MODULE_H

#include "os/sys.h"
#include "os/text.h"
#include "runtime/subscribe.h"

#include <shim/profiler.h>
#include <stdbool.h>
#include <time.h>

#define MODULES_MAX SHIM_PROFILERS_MAX

/* Row P-59; the values are the CLR's. */
enum module_status {
	MODULE_NONE,
	MODULE_DETACHING,
	MODULE_INITIALIZING, /* at the start */
	MODULE_ATTACHING,    /* while the program runs */
	MODULE_ACTIVE,
	MODULE_LOADING, /* no code of it has run */
};

struct module {
	uint32_t status;
	char name[64];
	char path[512];
	const char *description;
	size_t description_size; /* of the mapping to unmap; 0: none */
	void *library;
	uintptr_t code_low, code_high; /* its image; 0: in the program */
	bool stays;		       /* shim must not unmap its code */
	bool said_threads;	       /* the log has its running threads */
	const void *data;
	uint32_t data_size;
};

/* Limits of waits are times: on a busy machine, a sleep of 1 ms takes many times as long. */
static inline uint64_t module_now_ms(void)
{
	uint64_t now = 0;

	sys_time_ns(CLOCK_MONOTONIC, &now);
	return now / 1000000;
}

/* Loads the modules of SHIM_PROFILE.  Called in shim's constructor. */
void module_start(void);

/* As shim_profiler_load.  Copies the log's lines about it to @text. */
enum shim_result module_load(const char *description, const void *data,
			     uint32_t size, struct text *text);

/* Whether shim finds the module @description and can load it; if not, stores the reason
 * in @text.  Does not call its init function. */
bool module_try(const char *description, struct text *text);

/* Detaches all handles of the module @name; waits up to 5 s until it is unloaded. */
enum shim_result module_unload(const char *name, struct text *text);

/* Called before @handle is retired: decides whether its module's code must stay. */
void module_handle_goes(struct shim_profiler_handle *handle);
/* Called after it: detaches the module, too, if that was the last handle. */
void module_handle_went(struct module *module);

/* An attached module has been set up.  It may have enabled events that no profiler had
 * enabled at the start. */
TOPIC(module_attached, void);

/* Unloads detached modules that are not in use. */
void module_sweep(void);

/* The @n-th entry of the table, or NULL. */
struct module *module_get(uint32_t n);

#endif
