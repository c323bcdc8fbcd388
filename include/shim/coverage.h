/*
 * Coverage: which lines and functions the program has reached.
 *
 * A profiler that wants it enables it while it is set up.  Then each loaded object
 * is looked at once, before anything of it runs that shim can be before: its lines
 * are those of its line table (-g is all it takes), each instruction at which one
 * begins gets a trap, and the first thread that comes there takes the trap away.
 * What was reached runs as if nothing had been there.  Functions that were compiled
 * with -finstrument-functions are told without debug information, too, and where a
 * compiler made the program count (-fsanitize-coverage=trace-pc-guard,pc-table or
 * trace-pc), counts are exact.  Rows M-23 to M-31.
 *
 * While lines are looked at, SIGTRAP is ours.  The program finds what it set for it
 * and cannot block it; who sends one gets what it had set.  A program that is traced
 * (PTRACE_TRACEME), forbids itself system calls, or waits for SIGTRAP and nothing
 * else, has its code back as it was, at once: the log says so, and lines that are
 * reached from then on are not seen.
 */
#ifndef SHIM_COVERAGE_H
#define SHIM_COVERAGE_H

#include <shim/format.h>
#include <shim/profiler.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * shim_profiler_enable_coverage - ask for coverage
 *
 * For the whole process; again is no error.  Row M-23.
 *
 * For a module that is attached it begins when its init function has returned, with
 * the objects that are loaded then: what is reached from then on is seen, lines of
 * functions that run at that moment included.  If others had enabled coverage before,
 * coverage_object and function_reached have been raised for what they saw, and
 * shim_profiler_get_coverage_data tells it.  A thread that has SIGTRAP blocked when
 * coverage begins late leaves functions without lines, and the log says so (row P-65).
 *
 * Returns SHIM_OK; SHIM_E_CALL_ONLY_FROM_INIT; SHIM_E_OUTOFMEMORY.
 *
 * Contract: init.
 */
SHIM_API enum shim_result shim_profiler_enable_coverage(void) SHIM_INIT;

/*
 * shim_profiler_set_coverage_filter_callback - which functions
 *
 * An object's functions are those that it has symbols for.  When it is looked at
 * @filter is called for each of them, and for each that hooks tell; it says by 1
 * that @handle wants its lines.  All filters are called; a function is looked at if
 * one of them wants it, or nobody has set any.  What is set later matters for
 * objects that come later.  NULL: none.  Rows M-25, M-26.
 *
 * Returns SHIM_OK; SHIM_E_INVALIDARG; SHIM_E_PROFILER_DETACHING.
 *
 * Contract: async.
 */
typedef int (*shim_coverage_filter_callback)(struct shim_profiler *profiler,
					     shim_function function);
SHIM_API enum shim_result shim_profiler_set_coverage_filter_callback(
	SHIM_IN struct shim_profiler_handle *handle,
	SHIM_IN shim_coverage_filter_callback filter) SHIM_ASYNC;

/*
 * A place in a function where a line begins, while the callback runs.  Without a
 * line table there is one for the whole function: @file_name is NULL, @line and
 * @column are 0.  Rows M-28, M-29.
 */
struct shim_coverage_data {
	shim_function function;
	uint64_t code_offset;	/* bytes from the function's first, its parts counted
				 * through in the order of shim_function_ranges */
	uint64_t counter;	/* how often it was reached: 0, or at least 1; of
				 * programs that count, exactly as often */
	const char *file_name;	/* as the compiler was given it, made absolute */
	uint32_t line;
	uint32_t column;	/* 0: not known */
};

/*
 * shim_profiler_get_coverage_data - calls @callback for each place in @function
 *
 * In the order of its parts.  A function that was never called has them too, with
 * counters of 0.  Row M-27, M-30.
 *
 * Returns SHIM_OK; SHIM_E_INVALIDARG; SHIM_E_PROFILER_DETACHING;
 * SHIM_E_UNSUPPORTED_CALL_SEQUENCE; SHIM_E_DATAINCOMPLETE if its object has gone;
 * SHIM_E_FAIL if coverage is not enabled, or nothing is looked at there: no filter
 * wanted it, it has no line table and was not compiled with the hooks.
 *
 * Contract: may block; also code of the program itself, outside of callbacks.  May
 * read symbols.
 */
typedef void (*shim_coverage_data_callback)(
	struct shim_profiler *profiler, const struct shim_coverage_data *data);
SHIM_API enum shim_result shim_profiler_get_coverage_data(
	SHIM_IN struct shim_profiler_handle *handle, SHIM_IN shim_function function,
	SHIM_IN shim_coverage_data_callback callback) SHIM_MAY_BLOCK;

/* --- for profilers that keep what was reached: coverage_object and
 * function_reached in <shim/events.def> --- */

/* An object that is about to be looked at. */
struct shim_coverage_object {
	uint64_t start, end;	/* where it is */
	const char *path;
	uint32_t state;		/* enum shim_coverage_state */
	uint32_t line_count;
	uint32_t file_count;
	uint32_t files_size;	/* bytes */
	uint32_t dropped;	/* lines of which it is not sure where they begin */
	uint32_t unused;
	const struct shim_coverage_line *lines;	/* by @offset */
	const char *files;	/* their names, each with its NUL */
	/*
	 * One for each line: 1 since it was reached.  The callback may set it to
	 * zeroed memory of its own, which must stay: shared with a file, what was
	 * reached outlives the program.  A forked child goes on with its parent's.
	 */
	uint8_t *reached;
	/*
	 * With SHIM_COVERAGE_POINTS, instead: how often, one for each; as above.
	 * @lines only say their @offset then.  NULL: the i-th is the place in code
	 * that the byte at offset 4 * i - 1 belongs to.
	 */
	uint64_t *counts;
};

#ifdef __cplusplus
}
#endif
#endif
