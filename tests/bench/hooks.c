/*
 * A program with profilers of its own, to measure what calling them costs:
 *
 *     hooks MODE[+tail][+thrown] CALLS THREADS
 *
 * prints nanoseconds of processor time per call.  Compiled twice, with and without
 * instrumentation.
 */
#include <pthread.h>
#include <shim/contexts.h>
#include <shim/hooks.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#pragma weak shim_profiler_create
#pragma weak shim_profiler_set_event_mask
#pragma weak shim_profiler_set_enter_leave_function_hooks
#pragma weak shim_profiler_set_enter_leave_function_hooks2
#pragma weak shim_profiler_set_enter_leave_function_hooks3
#pragma weak shim_profiler_set_enter_leave_function_hooks3_with_info
#pragma weak shim_profiler_set_function_id_mapper
#pragma weak shim_get_function_enter3_info
#pragma weak shim_profiler_on_method_enter
#pragma weak shim_profiler_on_method_leave
#pragma weak shim_profiler_set_call_instrumentation_filter_callback
#pragma weak shim_profiler_enable_call_context_introspection
#pragma weak shim_call_context_get_argument
#pragma weak shim_call_context_free_buffer
#pragma weak shim_get_function_leave3_info

#define QUIETLY __attribute__((no_instrument_function))

static __thread unsigned long enters, leaves;

/* The profilers also have tail-call hooks. */
static int tells_tailcalls;

QUIETLY static void fast_enter(union shim_function_or_client function)
{
	(void)function;
	enters++;
}

QUIETLY static void fast_leave(union shim_function_or_client function)
{
	(void)function;
	leaves++;
}

QUIETLY static void fast_tailcall(union shim_function_or_client function)
{
	(void)function;
	leaves++;
}

QUIETLY static void slow_enter(union shim_function_or_client function,
			       shim_elt_info info)
{
	(void)function;
	(void)info;
	enters++;
}

QUIETLY static void slow_leave(union shim_function_or_client function,
			       shim_elt_info info)
{
	(void)function;
	(void)info;
	leaves++;
}

QUIETLY static void slow_tailcall(union shim_function_or_client function,
				  shim_elt_info info)
{
	(void)function;
	(void)info;
	leaves++;
}

QUIETLY static void asking_enter(union shim_function_or_client function,
				 shim_elt_info info)
{
	shim_frame_info frame;

	if (shim_get_function_enter3_info(function.function, info, &frame, NULL,
					  NULL) == SHIM_OK)
		enters++;
}

static __thread volatile int seen;

QUIETLY static void reading_enter(union shim_function_or_client function,
				  shim_elt_info info)
{
	struct shim_argument_info arguments[2];
	uint32_t size = sizeof(arguments);

	if (shim_get_function_enter3_info(function.function, info, NULL, &size,
					  arguments) == SHIM_OK &&
	    arguments->ranges[0].start) {
		seen = *(const int *)arguments->ranges[0].start;
		enters++;
	}
}

QUIETLY static void asking_leave(union shim_function_or_client function,
				 shim_elt_info info)
{
	struct shim_argument_range result;
	shim_frame_info frame;

	if (shim_get_function_leave3_info(function.function, info, &frame,
					  &result) == SHIM_OK &&
	    result.start)
		leaves += *(const unsigned *)result.start & 1;
}

QUIETLY static void enter2(shim_function function, uintptr_t client,
			   shim_frame_info frame,
			   struct shim_argument_info *arguments)
{
	(void)function;
	(void)client;
	(void)frame;
	(void)arguments;
	enters++;
}

QUIETLY static void leave2(shim_function function, uintptr_t client,
			   shim_frame_info frame,
			   struct shim_argument_range *result)
{
	(void)function;
	(void)client;
	(void)frame;
	(void)result;
	leaves++;
}

QUIETLY static void enter1(shim_function function)
{
	(void)function;
	enters++;
}

QUIETLY static void leave1(shim_function function)
{
	(void)function;
	leaves++;
}

QUIETLY static uintptr_t exclude(shim_function function, int *hook)
{
	*hook = 0;
	return function;
}

