/*
 * Two threads that call without end, each function in a phase of its own.  A byte on
 * standard input begins the next phase; the answer comes when both threads are in it
 * and have made calls there.  At the end it prints: thread, function, calls.  With an
 * argument, no input is needed: the program stops its trace before the third phase and
 * restarts it before the fifth, and the threads never pause.
 */
#include <pthread.h>
#include <shim/trace.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PHASES	5
#define THREADS 2

#define OUTSIDE __attribute__((no_instrument_function))
#define PHASE(name) \
	__attribute__((noinline)) static void name(void) { work++; }

static volatile unsigned long work;

PHASE(first)
PHASE(second)
PHASE(third)
PHASE(fourth)
PHASE(fifth)

static void (*const functions[PHASES])(void) = { first, second, third, fourth,
						 fifth };
static const char *const names[PHASES] = { "first", "second", "third",
					   "fourth", "fifth" };
static int phase;
static bool is_alone;
static struct {
	long tid;
	unsigned long calls[PHASES];
} threads[THREADS];

OUTSIDE static void *thread(void *argument)
{
	int self = (int)(long)argument, now;

	threads[self].tid = syscall(SYS_gettid);
	while ((now = __atomic_load_n(&phase, __ATOMIC_ACQUIRE)) < PHASES) {
		for (int i = 0; i < 100; i++)
			functions[now]();
		__atomic_add_fetch(&threads[self].calls[now], 100,
				   __ATOMIC_RELEASE);
		if (!is_alone && threads[self].calls[now] > 1000)
			nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
	}
	return NULL;
}

/* Waits until both threads have reached phase @now, and so have left the one before. */
OUTSIDE static void wait_for(int now)
{
	for (int i = 0; i < THREADS; i++)
		while (__atomic_load_n(&threads[i].calls[now],
				       __ATOMIC_ACQUIRE) < 1000)
			usleep(1000);
}

/* Returns false at the end of the input. */
OUTSIDE static bool may_begin(int now)
{
	char byte;

	if (is_alone && now == 2)
		shim_trace_stop();
	if (is_alone && now == 4)
		shim_trace_start();
	return is_alone || now == 0 || read(0, &byte, 1) == 1;
}

OUTSIDE int main(int argc, char **argv)
{
	pthread_t ids[THREADS];

	(void)argv;
	is_alone = argc > 1;
	for (long i = 0; i < THREADS; i++)
		pthread_create(&ids[i], NULL, thread, (void *)i);
	for (int now = 0; now < PHASES; now++) {
		if (!may_begin(now))
			return 1;
		__atomic_store_n(&phase, now, __ATOMIC_RELEASE);
		wait_for(now);
		if (!is_alone && write(1, "x", 1) != 1)
			return 1;
	}
	if (!may_begin(PHASES))
		return 1;
	__atomic_store_n(&phase, PHASES, __ATOMIC_RELEASE);
	for (int i = 0; i < THREADS; i++)
		pthread_join(ids[i], NULL);
	for (int i = 0; i < THREADS; i++)
		for (int now = 0; now < PHASES; now++)
			printf("\n%ld %s %lu", threads[i].tid, names[now],
			       threads[i].calls[now]);
	return 0;
}
