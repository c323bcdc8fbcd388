/*
 * Sampling: where the program's threads are, many times a second.
 *
 * A profiler that wants samples enables them while it is set up, chooses a mode,
 * and gets sample_hit events (<shim/events.def>) on the interrupted threads.  One
 * sampler serves all profilers; the first that enabled it decides how often it
 * looks, the others only see the hits.  Rows M-32 to M-43.
 *
 * Each thread has a timer of its own, which sends it a real-time signal that
 * the program does not see: it cannot be blocked, waited for or read, and
 * whoever asks finds it unused.  Calls of the system that the signal interrupts
 * go on where they were; none of them fails with EINTR for our sake, and a
 * thread that sleeps is woken once in all of its sleep.
 */
#ifndef SHIM_SAMPLING_H
#define SHIM_SAMPLING_H

#include <shim/profiler.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * What makes a timer advance.
 *
 * PROCESS and THREAD: the time a thread spends on a processor; the program as a
 * whole is hit @frequency_hz times per second of it.  The kernel looks at these
 * timers at its own ticks only (mostly 250 a second): a hit weighs as much as
 * has gone by.  REAL: time, also while a thread sleeps; its sleep is one hit,
 * which comes when it ends and weighs as much as it was long.
 */
enum shim_sample_mode {
	SHIM_SAMPLE_NONE = 0,
	SHIM_SAMPLE_PROCESS = 1,
	SHIM_SAMPLE_REAL = 2,
	SHIM_SAMPLE_THREAD = 3,
};

/* More often than this is this often. */
#define SHIM_SAMPLE_FREQUENCY_MAX 20000

/*
 * shim_profiler_enable_sampling - ask for the sampler
 *
 * Without it shim_profiler_set_sample_mode has no effect.  The first handle that
 * calls it owns mode and frequency, which are SHIM_SAMPLE_NONE and 100 Hz; when
 * it is destroyed the next one does.  Rows M-33, M-34.
 *
 * Returns SHIM_OK, also to those who come later; SHIM_E_INVALIDARG;
 * SHIM_E_CALL_ONLY_FROM_INIT; SHIM_E_PROFILER_DETACHING; SHIM_E_FAIL if no
 * signal is left, the system refuses its handler, or the processor is not an
 * x86-64: elsewhere the program would see its system calls interrupted.
 *
 * Contract: init.
 */
SHIM_API enum shim_result
shim_profiler_enable_sampling(SHIM_IN struct shim_profiler_handle *handle) SHIM_INIT;

/*
 * shim_profiler_set_sample_mode - start, change or (SHIM_SAMPLE_NONE) stop
 *
 * @frequency_hz is per thread, in hits a second.  Rows M-35 to M-38.
 *
 * Returns SHIM_OK; SHIM_E_INVALIDARG if the mode is none of the above or the
 * frequency 0, whoever asks; SHIM_E_FAIL if @handle is not the owner, or the
 * calling thread could be given no timer; SHIM_E_PROFILER_DETACHING.  After a
 * failure everything is as before.
 *
 * Contract: async; blocks signals and takes the lock of the runtime.
 */
SHIM_API enum shim_result
shim_profiler_set_sample_mode(SHIM_IN struct shim_profiler_handle *handle,
			      SHIM_IN uint32_t mode,
			      SHIM_IN uint32_t frequency_hz) SHIM_ASYNC;

/*
 * shim_profiler_get_sample_mode - and may @handle change it?
 *
 * Returns SHIM_OK if it is the owner, SHIM_S_FALSE if it is not: both fill the
 * outputs, with SHIM_SAMPLE_NONE and 0 if nobody has enabled sampling.
 * SHIM_E_INVALIDARG, SHIM_E_PROFILER_DETACHING.  Row M-39.
 *
 * Contract: async.
 */
SHIM_API enum shim_result
shim_profiler_get_sample_mode(SHIM_IN struct shim_profiler_handle *handle,
			      SHIM_OUT_OPT uint32_t *mode,
			      SHIM_OUT_OPT uint32_t *frequency_hz) SHIM_ASYNC;

/*
 * Of the process since it began (a forked child: since the fork), in hits by
 * weight.  What a thread has slept since its last hit is not yet in them.
 */
struct shim_sample_counts {
	uint64_t sent;		/* the timers have expired so often */
	uint64_t received;	/* and so many of these reached a thread, */
	uint64_t signals;	/* by so many signals */
	uint64_t accepted;	/* for which sample_hit was raised */
	uint64_t lost;		/* there was no safe moment for it */
	uint64_t resumed;	/* calls of the system that were gone on with */
	uint64_t timers_failed;	/* threads for which the system had no timer */
};

/* A struct of the same name is there on purpose. */
#ifdef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#endif

/*
 * shim_get_sample_counts - what has become of the samples
 *
 * Returns SHIM_OK; SHIM_E_INVALIDARG; SHIM_E_PROFILER_DETACHING.  Row M-42.
 *
 * Contract: async.
 */
SHIM_API enum shim_result
shim_get_sample_counts(SHIM_OUT struct shim_sample_counts *counts) SHIM_ASYNC;

#ifdef __cplusplus
#pragma GCC diagnostic pop
}
#endif
#endif
