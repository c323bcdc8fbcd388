/*
 * A program with profilers of its own (row M-1): hooked CASE.  Each case sets
 * some up in a constructor, runs the same calls, and prints what the hooks saw;
 * tests/whole/hooks.py knows what that must be.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <shim/hooks.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#pragma weak shim_profiler_create
#pragma weak shim_profiler_on_thread_started
#pragma weak shim_profiler_on_method_enter
#pragma weak shim_profiler_on_method_leave
#pragma weak shim_profiler_set_call_instrumentation_filter_callback
#pragma weak shim_filters_invalidate
#pragma weak shim_set_event_mask
#pragma weak shim_set_enter_leave_function_hooks
#pragma weak shim_set_enter_leave_function_hooks2
#pragma weak shim_set_enter_leave_function_hooks3
#pragma weak shim_set_enter_leave_function_hooks3_with_info
#pragma weak shim_set_function_id_mapper
#pragma weak shim_set_function_id_mapper2
#pragma weak shim_get_function_enter3_info
#pragma weak shim_get_function_leave3_info
#pragma weak shim_get_function_tailcall3_info
#pragma weak shim_profiler_destroy

#define QUIETLY __attribute__((no_instrument_function))
#define CALLED	__attribute__((noinline, noclone))

CALLED static void outer(int n);
CALLED static void inner(void);
CALLED static void last(void);
CALLED static int hop(int n);
CALLED static int land(int n);

static const char *wanted = "";	/* the case */

/* --- the log --- */

static char text[1 << 16];
static size_t used;

QUIETLY static const char *name_of(uintptr_t function)
{
	if (function == (uintptr_t)outer)
		return "outer";
	if (function == (uintptr_t)inner)
		return "inner";
	if (function == (uintptr_t)last)
		return "last";
	if (function == (uintptr_t)hop)
		return "hop";
	if (function == (uintptr_t)land)
		return "land";
	return "?";
}

static int right_ids;

QUIETLY static void note(char what, uintptr_t function)
{
	const char *name = name_of(function);

	if (wanted[0] == 'm' && strcmp(wanted, "mapper-threads") == 0) {
		__atomic_add_fetch(&right_ids, function == (uintptr_t)last,
				   __ATOMIC_RELAXED);
		return;
	}
	if (used + 16 > sizeof(text))
		abort();
	text[used++] = what;
	while (*name)
		text[used++] = *name++;
	text[used++] = ' ';
}

QUIETLY static void note_more(const char *what)
{
	while (*what && used < sizeof(text))
		text[used++] = *what++;
	text[used++] = ' ';
}

/* --- hooks --- */

QUIETLY static int is(const char *name)
{
	return strcmp(wanted, name) == 0;
}

static void *direct_return;

QUIETLY static void fast_enter(union shim_function_or_client function)
{
	direct_return = __builtin_return_address(0);
	note('E', function.function);
}

QUIETLY static void fast_leave(union shim_function_or_client function)
{
	note('L', function.function);
}

QUIETLY static void other_enter(union shim_function_or_client function)
{
	note('e', function.function);
}

QUIETLY static void other_leave(union shim_function_or_client function)
{
	note('l', function.function);
}

static shim_elt_info stale;
static int calls_itself;
static uintptr_t enter_frames[8];
static unsigned enter_depth;

QUIETLY static int is_on_stack(shim_elt_info info)
{
	char here;
	intptr_t distance = (intptr_t)info - (intptr_t)&here;

	return distance > -4096 && distance < 65536;
}

QUIETLY static void ask(uintptr_t function, shim_elt_info info)
{
	shim_frame_info frame = 0;
	struct shim_argument_range range;

	if (!is_on_stack(info))
		note_more("not-on-stack");
	if (shim_get_function_enter3_info(function, info, &frame, NULL, NULL) !=
		    SHIM_OK || frame == 0)
		note_more("no-frame");
	if (shim_get_function_enter3_info(0, info, &frame, NULL, NULL) !=
	    SHIM_E_INVALIDARG)
		note_more("took-0");
	if (shim_get_function_enter3_info(function, info, NULL, NULL, NULL) !=
	    SHIM_E_INVALIDARG)
		note_more("took-no-frame");
	if (shim_get_function_leave3_info(function, info, &frame, &range) !=
	    SHIM_E_INVALIDARG)
		note_more("took-enters-info");
	if (shim_get_function_tailcall3_info(function, info, &frame) !=
	    SHIM_E_INVALIDARG)
		note_more("took-it-for-tailcall");
	if (stale && stale != info &&
	    shim_get_function_enter3_info(function, stale, &frame, NULL,
					  NULL) != SHIM_E_INVALIDARG)
		note_more("took-stale");
	stale = info;
}

