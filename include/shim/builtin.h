/*
 * The interface between the library and its built-in profilers, beside the API.  Not
 * installed.
 *
 * Each built-in profiler adds itself to a list that the linker makes, by SHIM_BUILTIN
 * at file scope.
 */
#ifndef SHIM_BUILTIN_H
#define SHIM_BUILTIN_H

#include <stdbool.h>
#include <stdint.h>

struct shim_builtin {
	const char *name;

	/*
	 * Starts the profiler with the text after "NAME:".  Returns 0; -1 if
	 * @arguments are wrong; -2 if the profiler cannot be started.  A failure
	 * writes its reason to the log.
	 */
	int (*start)(const char *arguments);

	/* Called when all profilers that start together have been started; or NULL. */
	void (*begin)(void);

	bool is_early; /* only starts with the library, before constructors */
	bool is_started;
};

#define SHIM_BUILTIN(builtin) \
	static struct shim_builtin *const builtin##_entry \
		__attribute__((section("shim_builtins"), used)) = &(builtin)

/* The processor time of the calling thread in nanoseconds; 0 if unknown.  A system
 * call. */
__attribute__((visibility("hidden"))) uint64_t shim_thread_time_ns(void);

/* For calltree: SHIM_BUDGET, or "". */
__attribute__((visibility("hidden"))) const char *shim_budget_setting(void);

struct shim_profiler_handle;

/* For calltree:calibrate: the profiler that enables sampling next gets the sampler of
 * @handle, as if it had not been enabled.  @taken is called then, with the lock of the
 * runtime.  Contract: init. */
__attribute__((visibility("hidden"))) void
shim_lend_samples(struct shim_profiler_handle *handle, void (*taken)(void));

/* For pchist: monitor(3) counts from the start, though the program does not call it. */
__attribute__((visibility("hidden"))) void
shim_monitor_by_default(uint32_t frequency_hz);

/*
 * The coarse clock for times of calls, or NULL: the tick that profrun writes (struct
 * shim_tick) while it does, else shim_clock_coarse().  A hook that sees another value
 * calls shim_clock_follow_tick(), for the value may be profrun's last: then *@tick and
 * *@all, which all threads share, become the tick that goes on.  Async.
 */
__attribute__((visibility("hidden"))) const volatile uint64_t *
shim_clock_tick(void);
__attribute__((visibility("hidden"))) void
shim_clock_follow_tick(const volatile uint64_t **all,
		       const volatile uint64_t **tick);

/* The processor time of the calling thread, in clock units; false: it cannot be read.
 * Async. */
__attribute__((visibility("hidden"))) bool shim_clock_cpu(uint64_t *time);

#endif
