/*
 * A program with profilers of its own (row M-1): hooked CASE.  Each case sets some up
 * in a constructor, runs the same calls, and prints the calls of the hooks;
 * tests/whole/hooks.py has the expected output.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <shim/hooks.h>
#include <signal.h>
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
#pragma weak shim_profiler_set_event_mask
#pragma weak shim_profiler_set_enter_leave_function_hooks
#pragma weak shim_profiler_set_enter_leave_function_hooks2
#pragma weak shim_profiler_set_enter_leave_function_hooks3
#pragma weak shim_profiler_set_enter_leave_function_hooks3_with_info
#pragma weak shim_profiler_set_function_id_mapper
#pragma weak shim_profiler_set_function_id_mapper2
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

/* --- what callbacks and slow hooks may do (row C-6) --- */

QUIETLY static int is(const char *name)
{
	return strcmp(wanted, name) == 0;
}

#ifdef __x86_64__
QUIETLY static unsigned read_floating(void)
{
	unsigned mxcsr;
	unsigned short status, control;

	__asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
	__asm__ volatile("fnstsw %0" : "=m"(status));
	__asm__ volatile("fnstcw %0" : "=m"(control));
	return (mxcsr ^ (unsigned)control) | (unsigned)(status & 0x3f) << 16;
}

/* Changes the rounding mode, and unmasks an exception. */
QUIETLY static void change_floating(void)
{
	unsigned mxcsr = 0x7d80;
	unsigned short control = 0x0a7f;

	__asm__ volatile("ldmxcsr %0" : : "m"(mxcsr));
	__asm__ volatile("fldcw %0" : : "m"(control));
}

QUIETLY static void clear_floating(void)
{
	unsigned mxcsr = 0x1f80;

	__asm__ volatile("ldmxcsr %0" : : "m"(mxcsr));
	__asm__ volatile("fnclex");
}
#else
QUIETLY static unsigned read_floating(void)
{
	return 0;
}

QUIETLY static void change_floating(void)
{
}

QUIETLY static void clear_floating(void)
{
}
#endif

static int floating_stays = 1;

/* Clobbers the registers that ordinary code may change. */
QUIETLY static void spoil(void)
{
	volatile double divided = 1;
	volatile long double longer = 1;

	if (strncmp(wanted, "spoil", 5) != 0)
		return;
	divided /= 3;
	longer /= 3;
	change_floating();
	errno = ERANGE;
}

/* --- hooks --- */

/* Row E-34. */
#ifdef __x86_64__
#define ALIGNED()                                                              \
	do {                                                                   \
		if ((uintptr_t)__builtin_frame_address(0) % 16)                \
			note_more("not-aligned");                              \
	} while (0)
#else
#define ALIGNED() (void)0
#endif

extern char __executable_start, etext;

/* 0 while all hooks were called directly by the program's code. */
static int indirect;

#define DIRECTLY()                                                             \
	do {                                                                   \
		char *from_ = (char *)__builtin_return_address(0);             \
		indirect += from_ < &__executable_start || from_ >= &etext;    \
	} while (0)

QUIETLY static void fast_enter(union shim_function_or_client function)
{
	ALIGNED();
	DIRECTLY();
	note('E', function.function);
}

QUIETLY static void fast_leave(union shim_function_or_client function)
{
	ALIGNED();
	DIRECTLY();
	note('L', function.function);
}

QUIETLY static void other_enter(union shim_function_or_client function)
{
	ALIGNED();
	note('e', function.function);
}

QUIETLY static void other_leave(union shim_function_or_client function)
{
	note('l', function.function);
}

/* A callback or hook in which its thread is cancelled (row P-19). */
static int waits;

