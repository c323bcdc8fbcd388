/*
 * A profiler of its own in a program with a task that shares another thread's
 * thread-local data, and therefore shim's state of that thread (row P-17): hooked_raw
 * [slow].
 */
#define _GNU_SOURCE
#include <sched.h>
#include <shim/hooks.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#pragma weak shim_profiler_create
#pragma weak shim_profiler_destroy
#pragma weak shim_profiler_on_method_enter
#pragma weak shim_profiler_on_method_leave
#pragma weak shim_profiler_set_call_instrumentation_filter_callback
#pragma weak shim_profiler_set_event_mask
#pragma weak shim_profiler_set_enter_leave_function_hooks3_with_info

#define QUIETLY __attribute__((no_instrument_function))
#define FLAGS                                                                  \
	(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |    \
	 CLONE_SYSVSEM | CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID)

static struct shim_profiler_handle *handle;
static unsigned long enters, leaves, on_own_stack;
static volatile int sink;
static char stack[262144] __attribute__((aligned(64)));

/* A slow hook has a stack of its own, whichever task calls it. */
QUIETLY static void look_at_stack(void)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	if (here - (uintptr_t)stack < sizeof(stack))
		__atomic_add_fetch(&on_own_stack, 1, __ATOMIC_RELAXED);
}

/* Slow enough for the other task to interrupt it. */
QUIETLY static void count(unsigned long *calls)
{
	__atomic_add_fetch(calls, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < 100; i++)
		sink++;
}

QUIETLY static void on_enter(struct shim_profiler *profiler,
			     shim_function function,
			     struct shim_call_context *context)
{
	(void)profiler, (void)function, (void)context;
	count(&enters);
}

QUIETLY static void on_leave(struct shim_profiler *profiler,
			     shim_function function,
			     struct shim_call_context *context)
{
	(void)profiler, (void)function, (void)context;
	count(&leaves);
}

QUIETLY static enum shim_call_instrumentation_flags
all(struct shim_profiler *profiler, shim_function function)
{
	(void)profiler, (void)function;
	return SHIM_CALL_INSTRUMENTATION_ENTER |
	       SHIM_CALL_INSTRUMENTATION_LEAVE;
}

QUIETLY static void slow_enter(union shim_function_or_client function,
			       shim_elt_info info)
{
	(void)function, (void)info;
	look_at_stack();
	count(&enters);
}

QUIETLY static void slow_leave(union shim_function_or_client function,
			       shim_elt_info info)
{
	(void)function, (void)info;
	look_at_stack();
	count(&leaves);
}

QUIETLY static void set_up(int slow)
{
	if (slow) {
		shim_profiler_set_event_mask(handle, SHIM_MONITOR_ENTERLEAVE |
						    SHIM_ENABLE_FRAME_INFO);
		shim_profiler_set_enter_leave_function_hooks3_with_info(
			handle, slow_enter, slow_leave, NULL);
		return;
	}
	shim_profiler_on_method_enter(handle, on_enter);
	shim_profiler_on_method_leave(handle, on_leave);
	shim_profiler_set_call_instrumentation_filter_callback(handle, all);
}

/* glibc passes main's arguments to constructors. */
QUIETLY __attribute__((constructor)) static void start(int argc, char **argv)
{
	if (!shim_profiler_create)
		return;
	handle = shim_profiler_create(NULL);
	set_up(argc > 1 && strcmp(argv[1], "slow") == 0);
}

static int alive;

static __attribute__((noinline)) void leaf(void)
{
	sink++;
}

static __attribute__((noinline)) void loop(void)
{
	for (int i = 0; i < 20000; i++)
		leaf();
}

static int task(void *argument)
{
	(void)argument;
	loop();
	return 0;
}

QUIETLY int main(void)
{
	alive = 1;
	clone(task, stack + sizeof(stack), FLAGS, NULL, NULL, NULL, &alive);
	loop();
	while (__atomic_load_n(&alive, __ATOMIC_ACQUIRE))
		sched_yield();
	printf("enters %lu leaves %lu on their stack %lu\n", enters, leaves,
	       on_own_stack);
	alarm(20);
	if (shim_profiler_destroy)
		printf("destroy %d\n", shim_profiler_destroy(handle));
	return 0;
}
