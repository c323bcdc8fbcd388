/*
 * A program that is its own profiler, with call contexts: each case is a row of the
 * specification.  Prints "wrong LINE" for each error, and the number of checks.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <shim/contexts.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define QUIETLY __attribute__((no_instrument_function))

#ifdef __clang__
#define APART __attribute__((noinline))
#else
#define APART __attribute__((noinline, noclone))
#endif

#pragma weak shim_profiler_create
#pragma weak shim_profiler_on_method_enter
#pragma weak shim_profiler_on_method_leave
#pragma weak shim_profiler_on_method_tail_call
#pragma weak shim_profiler_on_jump_saved
#pragma weak shim_profiler_set_call_instrumentation_filter_callback
#pragma weak shim_profiler_set_enter_leave_function_hooks3
#pragma weak shim_profiler_enable_call_context_introspection
#pragma weak shim_call_context_get_this
#pragma weak shim_call_context_get_argument
#pragma weak shim_call_context_get_local
#pragma weak shim_call_context_get_result
#pragma weak shim_call_context_free_buffer
#pragma weak shim_call_context_get_size
#pragma weak shim_call_context_get_count
#pragma weak shim_call_context_get_info
#pragma weak shim_call_context_get_local_info

static const char *mode;
static volatile int sink;
static unsigned long checks, wrongs;

QUIETLY static int is(const char *name)
{
	return strcmp(mode, name) == 0;
}

#define CHECK(condition)                                                       \
	do {                                                                   \
		__atomic_add_fetch(&checks, 1, __ATOMIC_RELAXED);              \
		if (!(condition)) {                                            \
			__atomic_add_fetch(&wrongs, 1, __ATOMIC_RELAXED);      \
			printf("wrong %d: %s\n", __LINE__, #condition);        \
		}                                                              \
	} while (0)

/* --- the functions --- */

APART static int add(int a, long b)
{
	volatile int sum = (int)(a + b);
	volatile char large[5000];

	memset((void *)large, a, sizeof(large));
	return sum;
}

APART static void nothing(void)
{
	static int kept = 42;

	kept++;
}

APART static void odd(int n)
{
	static __thread int own;
	volatile int several[n];
	struct {
		unsigned a : 3, b : 7;
	} bits = { 5, 99 };
	volatile char huge[600000];

	huge[0] = 1;
	several[0] = (int)bits.b;
	own = several[0] + huge[0];
	several[0] += own;
}

/* With optimization, these are constants of debug information, except the last two.  One is
 * the last argument, in memory. */
APART static int constant(int n, int b, int c_, int d, int e, int f, int last)
{
	signed char c = -3;
	unsigned char byte = 200;
	short s = -300;
	unsigned short half = 60000;
	int i = -70000;
	unsigned u = 4000000000u;
	long l = -5000000000l;
	unsigned long large = 0x8182838485868788ul;
	long small = 100, medium = 30000, wide = 2000000000, widest = 5000000000l;
	float quarter = -0.25f;
	double third = -1.0 / 3;
	int copied = last;
	volatile int stored = n;

	sink = n + b + c_ + d + e + f;
	return stored + c + byte + s + half + i + (int)u + (int)l + (int)large +
	       (int)(small + medium + wide + widest) + (int)quarter + (int)third;
}

/* Its hooks are inlined into its callers. */
#ifdef __clang__
__attribute__((always_inline))
#else
__attribute__((always_inline, noclone))
#endif
static inline int inlined(int a)
{
	static int times = 1;
	int twice = a * 2;

	times++;
	sink = twice;
	return twice + 1;
}

APART static int around(int a)
{
	return inlined(a) + 1;
}

/* --- callbacks --- */

typedef struct shim_call_context context;

static void (*at_enter)(shim_function function, context *c);
static void (*at_leave)(shim_function function, context *c);

QUIETLY static void entered(struct shim_profiler *p, shim_function function,
			    context *c)
{
	(void)p;
	if (at_enter)
		at_enter(function, c);
}

