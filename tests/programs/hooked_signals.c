/*
 * hooked_signals KIND HOW - signal handlers that interrupt a slow hook: calls of the
 * handler belong to the program, calls of the hook do not (rows E-36, E-37).
 *
 * HOW: inside, on another stack below or above, jumping out; or a storm, in which all
 * calls of the handler are counted.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <shim/hooks.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#pragma weak shim_profiler_create
#pragma weak shim_profiler_set_event_mask
#pragma weak shim_profiler_set_enter_leave_function_hooks
#pragma weak shim_profiler_set_enter_leave_function_hooks2
#pragma weak shim_profiler_set_enter_leave_function_hooks3
#pragma weak shim_profiler_set_enter_leave_function_hooks3_with_info
#pragma weak shim_get_function_enter3_info
#pragma weak shim_get_function_leave3_info

#define QUIETLY __attribute__((no_instrument_function))
#define CALLED	__attribute__((noinline, noclone))

CALLED static int work(int value);
CALLED static int handled(int value);
CALLED static int deeper(int value);
CALLED static int by_hook(int value);

static char kind[16], how[16];
static char text[1 << 16];
static size_t used;

QUIETLY static int is(const char *name)
{
	return strcmp(kind, name) == 0;
}

QUIETLY static int goes(const char *name)
{
	return strcmp(how, name) == 0;
}

QUIETLY static const char *name_of(shim_function function)
{
	return function == (shim_function)work	  ? "work" :
	       function == (shim_function)handled ? "handled" :
	       function == (shim_function)deeper  ? "deeper" :
	       function == (shim_function)by_hook ? "by_hook" :
						    "?";
}

QUIETLY static void note(char what, shim_function function, int value)
{
	int size;

	if (goes("storm") || used + 32 > sizeof(text))
		return;
	size = snprintf(text + used, 32, "%c%s(%d) ", what, name_of(function),
			value);
	used += (size_t)size;
}

/* --- hooks --- */

static long enters, leaves, calls;

/* The only argument of the function, as the enter hook sees it. */
QUIETLY static int argument_of(shim_function function, shim_elt_info info)
{
	struct shim_argument_info arguments[2];
	uint32_t size = sizeof(arguments);

	if (shim_get_function_enter3_info(function, info, NULL, &size,
					  arguments) != SHIM_OK ||
	    !arguments->ranges[0].start)
		return -1;
	return *(const int *)arguments->ranges[0].start;
}

QUIETLY static int result_of(shim_function function, shim_elt_info info)
{
	struct shim_argument_range range;
	shim_frame_info frame;

	if (shim_get_function_leave3_info(function, info, &frame, &range) !=
		    SHIM_OK || !range.start)
		return -1;
	return *(const int *)range.start;
}

/* The first hook calls of these functions are interrupted, and the handler calls
 * functions. */
QUIETLY static void come_between(shim_function function)
{
	static int works, handles;

	if (goes("storm")) {
		for (volatile int i = 0; i < 50; i++)
			;
		return;
	}
	if (function == (shim_function)work && works++ < 2) {
		raise(SIGUSR1);
		by_hook(1);
	}
	if (function == (shim_function)handled && handles++ < 1) {
		raise(SIGUSR2);
		by_hook(2);
	}
}

QUIETLY static void on_enter(shim_function function, int value)
{
	if (function == (shim_function)handled)
		enters++;
	note('E', function, value);
	come_between(function);
}

QUIETLY static void on_leave(shim_function function, int value)
{
	if (function == (shim_function)handled)
		leaves++;
	note('L', function, value);
	come_between(function);
}

/* The values of this hook do not change when nested hooks get others. */
QUIETLY static void slow_enter(union shim_function_or_client function,
			       shim_elt_info info)
{
	int before = argument_of(function.function, info), after;

	errno = ERANGE;
	on_enter(function.function, before);
	after = argument_of(function.function, info);
	if (after != before)
		note('!', function.function, after);
}

QUIETLY static void slow_leave(union shim_function_or_client function,
			       shim_elt_info info)
{
	int before = result_of(function.function, info), after;

	on_leave(function.function, before);
	after = result_of(function.function, info);
	if (after != before)
		note('!', function.function, after);
}

QUIETLY static int first_of(const struct shim_argument_info *arguments)
{
	return arguments && arguments->ranges[0].start ?
		       *(const int *)arguments->ranges[0].start :
		       -1;
}