QUIETLY static uintptr_t include(shim_function function, int *hook)
{
	(void)hook;
	return function + 1;
}

/* --- method_* events, and contexts --- */

static int asks;

QUIETLY static void entered(struct shim_profiler *profiler,
			    shim_function function,
			    struct shim_call_context *context)
{
	int *value;

	(void)profiler;
	(void)function;
	enters++;
	if (!asks)
		return;
	value = shim_call_context_get_argument(context, 0);
	if (value)
		enters += (unsigned long)*value & 1;
	shim_call_context_free_buffer(value);
}

QUIETLY static void left(struct shim_profiler *profiler, shim_function function,
			 struct shim_call_context *context)
{
	(void)profiler;
	(void)function;
	(void)context;
	leaves++;
}

QUIETLY static enum shim_call_instrumentation_flags
choose(struct shim_profiler *profiler, shim_function function)
{
	(void)profiler;
	(void)function;
	return (enum shim_call_instrumentation_flags)(
		SHIM_CALL_INSTRUMENTATION_ENTER |
		SHIM_CALL_INSTRUMENTATION_LEAVE |
		SHIM_CALL_INSTRUMENTATION_ENTER_CONTEXT |
		SHIM_CALL_INSTRUMENTATION_LEAVE_CONTEXT);
}

QUIETLY static void set_methods(const char *how)
{
	struct shim_profiler_handle *handle = shim_profiler_create(NULL);

	shim_profiler_on_method_enter(handle, entered);
	shim_profiler_on_method_leave(handle, left);
	shim_profiler_set_call_instrumentation_filter_callback(handle, choose);
	asks = strcmp(how, "s-asking") == 0;
	if (strcmp(how, "s") != 0)
		shim_profiler_enable_call_context_introspection(handle);
}

QUIETLY static char **arguments_of(int *count)
{
	static char text[4096], *found[8];
	FILE *file = fopen("/proc/self/cmdline", "r");
	size_t size = file ? fread(text, 1, sizeof(text) - 1, file) : 0;

	*count = 0;
	for (size_t i = 0; i < size && *count < 8; i += strlen(text + i) + 1)
		found[(*count)++] = text + i;
	if (file)
		fclose(file);
	return found;
}

QUIETLY static void set_slow(shim_function_hook_with_info enter,
			     shim_function_hook_with_info leave, uint32_t mask)
{
	struct shim_profiler_handle *handle = shim_profiler_create(NULL);

	shim_profiler_set_event_mask(handle, SHIM_MONITOR_ENTERLEAVE | mask);
	shim_profiler_set_enter_leave_function_hooks3_with_info(
		handle, enter, leave, tells_tailcalls ? slow_tailcall : NULL);
}

QUIETLY static struct shim_profiler_handle *
set_fast_hooks(shim_function_hook enter, shim_function_hook leave)
{
	struct shim_profiler_handle *handle = shim_profiler_create(NULL);

	shim_profiler_set_enter_leave_function_hooks3(
		handle, enter, leave, tells_tailcalls ? fast_tailcall : NULL);
	return handle;
}

QUIETLY static struct shim_profiler_handle *set_fast(void)
{
	return set_fast_hooks(fast_enter, fast_leave);
}

/* Sets one of the two hooks alone, to measure each. */
QUIETLY static void set_alone(const char *mode)
{
	if (strcmp(mode, "fast-enter") == 0)
		set_fast_hooks(fast_enter, NULL);
	if (strcmp(mode, "fast-leave") == 0)
		set_fast_hooks(NULL, fast_leave);
	if (strcmp(mode, "reading-enter") == 0)
		set_slow(reading_enter, NULL, SHIM_ENABLE_FUNCTION_ARGS);
	if (strcmp(mode, "result-leave") == 0)
		set_slow(NULL, asking_leave, SHIM_ENABLE_FUNCTION_RETVAL);
	if (strcmp(mode, "reading-both") == 0)
		set_slow(reading_enter, asking_leave,
			 SHIM_ENABLE_FUNCTION_ARGS |
				 SHIM_ENABLE_FUNCTION_RETVAL);
}