QUIETLY static void left(struct shim_profiler *p, shim_function function,
			 context *c)
{
	(void)p;
	if (at_leave)
		at_leave(function, c);
}

static int plain_events;

/* A hook of another profiler, which requested no context. */
QUIETLY static void plain(struct shim_profiler *p, shim_function function,
			  context *c)
{
	(void)p;
	(void)function;
	plain_events++;
	CHECK(c == NULL);
}

static int jumps_saved;
static context *live;

QUIETLY static void jump_saved(struct shim_profiler *p, const void *buffer,
			       uintptr_t sp)
{
	uint32_t count = 7;

	(void)p;
	(void)buffer;
	(void)sp;
	jumps_saved++;
	CHECK(shim_call_context_get_argument(live, 0) == NULL);
	CHECK(shim_call_context_get_count(live, SHIM_CALL_ARGUMENT, &count) ==
	      SHIM_E_UNSUPPORTED_CALL_SEQUENCE);
	CHECK(count == 7);
}

#define CONTEXTS                                                               \
	(SHIM_CALL_INSTRUMENTATION_ENTER |                                     \
	 SHIM_CALL_INSTRUMENTATION_ENTER_CONTEXT |                             \
	 SHIM_CALL_INSTRUMENTATION_LEAVE |                                     \
	 SHIM_CALL_INSTRUMENTATION_LEAVE_CONTEXT)

QUIETLY static enum shim_call_instrumentation_flags
choose(struct shim_profiler *p, shim_function function)
{
	(void)p;
	(void)function;
	return (enum shim_call_instrumentation_flags)CONTEXTS;
}

QUIETLY static enum shim_call_instrumentation_flags
choose_plain(struct shim_profiler *p, shim_function function)
{
	(void)p;
	(void)function;
	return (enum shim_call_instrumentation_flags)(
		SHIM_CALL_INSTRUMENTATION_ENTER |
		SHIM_CALL_INSTRUMENTATION_LEAVE);
}

QUIETLY static void tail_called(struct shim_profiler *p, shim_function function,
				shim_function target)
{
	(void)p;
	(void)function;
	(void)target;
}

static int fast_events;

QUIETLY static void fast(union shim_function_or_client function)
{
	(void)function;
	fast_events++;
}

/* --- values --- */

/* The int in a buffer, which is released; -1: no buffer. */
QUIETLY static int take_int(void *buffer)
{
	int value = buffer ? *(int *)buffer : -1;

	CHECK(!buffer || shim_call_context_get_size(buffer) == sizeof(int));
	shim_call_context_free_buffer(buffer);
	return value;
}

static int wanted;

QUIETLY static void check_enter(shim_function function, context *c)
{
	uint32_t size = 7;
	enum shim_unavailable reason;

	if (function != (uintptr_t)add)
		return;
	CHECK(c != NULL);
	CHECK(take_int(shim_call_context_get_argument(c, 0)) == wanted);
	CHECK(shim_call_context_get_info(c, SHIM_CALL_ARGUMENT, 0, &size,
					 &reason) == SHIM_OK);
	CHECK(size == 4 && reason == SHIM_AVAILABLE);
	CHECK(shim_call_context_get_result(c) == NULL);
	CHECK(shim_call_context_get_local(c, 0) == NULL);
	CHECK(shim_call_context_get_local_info(c, 0, NULL, &reason, 0, NULL,
					       NULL) == SHIM_OK);
	CHECK(reason == SHIM_UNAVAILABLE_NOT_YET);
}

static int leaves;

QUIETLY static void check_leave(shim_function function, context *c)
{
	if (function != (uintptr_t)add)
		return;
	CHECK(c != NULL);
	leaves++;
	if (!is("optimized"))
		CHECK(take_int(shim_call_context_get_local(c, 0)) ==
		      wanted + 1);
}

QUIETLY static void check_plainly(void)
{
	at_enter = check_enter;
	at_leave = check_leave;
	for (wanted = 1; wanted < 100; wanted++)
		add(wanted, 1);
	at_enter = at_leave = NULL;
}