QUIETLY static void slow_enter(union shim_function_or_client function,
			       shim_elt_info info)
{
	note('E', function.function);
	if (is("slow-asks"))
		ask(function.function, info);
	if (is("slow-calls") && calls_itself++ < 10)
		last();
}

QUIETLY static void slow_leave(union shim_function_or_client function,
			       shim_elt_info info)
{
	shim_frame_info frame;

	note('L', function.function);
	if (is("slow-asks") &&
	    shim_get_function_leave3_info(function.function, info, &frame,
					  NULL) != SHIM_OK)
		note_more("no-leave-frame");
	errno = ERANGE;
}

QUIETLY static void enter2(shim_function function, uintptr_t client,
			   shim_frame_info frame,
			   struct shim_argument_info *arguments)
{
	if (client != function || frame || arguments)
		note_more("elt2-arguments");
	if (shim_get_function_enter3_info(function, 1, &frame, NULL, NULL) !=
	    SHIM_E_UNSUPPORTED_CALL_SEQUENCE)
		note_more("answered");
	note('E', function);
}

QUIETLY static void leave2(shim_function function, uintptr_t client,
			   shim_frame_info frame,
			   struct shim_argument_range *result)
{
	(void)client;
	if (frame || result)
		note_more("elt2-arguments");
	note('L', function);
}

QUIETLY static void enter1(shim_function function)
{
	note('E', function);
}

QUIETLY static void leave1(shim_function function)
{
	note('L', function);
}

QUIETLY static void fast_tailcall(union shim_function_or_client function)
{
	note('T', function.function);
}

QUIETLY static void slow_tailcall(union shim_function_or_client function,
				  shim_elt_info info)
{
	shim_frame_info frame = 0;

	if (shim_get_function_tailcall3_info(function.function, info, &frame) !=
		    SHIM_OK || frame == 0)
		note_more("no-frame");
	if (shim_get_function_leave3_info(function.function, info, &frame,
					  NULL) != SHIM_E_INVALIDARG)
		note_more("took-it-for-leave");
	note('T', function.function);
}

QUIETLY static void tailcall2(shim_function function, uintptr_t client,
			      shim_frame_info frame)
{
	if (client != function || frame)
		note_more("elt2-arguments");
	note('T', function);
}

QUIETLY static void tailcall1(shim_function function)
{
	note('T', function);
}

/* --- mappers and filters --- */

static int asked;

QUIETLY static uintptr_t map(shim_function function, int *hook)
{
	__atomic_add_fetch(&asked, 1, __ATOMIC_RELAXED);
	if (*hook != 1)
		note_more("hook-not-true");
	*hook = function != (uintptr_t)inner;
	return is("mapper-zero") ? 0 : (uintptr_t)last;
}

QUIETLY static uintptr_t map2(shim_function function, void *client_data,
			      int *hook)
{
	(void)hook;
	asked++;
	if (client_data != &asked)
		note_more("client-data");
	return function;
}

static int flags;

QUIETLY static enum shim_call_instrumentation_flags
filter(struct shim_profiler *profiler, shim_function function)
{
	if (profiler)
		note_more("profiler");
	asked++;
	return function == (uintptr_t)inner ?
		       SHIM_CALL_INSTRUMENTATION_NONE :
		       (enum shim_call_instrumentation_flags)flags;
}

QUIETLY static enum shim_call_instrumentation_flags
filter_inner(struct shim_profiler *profiler, shim_function function)
{
	(void)profiler;
	return function == (uintptr_t)inner ?
		       SHIM_CALL_INSTRUMENTATION_ENTER :
		       SHIM_CALL_INSTRUMENTATION_NONE;
}

QUIETLY static void on_enter(struct shim_profiler *profiler,
			     shim_function function,
			     struct shim_call_context *context)
{
	(void)profiler;
	if (context)
		note_more("context");
	note('E', function);
}

