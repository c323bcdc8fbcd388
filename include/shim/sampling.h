/*
 * Sampling: interrupts the program's threads many times a second.
 *
 * A profiler enables sampling in its init function, sets a mode, and gets
 * sample_hit events (<shim/events.def>) on the interrupted threads.  One
 * sampler serves all profilers.  The first profiler that enabled it sets mode
 * and frequency; all profilers get the hits.
 *
 * Each thread has a timer of its own, which sends the signal that libc keeps
 * for setuid(): all signals that a program can use stay its own.  A system
 * call that the signal interrupts continues; none fails with EINTR because of
 * shim.  A thread that sleeps is woken rarely: at most log2(N) times while N
 * samples would be due.
 *
 * Example: count samples of the program's processor time, 1000 a second.
 *
 *     #include <shim/sampling.h>
 *
 *     static uint64_t samples;
 *
 *     static void hit(struct shim_profiler *profiler, uintptr_t ip,
 *                     const void *context, uint32_t weight)
 *     {
 *             (void)profiler, (void)ip, (void)context;
 *             __atomic_add_fetch(&samples, weight, __ATOMIC_RELAXED);
 *     }
 *
 *     SHIM_PROFILER_MODULE(samples)
 *     {
 *             struct shim_profiler_handle *handle = shim_profiler_create(NULL);
 *
 *             shim_profiler_on_sample_hit(handle, hit);
 *             if (shim_profiler_enable_sampling(handle) != SHIM_OK)
 *                     return SHIM_E_FAIL;
 *             return shim_profiler_set_sample_mode(handle, SHIM_SAMPLE_PROCESS,
 *                                                  1000);
 *     }
 */
#ifndef SHIM_SAMPLING_H
#define SHIM_SAMPLING_H

#include <shim/profiler.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The time that a timer measures.
 *
 * PROCESS and THREAD: the processor time of the thread.  With PROCESS the whole
 * program gets @frequency_hz hits per second of its processor time.  The weight
 * of a hit is the number of periods of that time since the last one: mostly
 * one, and more after the thread has slept or waited for a processor.  The time
 * of the callbacks is not part of it.  (The
 * kernel checks timers of processor time at its own ticks only, mostly 250 a
 * second.  A higher frequency has a second timer, which runs while the thread
 * runs.)
 *
 * REAL: real time, also while a thread sleeps.  A sleep is one hit, at its end;
 * its weight is the length of the sleep in periods.
 *
 * NONE, PROCESS and REAL are Mono's MonoProfilerSampleMode.
 */
enum shim_sample_mode {
	SHIM_SAMPLE_NONE = 0,
	SHIM_SAMPLE_PROCESS = 1,
	SHIM_SAMPLE_REAL = 2,
	SHIM_SAMPLE_THREAD = 3,
};

/* Hz; higher rates are clamped to this one. */
#define SHIM_SAMPLE_FREQUENCY_MAX 20000

/*
 * shim_profiler_enable_sampling - enable the sampler
 *
 * Without it shim_profiler_set_sample_mode has no effect.  The first handle
 * that calls it owns mode and frequency, which are SHIM_SAMPLE_NONE and 100 Hz;
 * when that handle is destroyed, the next one owns them.
 *
 * Returns SHIM_OK, also if sampling was enabled; SHIM_E_INVALIDARG for a wrong
 * @handle; SHIM_E_CALL_ONLY_FROM_INIT; SHIM_E_PROFILER_DETACHING; SHIM_E_FAIL
 * if no signal is free, the kernel refuses the handler, or the processor is not
 * an x86-64 (on others the program would see interrupted system calls).
 *
 * Contract: init.  CLR: none.  Mono: mono_profiler_enable_sampling.
 */
SHIM_API enum shim_result shim_profiler_enable_sampling(
	SHIM_IN struct shim_profiler_handle *handle) SHIM_INIT;

/*
 * shim_profiler_set_sample_mode - start, change or (SHIM_SAMPLE_NONE) stop sampling
 *
 * @frequency_hz is in hits per second, for each thread.
 *
 * Returns SHIM_OK; SHIM_E_INVALIDARG if @mode is unknown or @frequency_hz is 0,
 * for any handle; SHIM_E_FAIL if @handle is not the owner, or the calling
 * thread got no timer; SHIM_E_PROFILER_DETACHING.  A failure changes nothing.
 *
 * Contract: async; blocks signals and takes the lock of the runtime.  CLR:
 * none.  Mono: mono_profiler_set_sample_mode.
 */
SHIM_API enum shim_result
shim_profiler_set_sample_mode(SHIM_IN struct shim_profiler_handle *handle,
			      SHIM_IN uint32_t mode,
			      SHIM_IN uint32_t frequency_hz) SHIM_ASYNC;

/*
 * shim_profiler_get_sample_mode - the mode, and whether @handle may change it
 *
 * Returns SHIM_OK if @handle is the owner, SHIM_S_FALSE if it is not.  Both
 * fill the outputs, with SHIM_SAMPLE_NONE and 0 if sampling is not enabled.
 * SHIM_E_INVALIDARG for a wrong @handle; SHIM_E_PROFILER_DETACHING.
 *
 * Contract: async.  CLR: none.  Mono: mono_profiler_get_sample_mode.
 */
SHIM_API enum shim_result
shim_profiler_get_sample_mode(SHIM_IN struct shim_profiler_handle *handle,
			      SHIM_OUT_OPT uint32_t *mode,
			      SHIM_OUT_OPT uint32_t *frequency_hz) SHIM_ASYNC;

/*
 * Counts of the process since its start (of a fork child: since the fork), in
 * hits by weight.  The time that a thread has slept since its last hit is not
 * included yet.
 */
struct shim_sample_counts {
	uint64_t sent;		/* expirations of the timers */
	uint64_t received;	/* expirations that reached a thread */
	uint64_t signals;	/* signals that brought @received */
	uint64_t accepted;	/* expirations with a sample_hit */
	uint64_t lost;		/* expirations without a safe moment for one */
	uint64_t resumed;	/* system calls that were continued */
	uint64_t timers_failed; /* threads that got no timer */
};

/* The function and the struct share their name, as stat(2) does. */
#ifdef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#endif

/*
 * shim_get_sample_counts - how many samples were taken and lost
 *
 * Returns SHIM_OK; SHIM_E_INVALIDARG for NULL; SHIM_E_PROFILER_DETACHING.
 *
 * Contract: async.  No counterpart.
 */
SHIM_API enum shim_result
shim_get_sample_counts(SHIM_OUT struct shim_sample_counts *counts) SHIM_ASYNC;

#ifdef __cplusplus
#pragma GCC diagnostic pop
}
#endif
#endif