QUIETLY __attribute__((constructor)) static void start(void)
{
	int count;
	char **arguments = arguments_of(&count);
	static char mode[64];

	strncpy(mode, count > 1 ? arguments[1] : "", sizeof(mode) - 1);
	tells_tailcalls = strstr(mode, "+tail") != NULL;
	if (strchr(mode, '+'))
		*strchr(mode, '+') = '\0';
	if (!shim_profiler_create)
		return;
	if (strcmp(mode, "fast") == 0)
		set_fast();
	set_alone(mode);
	if (strcmp(mode, "two-fast") == 0)
		set_fast(), set_fast();
	if (strcmp(mode, "slow") == 0)
		set_slow(slow_enter, slow_leave, SHIM_ENABLE_FRAME_INFO);
	if (strcmp(mode, "slow-asking") == 0)
		set_slow(asking_enter, slow_leave, SHIM_ENABLE_FRAME_INFO);
	if (strcmp(mode, "slow-keeping") == 0)
		set_slow(slow_enter, slow_leave, SHIM_ENABLE_FUNCTION_ARGS);
	if (strcmp(mode, "slow-reading") == 0)
		set_slow(reading_enter, slow_leave, SHIM_ENABLE_FUNCTION_ARGS);
	if (strcmp(mode, "slow-inspecting") == 0)
		set_slow(slow_enter, slow_leave, SHIM_ENABLE_FUNCTION_RETVAL);
	if (strcmp(mode, "slow-result") == 0)
		set_slow(slow_enter, asking_leave, SHIM_ENABLE_FUNCTION_RETVAL);
	if (strcmp(mode, "elt2") == 0)
		shim_profiler_set_enter_leave_function_hooks2(
			shim_profiler_create(NULL), enter2, leave2, NULL);
	if (strcmp(mode, "elt1") == 0)
		shim_profiler_set_enter_leave_function_hooks(
			shim_profiler_create(NULL), enter1, leave1, NULL);
	if (strncmp(mode, "method", 6) == 0)
		set_methods(mode + 6);
	if (strcmp(mode, "mapped") == 0)
		shim_profiler_set_function_id_mapper(set_fast(), include);
	if (strcmp(mode, "excluded") == 0)
		shim_profiler_set_function_id_mapper(set_fast(), exclude);
}

static __thread volatile int sink;

__attribute__((noinline)) static int c(int i)
{
	sink += i;
	return i;
}

__attribute__((noinline)) static int b(int i)
{
	sink ^= c(i);
	return i;
}

__attribute__((noinline)) static int a(int i)
{
	sink -= b(i);
	return i;
}

static long loops;

QUIETLY static void *run(void *unused)
{
	for (long i = 0; i < loops; i++)
		a((int)i);
	return unused;
}

static volatile int cleaned;

QUIETLY static void clean(int *value)
{
	cleaned += *value;
}

/* Unwinds its own frame, like an exception. */
static void *exit_inside(void *unused)
{
	__attribute__((cleanup(clean))) int value = 1;

	pthread_exit(unused);
}

QUIETLY int main(int count, char **arguments)
{
	int threads = count > 3 ? atoi(arguments[3]) : 1;
	pthread_t thread[64];
	struct timespec before, after;
	double time_ns;

	if (count > 1 && strstr(arguments[1], "+thrown")) {
		pthread_create(&thread[1], NULL, exit_inside, NULL);
		pthread_join(thread[1], NULL);
	}
	/* The first call does extra work that is not part of the cost of a
	 * call. */
	loops = 1;
	run(NULL);
	loops = (count > 2 ? atol(arguments[2]) : 30000000) / 3;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
	for (int i = 1; i < threads && i < 64; i++)
		pthread_create(&thread[i], NULL, run, NULL);
	run(NULL);
	for (int i = 1; i < threads && i < 64; i++)
		pthread_join(thread[i], NULL);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
	time_ns = (double)(after.tv_sec - before.tv_sec) * 1e9 +
		  (double)(after.tv_nsec - before.tv_nsec);
	printf("%.3f\n", time_ns / (double)loops / 3 / threads);
}