QUIETLY static void on_leave(struct shim_profiler *profiler,
			     shim_function function,
			     struct shim_call_context *context)
{
	(void)profiler;
	if (context)
		note_more("context");
	note('L', function);
}

/* Row P-29: a callback may use more stack than the thread has. */
QUIETLY static void on_started(struct shim_profiler *profiler,
			       shim_thread thread)
{
	volatile char memory[256 << 10];

	(void)profiler;
	(void)thread;
	for (size_t i = 0; i < sizeof(memory); i += 512)
		memory[i] = 1;
	note_more(memory[512] ? "started" : "lost");
}

/* --- setting up --- */

static struct shim_handle *first;

QUIETLY static void set_fast(void)
{
	first = shim_profiler_create(NULL);
	shim_set_enter_leave_function_hooks3(first, fast_enter, fast_leave,
					     NULL);
}

QUIETLY static void set_slow(void)
{
	struct shim_handle *handle = shim_profiler_create(NULL);

	shim_set_event_mask(handle, SHIM_MONITOR_ENTERLEAVE |
					    SHIM_ENABLE_FRAME_INFO);
	shim_set_enter_leave_function_hooks3_with_info(handle, slow_enter,
						       slow_leave, NULL);
}

QUIETLY static void set_other(void)
{
	struct shim_handle *handle = shim_profiler_create(NULL);

	shim_set_enter_leave_function_hooks3(handle, other_enter, other_leave,
					     NULL);
}

QUIETLY static void set_mono(int wanted_flags)
{
	first = shim_profiler_create(NULL);
	flags = wanted_flags;
	shim_profiler_set_call_instrumentation_filter_callback(first, filter);
	shim_profiler_on_method_enter(first, on_enter);
	shim_profiler_on_method_leave(first, on_leave);
}

/* What follows the name of the program, in a constructor. */
QUIETLY static const char *first_argument(void)
{
	static char arguments[4096];
	int file = open("/proc/self/cmdline", O_RDONLY);
	ssize_t size = read(file, arguments, sizeof(arguments) - 1);

	close(file);
	return size > 0 && strlen(arguments) + 1 < (size_t)size ?
		       arguments + strlen(arguments) + 1 :
		       "";
}

QUIETLY __attribute__((constructor)) static void start(void)
{
	wanted = first_argument();
	if (!shim_profiler_create)
		return;
	if (is("fast") || is("toggle") || is("destroy"))
		set_fast();
	if (strncmp(wanted, "slow", 4) == 0)
		set_slow();
	if (is("tail-fast"))
		shim_set_enter_leave_function_hooks3(
			shim_profiler_create(NULL), fast_enter, fast_leave,
			fast_tailcall);
	if (is("tail-slow")) {
		first = shim_profiler_create(NULL);
		shim_set_event_mask(first, SHIM_MONITOR_ENTERLEAVE |
						   SHIM_ENABLE_FRAME_INFO);
		shim_set_enter_leave_function_hooks3_with_info(
			first, slow_enter, slow_leave, slow_tailcall);
	}
	if (is("tail-elt2"))
		shim_set_enter_leave_function_hooks2(shim_profiler_create(NULL),
						     enter2, leave2, tailcall2);
	if (is("tail-elt1"))
		shim_set_enter_leave_function_hooks(shim_profiler_create(NULL),
						    enter1, leave1, tailcall1);
	if (is("elt2"))
		shim_set_enter_leave_function_hooks2(shim_profiler_create(NULL),
						     enter2, leave2, NULL);
	if (is("elt1"))
		shim_set_enter_leave_function_hooks(shim_profiler_create(NULL),
						    enter1, leave1, NULL);
	if (is("small-stack"))
		shim_profiler_on_thread_started(shim_profiler_create(NULL),
						on_started);
	if (is("two"))
		set_other(), set_fast();
	if (is("fast-and-slow"))
		set_other(), set_slow();
	if (is("mapper") || is("mapper-zero") || is("mapper-threads")) {
		set_fast();
		shim_set_function_id_mapper(first, map);
	}
	if (is("mapper2")) {
		set_fast();
		shim_set_function_id_mapper(first, map);
		shim_set_function_id_mapper2(first, map2, &asked);
	}
	if (is("filter"))
		set_mono(SHIM_CALL_INSTRUMENTATION_ENTER |
			 SHIM_CALL_INSTRUMENTATION_LEAVE);
	if (is("filter-enter"))
		set_mono(SHIM_CALL_INSTRUMENTATION_ENTER);
	if (is("filter-context"))
		set_mono(SHIM_CALL_INSTRUMENTATION_ENTER_CONTEXT);
	if (is("filter-hooks")) {
		set_fast();
		flags = SHIM_CALL_INSTRUMENTATION_ENTER;
		shim_profiler_set_call_instrumentation_filter_callback(first,
								       filter);
	}
	if (is("filter-two")) {
		set_other();	/* no filter: everything */
		set_mono(SHIM_CALL_INSTRUMENTATION_ENTER);
	}
	if (is("filter-live"))
		set_mono(SHIM_CALL_INSTRUMENTATION_ENTER |
			 SHIM_CALL_INSTRUMENTATION_LEAVE);
	if (is("no-filter")) {
		first = shim_profiler_create(NULL);
		shim_profiler_on_method_enter(first, on_enter);
	}
}

