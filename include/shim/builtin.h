/*
 * The interface between the library and its built-in profilers, beside the API.  Not
 * installed.
 *
 * Each built-in profiler adds itself to a list that the linker makes, by SHIM_BUILTIN
 * at file scope.
 */
#ifndef SHIM_BUILTIN_H
#define SHIM_BUILTIN_H

#include <shim/hooks.h>
#include <stdbool.h>
#include <stddef.h>
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

	/*
	 * `profrun ctl PID unload NAME` and `load NAME`, when it runs: it records nothing
	 * new from now on, or records again.  What it has recorded stays valid.  False, with
	 * a line in the log, if it cannot.  NULL: it cannot, for the reason @stays.
	 */
	bool (*record)(bool is_on);
	const char *stays;

	/* Why it cannot be started any more; NULL: it can, as far as is known before it is
	 * tried.  May be NULL. */
	const char *(*is_too_late)(void);

	bool is_early; /* can only start with the library, before constructors */
	bool is_started, is_off;
	char options[160]; /* of its start, as far as there is room */
};

#define SHIM_BUILTIN(builtin) \
	static struct shim_builtin *const builtin##_entry \
		__attribute__((section("shim_builtins"), used)) = &(builtin)

/* The number of counters of a thread, of which the first one is not used. */
#define SHIM_COUNTERS 2040

/* A call of the enter hook that is to be counted. */
struct shim_counted_call {
	uintptr_t address; /* it returns to */
	uintptr_t
		function; /* if that is 0: whose entry is marked, and not its end */
	uint32_t counter;    /* 1 to SHIM_COUNTERS - 1 */
	uint32_t is_counted; /* stored: 1 if it is, else 0 */
};

/*
 * shim_profiler_count_calls - count single calls of the enter hook instead
 * shim_thread_counters - the counters of the calling thread
 * shim_is_counter - whether code at @address, which has been called, counts calls
 * shim_is_thunk - whether code at @address is that of no-ops or sleds which calls hooks, or
 *                 that of a mark which counts
 * shim_mcount_of - mcount or __fentry__ if @address is in shim's code that does their work;
 *                  otherwise 0
 * shim_fold_mcount - makes one frame of the innermost of @count @frames that are inside of
 *                    that work, and returns the new count
 *
 * Each of the @count @calls then adds 1 to its counter in the calling thread's array of
 * SHIM_COUNTERS, and the hook is not called: 0.8 to 1.4 ns instead of the 5 to 7 of hooks
 * that count, a little more at marks of entries.  shim_thread_counters() returns the address
 * of the pointer to that array.
 * It is NULL in a new thread: such a thread calls the hook, which may set it.  The caller
 * owns the array; fork copies the pointer, vfork shares it.  shim_profiler_switch_calls()
 * ends the counting: the calls are off, or on.  The leave hooks of the function should be
 * off.
 *
 * A call of another thread reaches the hook or the counter, also while its code changes.
 *
 * Returns SHIM_OK if all are counted; SHIM_E_INVALIDARG for a wrong @handle or counter,
 * or NULL @calls; SHIM_E_FAIL if another profiler has hooks, or some calls are not counted:
 * they are not known or do not go through a stub of the linker (-fno-plt), or are sleds of XRay
 * that are not at an entry, or have never been on, no memory is near the code, code cannot be
 * changed, a distance lies in two lines of the cache and the process has several threads, or
 * the processor is no x86-64.  These calls are on or off.
 *
 * The first one blocks signals and takes the lock of the runtime.  It opens a file or
 * changes protections once each time, so calls are best passed together.
 */
__attribute__((visibility("hidden"))) enum shim_result
shim_profiler_count_calls(struct shim_profiler_handle *handle, uint32_t count,
			  struct shim_counted_call *calls);
__attribute__((visibility("hidden"))) uint64_t **shim_thread_counters(void);
__attribute__((visibility("hidden"))) int shim_is_counter(uintptr_t address);
__attribute__((visibility("hidden"))) int shim_is_thunk(uintptr_t address);
__attribute__((visibility("hidden"))) uintptr_t
shim_mcount_of(uintptr_t address);
__attribute__((visibility("hidden"))) uint32_t
shim_fold_mcount(uintptr_t *frames, uint32_t count);

/*
 * Hooks that marks of functions (-fxray-instrument, -fpatchable-function-entry and others)
 * reach directly, while the handle is the only one with hooks; otherwise, and after hooks
 * were off, marks reach its frame hooks (shim_profiler_set_chained_hooks).  Assembly, whose
 * conventions are those of <shim/mark_hooks.inc>: at the sled of an entry, at the beginning of
 * its function or behind endbr64; at that of a return; at a mark that is only at an entry, and
 * when such a function has returned.
 *
 * shim_profiler_set_mark_hooks - set them; NULL: none
 *
 * @hooks is kept.  Returns SHIM_OK; SHIM_E_CALL_ONLY_FROM_INIT; SHIM_E_INVALIDARG for a
 * wrong @handle.  Contract: init.
 */
struct shim_mark_hooks {
	void (*sled_entry[2])(void);
	void (*sled_leave)(void);
	void (*entry)(void);
	void (*entry_kept)(void);
	void (*returned)(void);
};
__attribute__((visibility("hidden"))) enum shim_result
shim_profiler_set_mark_hooks(struct shim_profiler_handle *handle,
			     const struct shim_mark_hooks *hooks);