/* --- the rows --- */

QUIETLY static void none(shim_function function, context *c)
{
	uint32_t count = 7;

	(void)function;
	CHECK(c == NULL);
	CHECK(shim_call_context_get_this(c) == NULL);
	CHECK(shim_call_context_get_argument(c, 0) == NULL);
	CHECK(shim_call_context_get_local(c, 0) == NULL);
	CHECK(shim_call_context_get_result(c) == NULL);
	CHECK(shim_call_context_get_count(c, SHIM_CALL_LOCAL, &count) ==
	      SHIM_E_INVALIDARG);
	CHECK(count == 7);
}

/* M-62: each request makes another copy. */
QUIETLY static void twice(shim_function function, context *c)
{
	int *first, *second;

	if (function != (uintptr_t)add)
		return;
	first = shim_call_context_get_argument(c, 0);
	second = shim_call_context_get_argument(c, 0);
	CHECK(first && second && first != second && *first == *second);
	*first = 0;
	CHECK(*second == 5);
	shim_call_context_free_buffer(first);
	CHECK(*second == 5 && shim_call_context_get_size(second) == 4);
	CHECK(shim_call_context_get_size(first) == 0);
	shim_call_context_free_buffer(second);
}

/* M-58 to M-60. */
QUIETLY static void bounds(shim_function function, context *c)
{
	static const uint32_t far[] = { 2, 3, 63, 64, 1000, 1u << 31,
					UINT32_MAX };
	enum shim_unavailable reason = SHIM_AVAILABLE;
	uint32_t count = 0, size = 7, total;
	char name[8];

	if (function != (uintptr_t)add)
		return;
	CHECK(shim_call_context_get_this(c) == NULL);
	CHECK(shim_call_context_get_count(c, SHIM_CALL_THIS, &count) ==
		      SHIM_OK && count == 0);
	CHECK(shim_call_context_get_count(c, SHIM_CALL_ARGUMENT, &count) ==
		      SHIM_OK && count == 2);
	CHECK(shim_call_context_get_count(c, SHIM_CALL_LOCAL, &count) ==
		      SHIM_OK && count == 2);
	CHECK(shim_call_context_get_count(c, (enum shim_call_value)9, &count) ==
	      SHIM_E_INVALIDARG);
	CHECK(shim_call_context_get_count(c, SHIM_CALL_LOCAL, NULL) ==
	      SHIM_E_INVALIDARG);
	for (unsigned i = 0; i < sizeof(far) / sizeof(far[0]); i++) {
		CHECK(shim_call_context_get_argument(c, far[i]) == NULL);
		CHECK(shim_call_context_get_local(c, far[i]) == NULL);
		CHECK(shim_call_context_get_info(c, SHIM_CALL_ARGUMENT, far[i],
						 &size, &reason) == SHIM_OK);
		CHECK(reason == SHIM_UNAVAILABLE_NONE && size == 0);
		CHECK(shim_call_context_get_local_info(
			      c, far[i], &size, &reason, sizeof(name), &total,
			      name) == SHIM_E_INVALIDARG);
	}
	CHECK(shim_call_context_get_local_info(c, 1, &size, NULL, 3, &total,
					       name) == SHIM_OK);
	CHECK(size == 5000 && total == 6 && strcmp(name, "la") == 0);
	CHECK(shim_call_context_get_local_info(c, 1, NULL, NULL, 3, NULL,
					       NULL) == SHIM_E_INVALIDARG);
}

/* M-64. */
static context *kept;
static int stashes;

QUIETLY static void *use_elsewhere(void *given)
{
	(void)given;
	/* No callback runs on this thread, so it may ask anything. */
	CHECK(shim_call_context_get_argument(live, 0) == NULL);
	return NULL;
}