QUIETLY static void enter2(shim_function function, uintptr_t client,
			   shim_frame_info frame,
			   struct shim_argument_info *arguments)
{
	int before = first_of(arguments);

	(void)client;
	(void)frame;
	on_enter(function, before);
	if (first_of(arguments) != before)
		note('!', function, first_of(arguments));
}

QUIETLY static void leave2(shim_function function, uintptr_t client,
			   shim_frame_info frame,
			   struct shim_argument_range *result)
{
	(void)client;
	(void)frame;
	on_leave(function, result && result->start ? *(int *)result->start :
						     -1);
}

QUIETLY static void enter1(shim_function function)
{
	on_enter(function, 0);
}

QUIETLY static void leave1(shim_function function)
{
	on_leave(function, 0);
}

QUIETLY static void other_enter(union shim_function_or_client function)
{
	(void)function;
}

QUIETLY __attribute__((constructor)) static void start(void)
{
	const uint32_t mask = SHIM_MONITOR_ENTERLEAVE |
			      SHIM_ENABLE_FUNCTION_ARGS |
			      SHIM_ENABLE_FUNCTION_RETVAL;
	char arguments[4096] = "", *at = arguments;
	int file = open("/proc/self/cmdline", O_RDONLY);
	ssize_t size = read(file, arguments, sizeof(arguments) - 1);
	struct shim_profiler_handle *handle;

	close(file);
	if (size <= 0)
		return;
	at += strlen(at) + 1;
	strncpy(kind, at, sizeof(kind) - 1);
	at += strlen(at) + 1;
	strncpy(how, at, sizeof(how) - 1);
	if (!shim_profiler_create)
		return;
	handle = shim_profiler_create(NULL);
	shim_profiler_set_event_mask(handle, mask);
	if (is("slow") || is("two"))
		shim_profiler_set_enter_leave_function_hooks3_with_info(
			handle, slow_enter, slow_leave, NULL);
	if (is("two"))
		shim_profiler_set_enter_leave_function_hooks3(shim_profiler_create(NULL),
						     other_enter, NULL, NULL);
	if (is("elt2"))
		shim_profiler_set_enter_leave_function_hooks2(handle, enter2, leave2,
						     NULL);
	if (is("elt1"))
		shim_profiler_set_enter_leave_function_hooks(handle, enter1, leave1,
						    NULL);
}

/* --- the cases --- */

static volatile int sink;

CALLED static int work(int value)
{
	sink += value;
	return value + 1;
}

CALLED static int handled(int value)
{
	sink ^= value;
	return value + 2;
}

CALLED static int deeper(int value)
{
	sink -= value;
	return value + 3;
}

CALLED static int by_hook(int value)
{
	sink += value;
	return value;
}

static sigjmp_buf out;
static int jumped;

QUIETLY static void on_usr1(int signal)
{
	(void)signal;
	calls++;
	handled((int)calls);
	if (goes("jump") && !jumped++)
		siglongjmp(out, 1);
}

QUIETLY static void on_usr2(int signal)
{
	(void)signal;
	deeper(40);
}

QUIETLY static void handle_on(void *stack, size_t size)
{
	struct sigaction action = { .sa_handler = on_usr1 };
	stack_t other = { .ss_sp = stack, .ss_size = size };

	if (stack)
		sigaltstack(&other, NULL);
	action.sa_flags = SA_RESTART | (stack ? SA_ONSTACK : 0);
	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGALRM, &action, NULL);
	action.sa_handler = on_usr2;
	sigaction(SIGUSR2, &action, NULL);
}

QUIETLY static void storm(void)
{
	struct itimerval every = { { 0, 100 }, { 0, 100 } };

	setitimer(ITIMER_REAL, &every, NULL);
	while (calls < 5000)
		work(1);
	every = (struct itimerval){ { 0, 0 }, { 0, 0 } };
	setitimer(ITIMER_REAL, &every, NULL);
}

QUIETLY int main(void)
{
	static char below[65536];
	char above[65536];

	handle_on(goes("below") ? below : goes("above") ? above : NULL,
		  sizeof(above));
	if (goes("storm")) {
		storm();
		printf("calls %ld\nenters %ld\nleaves %ld\n", calls, enters,
		       leaves);
		return 0;
	}
	if (!sigsetjmp(out, 1))
		work(10);
	work(20);
	work(30);
	printf("log %.*s\n", (int)used, text);
	return 0;
}