/*
 * For a profiler that counts calls: the filters.
 *
 * shim_filter_version - another number after each change of the filters
 * shim_filter_admits - whether the only profiler with hooks wants the calls of @function: 1;
 *                      0; or -1 if only the next call that reaches a hook finds it out
 *
 * Async.
 */
__attribute__((visibility("hidden"))) uint32_t shim_filter_version(void);
__attribute__((visibility("hidden"))) int
shim_filter_admits(uintptr_t function);

/* Switches the hooks of a built-in profiler off and on.  While they are off, it gets its
 * other events.  When they are on again, its restart hooks have replaced its first ones.
 * Takes the lock of the runtime.  Contract: may block. */
__attribute__((visibility("hidden"))) void
shim_profiler_record_calls(struct shim_profiler_handle *handle, bool is_on);

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

/* For calltree with a budget: each thread that runs gets a signal each @periods periods, whose
 * weight is that of all of them.  1 since the mode was set.  Timers of ticks, which are rare
 * anyway, do not change.  Async. */
__attribute__((visibility("hidden"))) void
shim_samples_set_distance(uint32_t periods);

/* The next sample of the calling thread, which is in a sample_hit, comes after one period, if
 * it runs.  Async. */
__attribute__((visibility("hidden"))) void shim_sample_soon(void);

/* The first definition of a symbol in the objects that were loaded at the start, and its
 * size; or NULL.  Contract: init. */
__attribute__((visibility("hidden"))) void *shim_symbol_find(const char *name,
							     size_t *size);

/* Does the same in @image alone, which may have been loaded at any time.  Takes the loader's
 * lock.  Contract: may block. */
__attribute__((visibility("hidden"))) void *
shim_symbol_find_in(shim_image image, const char *name, size_t *size);

/* From now on, on_image_loaded of an object that defines @symbol comes before its dlopen
 * returns.  For other objects a profiler of shim gets it at the next scan, which dlopen does
 * not make for it: a scan takes 0.1 ms.  Keeps @symbol, of one caller.  Contract: init. */
__attribute__((visibility("hidden"))) void
shim_symbol_expect(const char *symbol);

/* Counts a release of a block that is older than `profrun attach`.  Async. */
__attribute__((visibility("hidden"))) void shim_older_release(void);

/* Unmaps memory of shim_memory_map() that no thread uses.  Async. */
__attribute__((visibility("hidden"))) void shim_memory_unmap(void *memory,
							     size_t size);

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
/* The time in clock units at which @tick had @value.  Async. */
__attribute__((visibility("hidden"))) uint64_t
shim_clock_of_tick(const volatile uint64_t *tick, uint64_t value);
__attribute__((visibility("hidden"))) void
shim_clock_follow_tick(const volatile uint64_t **all,
		       const volatile uint64_t **tick);

/* Stores the processor time of the calling thread, in clock units; false if shim cannot
 * read it.  Async. */
__attribute__((visibility("hidden"))) bool shim_clock_cpu(uint64_t *time);

/*
 * The signal stack of the calling thread, which need not be in use: its bounds; false if it
 * has none.  shim_signal_stack_changes counts the calls of sigaltstack() by which any thread
 * has changed its own.  Async; a system call.
 */
extern uint32_t shim_signal_stack_changes __attribute__((visibility("hidden")));
__attribute__((visibility("hidden"))) bool shim_signal_stack(uintptr_t *low,
							     uintptr_t *high);

/*
 * Whether @sp is on a stack that shim has made for the calling thread's hooks and callbacks,
 * if the thread's own has little room.  The program is there only in a signal handler that
 * has interrupted shim.  Stores the stack's bounds.  Async; no system call.
 */
__attribute__((visibility("hidden"))) bool
shim_callback_stack(uintptr_t sp, uintptr_t *low, uintptr_t *high);

/*
 * Finds the stack below a signal handler's: stores the stack pointer of the code that was
 * interrupted, in *@sp.  The calling thread runs on the handler's stack [@low, @high).  False
 * if the handler's stack cannot be unwound.  Takes the lock of the runtime.  Async.
 */
__attribute__((visibility("hidden"))) bool
shim_stack_interrupted(uintptr_t low, uintptr_t high, uintptr_t *sp);

/*
 * After `profrun attach`: the calls that were open before.
 *
 * shim_has_open_before - whether the calling thread ran at the last attach, and has not
 * listed its calls yet
 * shim_list_open_before - the calls of the calling thread that are open now and may have
 * been open at the attach, innermost first: those of functions with calls of hooks that
 * the filter admits.  Inlined functions are missing.  Stores up to @room of them in @calls,
 * and the time of the attach in *@clock.  Returns their number; 0 after the first call of a
 * thread.
 * shim_list_open_now - the same at any time
 *
 * The last two take the lock of the runtime.  Contract: async.
 */
struct shim_open_before {
	shim_function function;
	uintptr_t sp; /* the stack pointer of its frame */
};

__attribute__((visibility("hidden"))) bool shim_has_open_before(void);
__attribute__((visibility("hidden"))) uint32_t
shim_list_open_before(struct shim_open_before *calls, uint32_t room,
		      uint64_t *clock);
__attribute__((visibility("hidden"))) uint32_t
shim_list_open_now(struct shim_open_before *calls, uint32_t room);

#endif