QUIETLY static void wait_to_be_cancelled(void)
{
	if (strncmp(wanted, "cancel", 6) != 0)
		return;
	__atomic_store_n(&waits, 1, __ATOMIC_RELEASE);
	for (;;)
		pause();
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
	ALIGNED();
	spoil();
	note('E', function.function);
	wait_to_be_cancelled();
	if (is("slow-asks"))
		ask(function.function, info);
	if (is("slow-calls") && calls_itself++ < 10)
		last();
}

QUIETLY static void slow_leave(union shim_function_or_client function,
			       shim_elt_info info)
{
	shim_frame_info frame;

	ALIGNED();
	note('L', function.function);
	if (is("slow-asks") &&
	    shim_get_function_leave3_info(function.function, info, &frame,
					  NULL) != SHIM_OK)
		note_more("no-leave-frame");
	errno = ERANGE;
	spoil();
}

QUIETLY static void enter2(shim_function function, uintptr_t client,
			   shim_frame_info frame,
			   struct shim_argument_info *arguments)
{
	ALIGNED();
	if (client != (is("mapper-elt2") ? (uintptr_t)last : function) ||
	    frame || arguments)
		note_more("elt2-arguments");
	if (shim_get_function_enter3_info(function, 1, &frame, NULL, NULL) !=
	    SHIM_E_UNSUPPORTED_CALL_SEQUENCE)
		note_more("answered");
	note('E', function);
	spoil();
}

QUIETLY static void leave2(shim_function function, uintptr_t client,
			   shim_frame_info frame,
			   struct shim_argument_range *result)
{
	(void)client;
	ALIGNED();
	if (frame || result)
		note_more("elt2-arguments");
	note('L', function);
	spoil();
}

QUIETLY static void enter1(shim_function function)
{
	ALIGNED();
	note('E', function);
	spoil();
}

QUIETLY static void leave1(shim_function function)
{
	ALIGNED();
	note('L', function);
	spoil();
}

QUIETLY static void fast_tailcall(union shim_function_or_client function)
{
	ALIGNED();
	DIRECTLY();
	note('T', function.function);
}