QUIETLY static void stash(shim_function function, context *c)
{
	pthread_t thread;

	if (function != (uintptr_t)add)
		return;
	CHECK(c && c != kept);
	CHECK(take_int(shim_call_context_get_argument(c, 0)) == 5);
	if (kept) {
		CHECK(shim_call_context_get_argument(kept, 0) == NULL);
		CHECK(shim_call_context_get_local(kept, 0) == NULL);
	}
	CHECK(shim_call_context_get_argument((context *)&thread, 0) == NULL);
	CHECK(shim_call_context_get_argument((context *)((char *)c + 1), 0) ==
	      NULL);
	kept = live = c;
	if (stashes++ == 0) {
		pthread_create(&thread, NULL, use_elsewhere, NULL);
		pthread_join(thread, NULL);
	}
}

/* M-63, and errors that it must survive. */
QUIETLY static void frees(shim_function function, context *c)
{
	int *value, *again, here = 0;
	char *large;

	if (function != (uintptr_t)add)
		return;
	value = shim_call_context_get_argument(c, 0);
	CHECK(value && *value == 5);
	shim_call_context_free_buffer(NULL);
	shim_call_context_free_buffer(&here);
	shim_call_context_free_buffer((char *)value + 1);
	shim_call_context_free_buffer((char *)value + 64);
	shim_call_context_free_buffer((void *)1);
	shim_call_context_free_buffer((void *)-1);
	shim_call_context_free_buffer((void *)add);
	CHECK(*value == 5 && shim_call_context_get_size(value) == 4);
	CHECK(shim_call_context_get_size(NULL) == 0);
	CHECK(shim_call_context_get_size(&here) == 0);
	shim_call_context_free_buffer(value);
	shim_call_context_free_buffer(value);
	again = shim_call_context_get_argument(c, 0);
	value = shim_call_context_get_argument(c, 0);
	CHECK(again && value && again != value);
	shim_call_context_free_buffer(again);
	shim_call_context_free_buffer(value);
	large = shim_call_context_get_local(c, 1);
	CHECK(large && shim_call_context_get_size(large) == 5000);
	CHECK(large && large[0] == 5 && large[4999] == 5);
	shim_call_context_free_buffer(large);
}

QUIETLY static long resident(void)
{
	long pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	if (!file || fscanf(file, "%*d %ld", &pages) != 1)
		pages = -1;
	if (file)
		fclose(file);
	return pages;
}

QUIETLY static void leak(shim_function function, context *c)
{
	long before = 0;

	if (function != (uintptr_t)add)
		return;
	for (int i = 0; i < 1000000; i++) {
		shim_call_context_free_buffer(
			shim_call_context_get_argument(c, (uint32_t)i & 1));
		if (i == 1000)
			before = resident();
		if (i % 10000 == 0)
			shim_call_context_free_buffer(
				shim_call_context_get_local(c, 1));
	}
	CHECK(before > 0 && resident() < before + 100);
}

/* Buffers are limited, and all are available again after their release. */
QUIETLY static void exhaust(shim_function function, context *c)
{
	static void *buffers[300000];
	unsigned count[2] = { 0, 0 };

	if (function != (uintptr_t)add)
		return;
	for (int round = 0; round < 2; round++) {
		while (count[round] < 300000) {
			void *next = shim_call_context_get_argument(c, 0);

			if (!next)
				break;
			buffers[count[round]++] = next;
		}
		for (unsigned i = 0; i < count[round]; i++) {
			CHECK(*(int *)buffers[i] == 5);
			shim_call_context_free_buffer(buffers[i]);
		}
	}
	CHECK(count[0] > 131072 && count[0] < 300000 && count[0] == count[1]);
}

/* Buffers are passed to another thread, which releases them. */
static void *handed[64];

