/*
 * What the library and the profilers that are part of it say to each other, beside the
 * API.  Not installed.
 *
 * A profiler has an entry in a list that the linker makes: SHIM_BUILTIN at file scope.
 */
#ifndef SHIM_BUILTIN_H
#define SHIM_BUILTIN_H

#include <stdbool.h>
#include <stdint.h>

struct shim_builtin {
	const char *name;

	/*
	 * Starts it with what stands behind "NAME:".  0; -1: that is wrong; -2: it
	 * cannot be started.  The log has the reason.
	 */
	int (*start)(const char *arguments);

	/* All that are started at once have been; or NULL. */
	void (*begin)(void);

	bool is_early; /* only starts with the library, before constructors */
	bool is_started;
};

#define SHIM_BUILTIN(builtin) \
	static struct shim_builtin *const builtin##_entry \
		__attribute__((section("shim_builtins"), used)) = &(builtin)

/* pchist: monitor(3) counts from the start, without the program's doing. */
__attribute__((visibility("hidden"))) void
shim_monitor_by_default(uint32_t frequency_hz);

#endif