QUIETLY static void other_tailcall(union shim_function_or_client function)
{
	(void)function;
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
	ALIGNED();
	if (*hook != 1)
		note_more("hook-not-true");
	*hook = function != (uintptr_t)inner;
	spoil();
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

QUIETLY static uintptr_t map_again(shim_function function, int *hook)
{
	(void)function;
	(void)hook;
	asked++;
	return (uintptr_t)outer;
}

static int flags;

QUIETLY static enum shim_call_instrumentation_flags
filter(struct shim_profiler *profiler, shim_function function)
{
	if (profiler)
		note_more("profiler");
	asked++;
	spoil();
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
	ALIGNED();
	if (context)
		note_more("context");
	note('E', function);
	wait_to_be_cancelled();
	spoil();
}

QUIETLY static void on_leave(struct shim_profiler *profiler,
			     shim_function function,
			     struct shim_call_context *context)
{
	(void)profiler;
	ALIGNED();
	if (context)
		note_more("context");
	note('L', function);
	spoil();
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

/* --- set-up --- */

static struct shim_profiler_handle *first;

QUIETLY static void set_fast(void)
{
	first = shim_profiler_create(NULL);
	shim_profiler_set_enter_leave_function_hooks3(first, fast_enter, fast_leave,
					     NULL);
}

QUIETLY static void set_slow(void)
{
	first = shim_profiler_create(NULL);
	shim_profiler_set_event_mask(first, SHIM_MONITOR_ENTERLEAVE |
					   SHIM_ENABLE_FRAME_INFO);
	shim_profiler_set_enter_leave_function_hooks3_with_info(first, slow_enter,
						       slow_leave, NULL);
}

QUIETLY static void set_other(void)
{
	struct shim_profiler_handle *handle = shim_profiler_create(NULL);

	shim_profiler_set_enter_leave_function_hooks3(handle, other_enter, other_leave,
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

/* The first argument of the program, read in a constructor. */
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
	if (is("fast") || is("toggle") || is("destroy") || is("inside-fast"))
		set_fast();
	if (strncmp(wanted, "slow", 4) == 0 || is("spoil-slow") ||
	    strncmp(wanted, "cancel-slow", 11) == 0 || is("inside-slow"))
		set_slow();
	if (is("spoil-two"))
		set_other(), set_slow();
	if (is("tail-fast"))
		shim_profiler_set_enter_leave_function_hooks3(
			shim_profiler_create(NULL), fast_enter, fast_leave,
			fast_tailcall);
	/* A profiler without a tail-call hook sees a tail call as a leave. */
	if (is("tail-fast-without"))
		shim_profiler_set_enter_leave_function_hooks3(
			shim_profiler_create(NULL), fast_enter, fast_leave, NULL);
	if (is("tail-two-without")) {
		shim_profiler_set_enter_leave_function_hooks3(
			shim_profiler_create(NULL), fast_enter, fast_leave, NULL);
		shim_profiler_set_enter_leave_function_hooks3(
			shim_profiler_create(NULL), NULL, NULL, other_tailcall);
	}
	if (strncmp(wanted, "tail-slow", 9) == 0) {
		first = shim_profiler_create(NULL);
		shim_profiler_set_event_mask(first, SHIM_MONITOR_ENTERLEAVE |
						   SHIM_ENABLE_FRAME_INFO);
		shim_profiler_set_enter_leave_function_hooks3_with_info(
			first, slow_enter, slow_leave,
			is("tail-slow") ? slow_tailcall : NULL);
	}
	if (is("tail-elt2"))
		shim_profiler_set_enter_leave_function_hooks2(shim_profiler_create(NULL),
						     enter2, leave2, tailcall2);
	if (is("tail-elt1"))
		shim_profiler_set_enter_leave_function_hooks(shim_profiler_create(NULL),
						    enter1, leave1, tailcall1);
	if (is("elt2") || is("spoil-elt2"))
		shim_profiler_set_enter_leave_function_hooks2(shim_profiler_create(NULL),
						     enter2, leave2, NULL);
	if (is("elt1") || is("spoil-elt1"))
		shim_profiler_set_enter_leave_function_hooks(shim_profiler_create(NULL),
						    enter1, leave1, NULL);
	if (is("small-stack"))
		shim_profiler_on_thread_started(shim_profiler_create(NULL),
						on_started);
	if (is("two"))
		set_other(), set_fast();
	if (is("fast-and-slow"))
		set_other(), set_slow();
	if (is("mapper") || is("mapper-zero") || is("mapper-again") ||
	    is("mapper-threads")) {
		set_fast();
		shim_profiler_set_function_id_mapper(first, map);
	}
	if (is("mapper-elt2")) {
		first = shim_profiler_create(NULL);
		shim_profiler_set_enter_leave_function_hooks2(first, enter2, leave2,
						     NULL);
		shim_profiler_set_function_id_mapper(first, map);
	}
	if (is("mapper2")) {
		set_fast();
		shim_profiler_set_function_id_mapper(first, map);
		shim_profiler_set_function_id_mapper2(first, map2, &asked);
	}
	if (is("filter") || is("spoil-callback") || is("inside-callback"))
		set_mono(SHIM_CALL_INSTRUMENTATION_ENTER |
			 SHIM_CALL_INSTRUMENTATION_LEAVE);
	if (is("filter-enter") ||
	    strncmp(wanted, "cancel-callback", 15) == 0)
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
		set_other();	/* without a filter, the profiler gets all calls */
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

/* --- the program's calls --- */

static volatile int sink;

CALLED static void last(void)
{
	sink++;
}

/* For "inside-": the mask that was set last before the inner calls, and after them. */
static uint32_t masks[2];

QUIETLY static void set_mask(int number)
{
	if (masks[number])
		shim_profiler_set_event_mask(first, masks[number] |
						   (is("inside-slow") ?
							    SHIM_ENABLE_FRAME_INFO :
							    0));
}

CALLED static void inner(void)
{
	set_mask(0);
	last();
	set_mask(1);
	sink++;
}

CALLED static void outer(int n)
{
	sigset_t before, after;
	unsigned floating;

	sigprocmask(SIG_SETMASK, NULL, &before);
	clear_floating();
	floating = read_floating();
	errno = EDOM;
	for (int i = 0; i < n; i++)
		inner();
	if (errno != EDOM)
		note_more("errno");
	floating_stays &= read_floating() == floating;
	sigprocmask(SIG_SETMASK, NULL, &after);
	if (memcmp(&before, &after, 8) != 0)
		note_more("signals");
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

static int unwound, destroyed;

/* The callback is left; for "-early", the thread still exists. */
QUIETLY static void clean_up(void *unused)
{
	(void)unused;
	if (!strstr(wanted, "early"))
		return;
	__atomic_store_n(&unwound, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&destroyed, __ATOMIC_ACQUIRE))
		usleep(1000);
}

QUIETLY static void *call_last(void *unused)
{
	pthread_cleanup_push(clean_up, NULL);
	last();
	pthread_cleanup_pop(0);
	return unused;
}

QUIETLY static void cancel_in_callback(void)
{
	pthread_t thread;
	void *result;

	if (!shim_profiler_destroy)
		return;
	pthread_create(&thread, NULL, call_last, NULL);
	while (!__atomic_load_n(&waits, __ATOMIC_ACQUIRE))
		usleep(1000);
	pthread_cancel(thread);
	if (strstr(wanted, "early"))
		while (!__atomic_load_n(&unwound, __ATOMIC_ACQUIRE))
			usleep(1000);
	else
		pthread_join(thread, &result);
	/* The call does not return while a thread is in the profiler. */
	alarm(3);
	printf("destroy %d\n", shim_profiler_destroy(first));
	alarm(0);
	__atomic_store_n(&destroyed, 1, __ATOMIC_RELEASE);
	if (strstr(wanted, "early"))
		pthread_join(thread, &result);
}

/* Switches off and on between two calls, on and off, and each while calls are open. */
QUIETLY static void switch_inside(void)
{
	if (!shim_profiler_set_event_mask)
		return;
	masks[0] = SHIM_MONITOR_THREADS;
	masks[1] = SHIM_MONITOR_ENTERLEAVE;
	outer(1);
	note_more("|");
	masks[0] = 0;
	masks[1] = SHIM_MONITOR_THREADS;
	outer(1);
	note_more("|");
	masks[0] = SHIM_MONITOR_ENTERLEAVE;
	masks[1] = 0;
	outer(1);
	note_more("|");
	masks[0] = 0;
	outer(1);
}

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
	else if (strncmp(wanted, "cancel", 6) == 0)
		cancel_in_callback();
	else if (strncmp(wanted, "inside", 6) == 0)
		switch_inside();
	else if (is("mapper-again"))
		last();
	else if (strncmp(wanted, "tail-", 5) == 0)
		sink += hop(1);
	else
		outer(2);
	if (is("mapper-again") && shim_profiler_set_function_id_mapper) {
		shim_profiler_set_function_id_mapper(first, map_again);
		note_more("|");
		outer(1);
	}
	if (is("toggle") && shim_profiler_set_event_mask) {
		shim_profiler_set_event_mask(first, SHIM_MONITOR_THREADS);
		note_more("|");
		outer(1);
		note_more("|");
		shim_profiler_set_event_mask(first, SHIM_MONITOR_ENTERLEAVE);
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
	if (strncmp(wanted, "spoil", 5) == 0)
		printf("floating %d\n", floating_stays);
	if (is("fast") || is("tail-fast") || is("tail-fast-without"))
		printf("direct %d\n", used > 0 && indirect == 0);
	return 0;
}