QUIETLY static void hand_over(shim_function function, context *c)
{
	int *value, *other, *own[4];
	unsigned at;

	if (function != (uintptr_t)add)
		return;
	/* They are released in another order than they were taken, and no two users
	 * share one. */
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < 4; i++) {
			own[i] = shim_call_context_get_argument(c, 0);
			if (own[i])
				*own[i] += i;
		}
		for (int i = 0; i < 4; i++) {
			int n = i ^ (round & 3);

			if (!own[n] ||
			    *own[n] != (int)(uintptr_t)pthread_self() + n)
				CHECK(!"it is somebody else's");
			shim_call_context_free_buffer(own[n]);
		}
	}
	value = shim_call_context_get_argument(c, 0);
	CHECK(value && *value == (int)(uintptr_t)pthread_self());
	at = (unsigned)rand() % 64;
	other = __atomic_exchange_n(&handed[at], value, __ATOMIC_ACQ_REL);
	CHECK(!other || shim_call_context_get_size(other) == 4);
	shim_call_context_free_buffer(other);
}

QUIETLY static void *call_often(void *argument)
{
	(void)argument;
	for (int i = 0; i < 25000; i++)
		add((int)(uintptr_t)pthread_self(), 1);
	return NULL;
}

QUIETLY static void run_threads(void)
{
	pthread_t threads[4];

	at_enter = hand_over;
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, call_often, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

/* M-65: code that interrupts a callback may not ask. */
QUIETLY static void interrupts(shim_function function, context *c)
{
	jmp_buf buffer;

	if (function != (uintptr_t)add)
		return;
	live = c;
	if (setjmp(buffer) != 0)
		CHECK(0);
	live = NULL;
	CHECK(take_int(shim_call_context_get_argument(c, 0)) == 5);
}

static int handled;

QUIETLY static void on_signal(int number)
{
	(void)number;
	add(wanted, 1);
	handled++;
}

QUIETLY static void check_handlers(void)
{
	struct sigaction action = { .sa_handler = on_signal };
	jmp_buf buffer;

	at_enter = interrupts;
	add(5, 6);
	CHECK(jumps_saved == 1);
	at_enter = NULL;
	if (setjmp(buffer) != 0)
		CHECK(0);
	CHECK(jumps_saved == 2);
	sigaction(SIGUSR1, &action, NULL);
	at_enter = check_enter;
	at_leave = check_leave;
	for (wanted = 1; wanted < 50; wanted++)
		raise(SIGUSR1);
	CHECK(handled == 49);
	at_enter = at_leave = NULL;
}

QUIETLY static void check_fork(void)
{
	int status = -1;
	pid_t child;

	check_plainly();
	fflush(stdout);
	child = fork();
	if (child == 0) {
		check_plainly();
		at_leave = frees;
		add(5, 6);
		fflush(stdout);
		_exit(wrongs != 0);
	}
	waitpid(child, &status, 0);
	CHECK(status == 0);
	check_plainly();
}

QUIETLY static enum shim_unavailable reason_of(context *c, uint32_t position)
{
	enum shim_unavailable reason = SHIM_AVAILABLE;
	void *value = shim_call_context_get_local(c, position);

	CHECK(shim_call_context_get_local_info(c, position, NULL, &reason, 0,
					       NULL, NULL) == SHIM_OK);
	CHECK((value != NULL) == (reason == SHIM_AVAILABLE));
	shim_call_context_free_buffer(value);
	return reason;
}

/* clang lists an array without a fixed length last. */
QUIETLY static uint32_t position_of(context *c, const char *wanted_name)
{
	uint32_t position = 0;
	char name[16];

	while (shim_call_context_get_local_info(c, position, NULL, NULL,
						sizeof(name), NULL,
						name) == SHIM_OK &&
	       strcmp(name, wanted_name) != 0)
		position++;
	return position;
}

QUIETLY static void odd_ones(shim_function function, context *c)
{
	unsigned *bits;

	if (function != (uintptr_t)odd)
		return;
	CHECK(reason_of(c, position_of(c, "own")) ==
	      SHIM_UNAVAILABLE_NOT_UNDERSTOOD);
	CHECK(reason_of(c, position_of(c, "several")) ==
	      SHIM_UNAVAILABLE_NOT_UNDERSTOOD);
	CHECK(reason_of(c, position_of(c, "huge")) ==
	      SHIM_UNAVAILABLE_NOT_UNDERSTOOD);
	bits = shim_call_context_get_local(c, position_of(c, "bits"));
	CHECK(bits && (*bits & 1023) == (5 | 99 << 3));
	shim_call_context_free_buffer(bits);
}

QUIETLY static int has_value(context *c, const char *name, const void *value,
			     unsigned size)
{
	void *buffer = shim_call_context_get_local(c, position_of(c, name));
	int has = buffer && shim_call_context_get_size(buffer) == size &&
		  memcmp(buffer, value, size) == 0;

	shim_call_context_free_buffer(buffer);
	return has;
}

#define IS(type, name, ...)                                                    \
	CHECK(has_value(c, name, &(type){ __VA_ARGS__ }, sizeof(type)))

QUIETLY static void constants(shim_function function, context *c)
{
	if (function != (uintptr_t)constant)
		return;
	IS(signed char, "c", -3);
	IS(unsigned char, "byte", 200);
	IS(short, "s", -300);
	IS(unsigned short, "half", 60000);
	IS(int, "i", -70000);
	IS(unsigned, "u", 4000000000u);
	IS(long, "l", -5000000000l);
	IS(unsigned long, "large", 0x8182838485868788ul);
	IS(long, "small", 100);
	IS(long, "medium", 30000);
	IS(long, "wide", 2000000000);
	IS(long, "widest", 5000000000l);
	IS(float, "quarter", -0.25f);
	IS(double, "third", -1.0 / 3);
	IS(int, "copied", 77);
	/* Without a list of places, gcc does not say where it is valid. */
	CHECK(reason_of(c, position_of(c, "stored")) ==
	      SHIM_UNAVAILABLE_OPTIMIZED_OUT);
}

QUIETLY static void inlined_ones(shim_function function, context *c)
{
	enum shim_unavailable reason = SHIM_AVAILABLE;
	uint32_t count = 0;

	if (function == (uintptr_t)add || function == (uintptr_t)nothing ||
	    function == (uintptr_t)odd || function == (uintptr_t)around)
		return;
	CHECK(shim_call_context_get_count(c, SHIM_CALL_LOCAL, &count) ==
		      SHIM_OK && count == 2);
	CHECK(reason_of(c, position_of(c, "twice")) ==
	      SHIM_UNAVAILABLE_INLINED);
	CHECK(take_int(shim_call_context_get_local(
		      c, position_of(c, "times"))) == 2);
	CHECK(shim_call_context_get_info(c, SHIM_CALL_ARGUMENT, 0, NULL,
					 &reason) == SHIM_OK);
	CHECK(reason == SHIM_UNAVAILABLE_INLINED);
	leaves++;
}

/* Statics have a value before the call, and another one after it. */
QUIETLY static void static_before(shim_function function, context *c)
{
	if (function == (uintptr_t)nothing)
		CHECK(take_int(shim_call_context_get_local(c, 0)) == 42);
}

QUIETLY static void static_after(shim_function function, context *c)
{
	if (function == (uintptr_t)nothing)
		CHECK(take_int(shim_call_context_get_local(c, 0)) == 43);
}

QUIETLY static void unknown(shim_function function, context *c)
{
	enum shim_unavailable reason = SHIM_AVAILABLE;
	uint32_t count = 7;

	if (function != (uintptr_t)add)
		return;
	CHECK(c != NULL);
	CHECK(shim_call_context_get_argument(c, 0) == NULL);
	CHECK(shim_call_context_get_local(c, 0) == NULL);
	CHECK(shim_call_context_get_count(c, SHIM_CALL_LOCAL, &count) ==
	      SHIM_E_FUNCTION_NOT_IL);
	CHECK(shim_call_context_get_info(c, SHIM_CALL_LOCAL, 0, NULL,
					 &reason) == SHIM_OK);
	CHECK(reason == SHIM_UNAVAILABLE_NO_DEBUG_INFORMATION);
	CHECK(shim_call_context_get_local_info(c, 0, NULL, NULL, 0, NULL,
					       NULL) == SHIM_E_FUNCTION_NOT_IL);
	CHECK(count == 7);
}

/* --- set-up --- */

QUIETLY static const char *first_argument(void)
{
	static char text[4096];
	FILE *file = fopen("/proc/self/cmdline", "r");
	size_t size = file ? fread(text, 1, sizeof(text) - 1, file) : 0;

	if (file)
		fclose(file);
	return strlen(text) + 1 < size ? text + strlen(text) + 1 : "";
}

QUIETLY static struct shim_profiler_handle *
profile(shim_method_enter_callback enter, shim_method_leave_callback leave,
	shim_call_instrumentation_filter_callback filter)
{
	struct shim_profiler_handle *handle = shim_profiler_create(NULL);

	shim_profiler_on_method_enter(handle, enter);
	shim_profiler_on_method_leave(handle, leave);
	shim_profiler_set_call_instrumentation_filter_callback(handle, filter);
	return handle;
}

static struct shim_profiler_handle *handle;

QUIETLY __attribute__((constructor)) static void start(void)
{
	mode = first_argument();
	if (!shim_profiler_create)
		return;
	if (is("first"))
		CHECK(shim_profiler_enable_call_context_introspection(
			      shim_profiler_create(NULL)) == SHIM_OK);
	handle = profile(entered, left, choose);
	if (is("others") || is("first"))
		profile(plain, plain, choose_plain);
	if (is("others"))
		shim_profiler_set_enter_leave_function_hooks3(
			shim_profiler_create(NULL), fast, fast, NULL);
	if (is("tracks"))
		shim_profiler_on_method_tail_call(handle, tail_called);
	if (is("signals"))
		shim_profiler_on_jump_saved(handle, jump_saved);
	if (is("off") || is("late") || is("first"))
		return;
	CHECK(shim_profiler_enable_call_context_introspection(handle) == SHIM_OK);
	CHECK(shim_profiler_enable_call_context_introspection(handle) == SHIM_OK);
}

static const struct {
	const char *name;
	void (*enter)(shim_function function, context *c);
	void (*leave)(shim_function function, context *c);
} cases[] = {
	{ "off", none, none },	       { "late", none, none },
	{ "twice", twice, twice },     { "bounds", bounds, bounds },
	{ "stash", stash, stash },     { "frees", NULL, frees },
	{ "leak", NULL, leak },	       { "exhaust", exhaust, NULL },
	{ "odd", NULL, odd_ones },     { "statics", static_before, static_after },
	{ "unknown", unknown, unknown },  { "inlined", NULL, inlined_ones },
	{ "constants", NULL, constants },
};

QUIETLY int main(void)
{
	if (!shim_profiler_create)
		return 1;
	if (is("late"))
		CHECK(shim_profiler_enable_call_context_introspection(handle) ==
		      SHIM_E_CALL_ONLY_FROM_INIT);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (!is(cases[i].name))
			continue;
		at_enter = cases[i].enter;
		at_leave = cases[i].leave;
		add(5, 6);
		nothing();
		odd(9);
		if (is("inlined"))
			around(3);
		if (is("constants"))
			constant(3, 0, 0, 0, 0, 0, 77);
		add(5, 6);
		at_enter = at_leave = NULL;
	}
	if (is("inlined"))
		CHECK(leaves == 1);
	if (is("stash")) {	/* no callback is running */
		CHECK(stashes == 4);
		CHECK(shim_call_context_get_argument(kept, 0) == NULL);
	}
	if (is("plainly") || is("others") || is("tracks") || is("first") ||
	    is("optimized")) {
		check_plainly();
		CHECK(leaves == 99);
	}
	if (is("others"))
		CHECK(plain_events >= 198 && fast_events >= 198);
	if (is("threads"))
		run_threads();
	if (is("signals"))
		check_handlers();
	if (is("fork"))
		check_fork();
	printf("%lu checks, %lu wrong\n", checks, wrongs);
	return 0;
}
