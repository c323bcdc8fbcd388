/*
 * Modules: profilers in libraries of their own, found by name, loaded, asked
 * for their version, and unloaded when their last handle has gone.
 *
 * The table is changed under the state lock.  No lock of ours is held while the
 * loader or anything of a module runs.
 */
#ifndef SHIM_MODULE_H
#define SHIM_MODULE_H

#include "os/text.h"
#include "runtime/subscribe.h"

#include <shim/profiler.h>
#include <stdbool.h>

#define MODULES_MAX SHIM_PROFILERS_MAX

/* Row P-59; the values are the CLR's. */
enum module_status {
	MODULE_NONE,
	MODULE_DETACHING,
	MODULE_INITIALIZING,	/* at the start */
	MODULE_ATTACHING,	/* while the program runs */
	MODULE_ACTIVE,
	MODULE_LOADING,		/* nothing of it was called yet */
};

struct module {
	uint32_t status;
	char name[64];
	char path[512];
	const char *description;
	size_t description_size;	/* of its mapping, 0: not ours to unmap */
	void *library;
	uintptr_t code_low, code_high;	/* where it lies; 0: in the program */
	bool stays;			/* its code must not be unmapped */
	bool said_threads;		/* the log has it that threads keep it */
	const void *data;
	uint32_t data_size;
};

/* Loads those of SHIM_PROFILE.  From our constructor. */
void module_start(void);

/* shim_profiler_load; @text gets what the log gets, for who asked. */
enum shim_result module_load(const char *description, const void *data,
			     uint32_t size, struct text *text);

/* Whether the module @description is found and can be loaded; its init function is
 * not called.  If not, @text says why. */
bool module_try(const char *description, struct text *text);

/* Detaches all handles of the module @name, and waits a while. */
enum shim_result module_unload(const char *name, struct text *text);

/* Before @handle is retired: can its module be unmapped afterwards? */
void module_handle_goes(struct shim_profiler_handle *handle);
/* ... and after: if it was the last one, the module goes, too. */
void module_handle_went(struct module *module);

/* A module that was attached has been set up and may have asked for events that nobody
 * wanted at the start. */
TOPIC(module_attached, void);

/* Unloads modules that are to go and are not in use. */
void module_sweep(void);

/* The @n-th entry of the table, or NULL. */
struct module *module_get(uint32_t n);

#endif