/* --- what the program does --- */

static volatile int sink;

CALLED static void last(void)
{
	sink++;
}

CALLED static void inner(void)
{
	last();
	sink++;
}

CALLED static void outer(int n)
{
	errno = EDOM;
	for (int i = 0; i < n; i++)
		inner();
	if (errno != EDOM)
		note_more("errno");
}

QUIETLY static void *run_threads(void *unused)
{
	pthread_barrier_wait(unused);
	for (int i = 0; i < 1000; i++)
		sink++;
	last();
	return NULL;
}

QUIETLY static void start_threads(void)
{
	static pthread_barrier_t barrier;
	pthread_t threads[16];

	pthread_barrier_init(&barrier, NULL, 16);
	for (int i = 0; i < 16; i++)
		pthread_create(&threads[i], NULL, run_threads, &barrier);
	for (int i = 0; i < 16; i++)
		pthread_join(threads[i], NULL);
}

#ifdef __clang__
#define MUSTTAIL __attribute__((musttail))
#else
#define MUSTTAIL
#endif

CALLED static int land(int n)
{
	sink += n;
	return n + 1;
}

CALLED static int hop(int n)
{
	sink++;
	MUSTTAIL return land(n);
}

QUIETLY static void *run_thread(void *unused)
{
	return unused;
}

QUIETLY static void start_small_thread(void)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 16384);
	if (pthread_create(&thread, &attributes, run_thread, NULL) != 0)
		abort();
	pthread_join(thread, NULL);
}

extern char __executable_start, etext;

QUIETLY int main(void)
{
	if (is("mapper-threads")) {
		start_threads();
		printf("log %d events\nasked %s\n", right_ids,
		       asked >= 1 ? "at least once" : "never");
		return 0;
	}
	if (is("small-stack"))
		start_small_thread();
	else if (strncmp(wanted, "tail-", 5) == 0)
		sink += hop(1);
	else
		outer(2);
	if (is("toggle") && shim_set_event_mask) {
		shim_set_event_mask(first, SHIM_MONITOR_THREADS);
		note_more("|");
		outer(1);
		note_more("|");
		shim_set_event_mask(first, SHIM_MONITOR_ENTERLEAVE);
		outer(1);
	}
	if (is("destroy") && shim_profiler_destroy) {
		printf("destroy %d ", shim_profiler_destroy(first));
		printf("%d\n", shim_profiler_destroy(first) == SHIM_OK);
		outer(1);
	}
	if (is("filter-live") && shim_filters_invalidate) {
		outer(1);
		note_more("|");
		flags = 0;
		shim_filters_invalidate();
		outer(1);
		note_more("|");
		flags = SHIM_CALL_INSTRUMENTATION_LEAVE;
		shim_filters_invalidate();
		outer(1);
		note_more("|");
		shim_profiler_set_call_instrumentation_filter_callback(
			first, filter_inner);
		outer(1);
	}
	printf("log %.*s\n", (int)used, text);
	printf("asked %d\n", asked);
	if (is("fast"))
		printf("direct %d\n",
		       (char *)direct_return >= &__executable_start &&
			       (char *)direct_return < &etext);
	return 0;
}
