/*
 * hooked_race KIND - sixteen threads call functions for the first time at the same
 * moment, one function after another.  The mapper answers differently each time: enter
 * and leave must get the same answer, and the mapper is called once for each function.
 *
 * hooked_race waits: a thread is in the mapper until another thread, which waits for
 * the mapper's answer, has gone on without it.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <shim/hooks.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#pragma weak shim_profiler_create
#pragma weak shim_profiler_on_method_enter
#pragma weak shim_profiler_on_method_leave
#pragma weak shim_profiler_set_call_instrumentation_filter_callback
#pragma weak shim_profiler_set_event_mask
#pragma weak shim_profiler_set_enter_leave_function_hooks3
#pragma weak shim_profiler_set_enter_leave_function_hooks3_with_info
#pragma weak shim_profiler_set_function_id_mapper

#define QUIETLY __attribute__((no_instrument_function))
#define THREADS 16

/* 256 functions. */
#define EACH4(X, n) X(n##0) X(n##1) X(n##2) X(n##3)
#define EACH16(X, n) EACH4(X, n##0) EACH4(X, n##1) EACH4(X, n##2) EACH4(X, n##3)
#define EACH64(X, n) \
	EACH16(X, n##0) EACH16(X, n##1) EACH16(X, n##2) EACH16(X, n##3)
#define EACH(X) EACH64(X, f0) EACH64(X, f1) EACH64(X, f2) EACH64(X, f3)

static volatile int sink;

#define DEFINE(name)                                                           \
	__attribute__((noinline)) static void name(void)                       \
	{                                                                      \
		sink++;                                                        \
	}
EACH(DEFINE)

#define NAME(name) name,
static void (*const functions[])(void) = { EACH(NAME) };
#define FUNCTIONS ((int)(sizeof(functions) / sizeof(*functions)))

static char kind[32];
static uintptr_t asked;
static int enters, leaves, wrong;

QUIETLY static int is(const char *name)
{
	return strcmp(kind, name) == 0;
}

/* --- hooks --- */

static __thread uintptr_t entered;
static uintptr_t ids[FUNCTIONS + 1];
static __thread int number;	/* of the function that is being called */

QUIETLY static void note_enter(uintptr_t id)
{
	uintptr_t none = 0;

	entered = id;
	__atomic_add_fetch(&enters, 1, __ATOMIC_RELAXED);
	if (!__atomic_compare_exchange_n(&ids[number], &none, id, 0,
					 __ATOMIC_RELAXED, __ATOMIC_RELAXED) &&
	    none != id)
		__atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
}

QUIETLY static void note_leave(uintptr_t id)
{
	__atomic_add_fetch(&leaves, 1, __ATOMIC_RELAXED);
	if (id != entered)
		__atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
}

QUIETLY static void fast_enter(union shim_function_or_client function)
{
	note_enter(function.client);
}

QUIETLY static void fast_leave(union shim_function_or_client function)
{
	note_leave(function.client);
}

QUIETLY static void slow_enter(union shim_function_or_client function,
			       shim_elt_info info)
{
	(void)info;
	note_enter(function.client);
}

QUIETLY static void slow_leave(union shim_function_or_client function,
			       shim_elt_info info)
{
	(void)info;
	note_leave(function.client);
}

QUIETLY static void on_enter(struct shim_profiler *profiler,
			     shim_function function,
			     struct shim_call_context *context)
{
	(void)profiler;
	(void)context;
	note_enter(function);
}

QUIETLY static void on_leave(struct shim_profiler *profiler,
			     shim_function function,
			     struct shim_call_context *context)
{
	(void)profiler;
	(void)context;
	note_leave(function);
}

static sem_t in_mapper, has_gone_on;

QUIETLY static uintptr_t map(shim_function function, int *hook)
{
	uintptr_t id = __atomic_add_fetch(&asked, 1, __ATOMIC_RELAXED);

	(void)function;
	(void)hook;
	if (is("waits") && id == 1) {
		sem_post(&in_mapper);
		sem_wait(&has_gone_on);
	}
	sched_yield();
	return id;
}

/* The filter refuses every other time. */
QUIETLY static enum shim_call_instrumentation_flags
choose(struct shim_profiler *profiler, shim_function function)
{
	(void)profiler;
	(void)function;
	sched_yield();
	return __atomic_add_fetch(&asked, 1, __ATOMIC_RELAXED) % 2 ?
		       (enum shim_call_instrumentation_flags)(
			       SHIM_CALL_INSTRUMENTATION_ENTER |
			       SHIM_CALL_INSTRUMENTATION_LEAVE) :
		       SHIM_CALL_INSTRUMENTATION_NONE;
}

QUIETLY __attribute__((constructor)) static void start(void)
{
	char arguments[4096] = "";
	int file = open("/proc/self/cmdline", O_RDONLY);
	ssize_t size = read(file, arguments, sizeof(arguments) - 1);
	struct shim_profiler_handle *handle;

	close(file);
	if (size > 0)
		strncpy(kind, arguments + strlen(arguments) + 1,
			sizeof(kind) - 1);
	if (!shim_profiler_create)
		return;
	handle = shim_profiler_create(NULL);
	if (is("slow")) {
		shim_profiler_set_event_mask(handle, SHIM_MONITOR_ENTERLEAVE |
						    SHIM_ENABLE_FRAME_INFO);
		shim_profiler_set_enter_leave_function_hooks3_with_info(
			handle, slow_enter, slow_leave, NULL);
	} else if (is("filter")) {
		shim_profiler_set_call_instrumentation_filter_callback(handle,
								       choose);
		shim_profiler_on_method_enter(handle, on_enter);
		shim_profiler_on_method_leave(handle, on_leave);
	} else {
		shim_profiler_set_enter_leave_function_hooks3(handle, fast_enter,
						     fast_leave, NULL);
	}
	if (!is("filter"))
		shim_profiler_set_function_id_mapper(handle, map);
}

/* --- the cases --- */

QUIETLY static void *run(void *barrier)
{
	for (number = 0; number < FUNCTIONS; number++) {
		pthread_barrier_wait(barrier);
		functions[number]();
	}
	return NULL;
}

QUIETLY static void run_together(void)
{
	static pthread_barrier_t barrier;
	pthread_t threads[THREADS];

	pthread_barrier_init(&barrier, NULL, THREADS);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, run, &barrier);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

QUIETLY static void *call_first(void *unused)
{
	functions[0]();
	return unused;
}

QUIETLY static void wait_for_each_other(void)
{
	pthread_t thread;

	sem_init(&in_mapper, 0, 0);
	sem_init(&has_gone_on, 0, 0);
	pthread_create(&thread, NULL, call_first, NULL);
	if (shim_profiler_create)
		sem_wait(&in_mapper);
	functions[0]();
	sem_post(&has_gone_on);
	pthread_join(thread, NULL);
	functions[0]();
}

QUIETLY int main(void)
{
	if (is("waits"))
		wait_for_each_other();
	else
		run_together();
	printf("asked %lu\nenters %d\nleaves %d\nwrong %d\n",
	       (unsigned long)asked, enters, leaves, wrong);
	return 0;
}
