/*
 * races [CYCLES] - profilers are created and removed, and set callbacks, while
 * threads raise events; threads ask at once for the mapper's answers
 *
 * Without Criterion, because ThreadSanitizer reserves the memory that Criterion
 * uses: scripts/check --nightly runs it with that (-Db_sanitize=thread) and for
 * 10^6 cycles.  Rows M-70, P-16 and E-44.
 */
#include "dispatch/filter_cache.h"
#include "runtime/events.h"
#include "runtime/thread.h"

#include <pthread.h>
#include <sched.h>
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

/* --- row E-44: all threads get one answer --- */

#define FUNCTIONS 3000

static uintptr_t asked[FUNCTIONS], answers[THREADS][FUNCTIONS];

static uintptr_t map(shim_function function, int *hook)
{
	*hook = 1;
	sched_yield();
	return 2 * function + __atomic_add_fetch(&asked[function / 16 - 1], 1,
						 __ATOMIC_RELAXED) %
				      2;
}

static void *ask_for_answers(void *number)
{
	uintptr_t *of_thread = answers[(long)number];
	struct thread *self = thread_get();

	for (shim_function i = 0; i < FUNCTIONS; i++) {
		const struct filter_answer *answer = filter_cache_get(
			self, 16 * (i + 1));

		of_thread[i] = answer ? answer->client[0] : 0;
	}
	return NULL;
}

static unsigned count_wrong_answers(void)
{
	pthread_t threads[THREADS];
	unsigned wrong = 0;

	for (long i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, ask_for_answers, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (uintptr_t i = 0; i < FUNCTIONS; i++) {
		if (answers[0][i] / 2 != 16 * (i + 1))
			wrong++;
		for (int j = 1; j < THREADS; j++)
			wrong += answers[j][i] != answers[0][i];
	}
	return wrong;
}

int main(int argc, char **argv)
{
	pthread_t threads[2 * THREADS];
	struct shim_profiler_handle *stays;
	unsigned wrong;

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
	shim_profiler_set_function_id_mapper(stays, map);
	wrong = count_wrong_answers();
	printf("%u wrong answers for %d functions\n", wrong, FUNCTIONS);
	/* A count without a callback is harmless, and none may remain. */
	return wrong != 0 || heard_gone != 0 || heard < cycles / 2 ||
	       events_counts.forked != 0;
}
