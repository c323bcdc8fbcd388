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

	bool is_early; /* can only start with the library, before constructors */
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

/* For calltree with a budget: `profrun ctl PID budget N` calls @change with N, 1 to 99, in
 * a thread of shim.  Contract: init. */
__attribute__((visibility("hidden"))) void
shim_budget_on_change(void (*change)(uint32_t percent));

struct shim_profiler_handle;

/* For calltree:calibrate: lends the sampler of @handle.  The profiler that enables sampling
 * next gets the sampler as if no profiler had enabled it.  shim then calls @taken, with the
 * lock of the runtime.  Contract: init. */
__attribute__((visibility("hidden"))) void
shim_lend_samples(struct shim_profiler_handle *handle, void (*taken)(void));

/* For pchist: starts default profiling of monitor(3), for programs that do not call
 * monitor(3). */
__attribute__((visibility("hidden"))) void
shim_monitor_by_default(uint32_t frequency_hz);

/*
 * The coarse clock for times of calls, or NULL: the tick of profrun (struct shim_tick)
 * while profrun writes it, else shim_clock_coarse().  A hook that sees a new value
 * calls shim_clock_follow_tick(), because the value may be the last that profrun has
 * written.  Then *@tick, and *@all, which all threads share, become the kernel's tick.
 * Async.
 */
__attribute__((visibility("hidden"))) const volatile uint64_t *
shim_clock_tick(void);
__attribute__((visibility("hidden"))) void
shim_clock_follow_tick(const volatile uint64_t **all,
		       const volatile uint64_t **tick);

/* Stores the processor time of the calling thread, in clock units; false if shim cannot
 * read it.  Async. */
__attribute__((visibility("hidden"))) bool shim_clock_cpu(uint64_t *time);

#endif
