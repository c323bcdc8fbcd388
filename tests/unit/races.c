/*
 * races [CYCLES] - profilers are created and removed, and set callbacks, while
 * threads raise events
 *
 * Without Criterion, because ThreadSanitizer reserves the memory that Criterion
 * uses: scripts/check --nightly runs it with that (-Db_sanitize=thread) and for
 * 10^6 cycles.  Rows M-70 and P-16.
 */
#include "runtime/events.h"
#include "runtime/thread.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS 8

struct shim_profiler {
	int is_there;
};

static struct shim_profiler profilers[2];
static unsigned long heard, heard_gone;
static unsigned long cycles = 2000;
static bool stop;

static void hear(struct shim_profiler *profiler)
{
	__atomic_add_fetch(&heard, 1, __ATOMIC_RELAXED);
	/* The memory may have been reused by now. */
	if (!__atomic_load_n(&profiler->is_there, __ATOMIC_RELAXED))
		__atomic_add_fetch(&heard_gone, 1, __ATOMIC_RELAXED);
}

static void *raise_events(void *unused)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		RAISE(forked);
	return unused;
}

/* Row M-70: the slot and the counter do not change at the same time. */
static void *set_callbacks(void *handle)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		shim_profiler_on_forked(handle, hear);
		shim_profiler_on_forked(handle, NULL);
	}
	return NULL;
}

/* Row P-16: after the wait for the handle, no thread is in its callbacks. */
static void come_and_go(void)
{
	for (unsigned long i = 0; i < cycles; i++) {
		struct shim_profiler_handle *handle;

		__atomic_store_n(&profilers[1].is_there, 1, __ATOMIC_RELAXED);
		handle = shim_profiler_create(&profilers[1]);
		if (!handle)
			abort();
		shim_profiler_on_forked(handle, hear);
		if (i % 2)
			RAISE(forked);
		if (!handle_retire(handle))
			abort();
		while (!handle_wait(handle, 1000))
			;
		__atomic_store_n(&profilers[1].is_there, 0, __ATOMIC_RELAXED);
		handle_free(handle);
	}
}

int main(int argc, char **argv)
{
	pthread_t threads[2 * THREADS];
	struct shim_profiler_handle *stays;

	if (argc > 1)
		cycles = strtoul(argv[1], NULL, 10);
	else if (getenv("RACES_CYCLES"))
		cycles = strtoul(getenv("RACES_CYCLES"), NULL, 10);
	profilers[0].is_there = 1;
	stays = shim_profiler_create(&profilers[0]);
	for (int i = 0; i < 2 * THREADS; i++)
		pthread_create(&threads[i], NULL,
			       i < THREADS ? raise_events : set_callbacks,
			       stays);
	come_and_go();
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (int i = 0; i < 2 * THREADS; i++)
		pthread_join(threads[i], NULL);
	shim_profiler_on_forked(stays, NULL);
	printf("%lu cycles, %lu calls, %lu of them of what had gone\n", cycles,
	       heard, heard_gone);
	/* A count without a callback is harmless, and none may remain. */
	return heard_gone != 0 || heard < cycles / 2 ||
	       events_counts.forked != 0;
}
