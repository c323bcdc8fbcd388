/*
 * Coverage: the lines and functions that the program has reached.
 *
 * A profiler enables coverage in its init function.  shim then scans each
 * object once after it is loaded, if possible before its code runs.  Lines come
 * from the object's line table (-g is enough).  Each
 * instruction at which a line begins gets a breakpoint; the first thread that
 * reaches it removes it, and code that was reached runs at full speed.
 * Functions that were compiled with -finstrument-functions need no debug
 * information.  In a program with counters of its compiler
 * (-fsanitize-coverage=trace-pc-guard,pc-table or trace-pc) counts are exact.
 *
 * While breakpoints are set, shim owns SIGTRAP.  The program finds the handler
 * that it has set, and cannot block the signal; a SIGTRAP sent by the program
 * reaches the program's own handler.  shim removes all breakpoints at once if
 * the program is traced (PTRACE_TRACEME), forbids itself system calls, or waits
 * for SIGTRAP alone: the log says so, and lines that are reached later are not
 * recorded.
 *
 * Example: print the lines of a function that were reached.
 *
 *     #include <shim/coverage.h>
 *     #include <stdio.h>
 *
 *     static void print(struct shim_profiler *profiler,
 *                       const struct shim_coverage_data *data)
 *     {
 *             (void)profiler;
 *             if (data->counter && data->file_name)
 *                     printf("%s:%u\n", data->file_name, data->line);
 *     }
 *
 *     void show(struct shim_profiler_handle *handle, shim_function function);
 *     void show(struct shim_profiler_handle *handle, shim_function function)
 *     {
 *             shim_profiler_get_coverage_data(handle, function, print);
 *     }
 */
#ifndef SHIM_COVERAGE_H
#define SHIM_COVERAGE_H

#include <shim/format.h>
#include <shim/profiler.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * shim_profiler_enable_coverage - enable coverage
 *
 * Applies to the whole process, whichever handle calls it; a second call is no
 * error.
 *
 * For a module that is attached, coverage begins when its init function has
 * returned, with the objects that are loaded then, including lines of functions
 * that run at that moment.  If another profiler has enabled coverage before,
 * the module does not get the earlier events coverage_object and
 * function_reached; shim_profiler_get_coverage_data has their data.  If a thread
 * blocks SIGTRAP when coverage begins late, shim records functions and no lines,
 * and the log has a line.
 *
 * Returns SHIM_OK; SHIM_E_INVALIDARG; SHIM_E_CALL_ONLY_FROM_INIT;
 * SHIM_E_OUTOFMEMORY.
 *
 * Contract: init.  CLR: none.  Mono: mono_profiler_enable_coverage.
 */
SHIM_API enum shim_result shim_profiler_enable_coverage(
	SHIM_IN struct shim_profiler_handle *handle) SHIM_INIT;

/*
 * shim_profiler_set_coverage_filter_callback - choose functions
 *
 * When shim scans an object, it calls @filter for each function that has a
 * symbol, and for each function that hooks report.  @filter returns 1 if
 * @handle wants the function's lines.  shim calls the filters of all profilers
 * and records a function if one of them wants it, or if there is no filter.  A
 * new filter applies to objects that are loaded later.  NULL removes the
 * filter.
 *
 * Returns SHIM_OK; SHIM_E_INVALIDARG for a wrong @handle;
 * SHIM_E_PROFILER_DETACHING.
 *
 * Contract: async.  CLR: none.  Mono:
 * mono_profiler_set_coverage_filter_callback.
 */
typedef int (*shim_coverage_filter_callback)(struct shim_profiler *profiler,
					     shim_function function);
SHIM_API enum shim_result shim_profiler_set_coverage_filter_callback(
	SHIM_IN struct shim_profiler_handle *handle,
	SHIM_IN shim_coverage_filter_callback filter) SHIM_ASYNC;

/*
 * The first instruction of a line, valid while the callback runs.  A function
 * without line table has one for the whole function: @file_name is NULL, @line
 * and @column are 0.  Mono: MonoProfilerCoverageData.
 */
struct shim_coverage_data {
	shim_function function;
	/* bytes from the function's start; its parts are counted in the order of
	 * shim_function_ranges */
	uint64_t code_offset;
	/* 0: not reached, 1: reached; in a program with counters, the number of
	 * times */
	uint64_t counter;
	const char *file_name; /* as given to the compiler, made absolute */
	uint32_t line;
	uint32_t column; /* 0: not known */
};

/*
 * shim_profiler_get_coverage_data - call @callback for each line of @function
 *
 * The order is that of the function's parts.  The lines of a function that was
 * never called have counters of 0.
 *
 * Returns SHIM_OK; SHIM_E_INVALIDARG; SHIM_E_PROFILER_DETACHING;
 * SHIM_E_UNSUPPORTED_CALL_SEQUENCE; SHIM_E_DATAINCOMPLETE if the function's
 * image was unloaded; SHIM_E_FAIL if coverage is not enabled or the function is
 * not recorded: no filter wanted it, or it has neither line table nor hooks.
 *
 * Contract: may block; also code of the program itself, outside of callbacks.
 * May read symbols.  CLR: none.  Mono: mono_profiler_get_coverage_data.
 */
typedef void (*shim_coverage_data_callback)(
	struct shim_profiler *profiler, const struct shim_coverage_data *data);
SHIM_API enum shim_result shim_profiler_get_coverage_data(
	SHIM_IN struct shim_profiler_handle *handle,
	SHIM_IN shim_function function,
	SHIM_IN shim_coverage_data_callback callback) SHIM_MAY_BLOCK;

/* --- for profilers that record coverage: the data of coverage_object in
 * <shim/events.def> --- */

/* An object that shim is about to scan. */
struct shim_coverage_object {
	uint64_t start, end; /* addresses */
	const char *path;
	uint32_t state; /* enum shim_coverage_state */
	uint32_t line_count;
	uint32_t file_count;
	uint32_t files_size; /* bytes */
	uint32_t dropped;    /* lines whose first instruction is not certain */
	uint32_t unused;
	const struct shim_coverage_line *lines; /* in order of @offset */
	const char *files; /* their names, NUL-terminated, in sequence */
	/*
	 * One byte for each line: 1 once the line was reached; 2 if that cannot
	 * be known, because its first instruction is changed by shim.  The callback
	 * may replace it with zeroed memory of its own that stays mapped.  If
	 * that memory is shared with a file, the data survives the program.  A
	 * fork child continues its parent's.
	 */
	uint8_t *reached;
	/*
	 * With SHIM_COVERAGE_POINTS: a count for each line instead; replaceable
	 * as above.  @lines then has valid @offsets only.  If @lines is NULL,
	 * point i is the code that the byte at offset 4 * i - 1 belongs to.
	 */
	uint64_t *counts;
};

#ifdef __cplusplus
}
#endif
#endif
