/*
 * hooked_unwound KIND - a program with a profiler of its own, whose functions end by
 * returns, exceptions, and the end of a thread; prints the calls of the hooks.
 *
 * Each event is one letter for the hook, e and l of a second profiler, and the name
 * of the function.
 */
#include <alloca.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <initializer_list>
#include <pthread.h>
#include <shim/hooks.h>
#include <unistd.h>

#pragma weak shim_profiler_create
#pragma weak shim_profiler_on_method_enter
#pragma weak shim_profiler_on_method_leave
#pragma weak shim_profiler_set_call_instrumentation_filter_callback
#pragma weak shim_profiler_set_event_mask
#pragma weak shim_profiler_set_enter_leave_function_hooks
#pragma weak shim_profiler_set_enter_leave_function_hooks2
#pragma weak shim_profiler_set_enter_leave_function_hooks3
#pragma weak shim_profiler_set_enter_leave_function_hooks3_with_info
#pragma weak shim_profiler_set_function_id_mapper
#pragma weak shim_profiler_set_raw_leave_hooks

#define QUIETLY __attribute__((no_instrument_function))
#define CALLED	__attribute__((noinline))
#define INLINED inline __attribute__((always_inline))

#define FUNCTIONS(X) \
	X(thrower) X(cleaned) X(handler) X(middle) X(outer) X(deep) X(again) \
	X(sized) X(pushes) X(inlines) X(plain) X(exits)

#define DECLARE(name) CALLED void name();
FUNCTIONS(DECLARE)
INLINED void inlined();

QUIETLY static const char *name_of(uintptr_t function)
{
#define NAME(name) \
	if (function == (uintptr_t)name) \
		return #name;
	FUNCTIONS(NAME)
	NAME(inlined)
	return NULL;
}

/* --- hooks --- */

static char text[1 << 16];
static size_t used;

QUIETLY static void note(char what, uintptr_t function)
{
	const char *name = name_of(function);

	if (!name)
		return;
	if (used + 32 > sizeof(text))
		abort();
	text[used++] = what;
	while (*name)
		text[used++] = *name++;
	text[used++] = ' ';
}

/* Number of hook calls that did not come directly from the program's code. */
static int indirect;
extern char __executable_start, etext;

#define DIRECTLY() \
	do { \
		char *from = (char *)__builtin_return_address(0); \
		indirect += !(from >= &__executable_start && from < &etext); \
	} while (0)

#define FAST(hook, letter) \
	QUIETLY static void hook(union shim_function_or_client function) \
	{ \
		DIRECTLY(); \
		note(letter, function.function); \
	}
#define SLOW(hook, letter) \
	QUIETLY static void hook(union shim_function_or_client function, \
				 shim_elt_info) \
	{ \
		note(letter, function.function); \
	}
#define ELT1(hook, letter) \
	QUIETLY static void hook(shim_function function) \
	{ \
		note(letter, function); \
	}

FAST(fast_enter, 'E')
FAST(fast_leave, 'L')
FAST(fast_tailcall, 'T')
FAST(other_enter, 'e')
FAST(other_leave, 'l')
SLOW(slow_enter, 'E')
SLOW(slow_leave, 'L')
SLOW(slow_tailcall, 'T')
ELT1(enter1, 'E')
ELT1(leave1, 'L')

QUIETLY static void enter2(shim_function function, uintptr_t, shim_frame_info,
			   struct shim_argument_info *)
{
	note('E', function);
}

QUIETLY static void leave2(shim_function function, uintptr_t, shim_frame_info,
			   struct shim_argument_range *)
{
	note('L', function);
}

QUIETLY static void on_enter(struct shim_profiler *, shim_function function,
			     struct shim_call_context *)
{
	note('E', function);
}

QUIETLY static void on_leave(struct shim_profiler *, shim_function function,
			     struct shim_call_context *)
{
	note('L', function);
}

QUIETLY static enum shim_call_instrumentation_flags
choose(struct shim_profiler *, shim_function function)
{
	return (enum shim_call_instrumentation_flags)(
		name_of(function) ? SHIM_CALL_INSTRUMENTATION_ENTER |
					    SHIM_CALL_INSTRUMENTATION_LEAVE :
				    SHIM_CALL_INSTRUMENTATION_NONE);
}

QUIETLY static uintptr_t map(shim_function function, int *)
{
	return function;
}

static char kind[64];

QUIETLY static bool is(const char *name)
{
	return strcmp(kind, name) == 0;
}

QUIETLY static void set_fast(bool tailcall)
{
	struct shim_profiler_handle *handle = shim_profiler_create(NULL);

	shim_profiler_set_enter_leave_function_hooks3(handle, fast_enter, fast_leave,
					     tailcall ? fast_tailcall : NULL);
	if (is("mapped") || is("mapped+tail") || is("mapped-raw"))
		shim_profiler_set_function_id_mapper(handle, map);
	if (is("raw") || is("mapped-raw"))
		shim_profiler_set_raw_leave_hooks(handle);
}

QUIETLY static void set_other(bool raw)
{
	struct shim_profiler_handle *handle = shim_profiler_create(NULL);

	shim_profiler_set_enter_leave_function_hooks3(handle, other_enter, other_leave,
					     NULL);
	if (raw)
		shim_profiler_set_raw_leave_hooks(handle);
}

QUIETLY static void set_slow(bool tailcall)
{
	struct shim_profiler_handle *handle = shim_profiler_create(NULL);

	shim_profiler_set_event_mask(handle, SHIM_MONITOR_ENTERLEAVE |
					    SHIM_ENABLE_FRAME_INFO);
	shim_profiler_set_enter_leave_function_hooks3_with_info(
		handle, slow_enter, slow_leave,
		tailcall ? slow_tailcall : NULL);
	if (is("slow-raw"))
		shim_profiler_set_raw_leave_hooks(handle);
}

QUIETLY static void set_methods()
{
	struct shim_profiler_handle *handle = shim_profiler_create(NULL);

	shim_profiler_on_method_enter(handle, on_enter);
	shim_profiler_on_method_leave(handle, on_leave);
	shim_profiler_set_call_instrumentation_filter_callback(handle, choose);
}

QUIETLY static void read_kind()
{
	char arguments[4096] = "";
	int file = open("/proc/self/cmdline", O_RDONLY);
	ssize_t size = read(file, arguments, sizeof(arguments) - 1);

	close(file);
	if (size > 0 && strlen(arguments) + 1 < (size_t)size)
		strncpy(kind, arguments + strlen(arguments) + 1,
			sizeof(kind) - 1);
}

QUIETLY __attribute__((constructor)) static void start()
{
	bool tailcall;

	read_kind();
	if (!shim_profiler_create)
		return;
	tailcall = strstr(kind, "+tail") != NULL;
	if (is("fast") || is("fast+tail") || is("mapped") || is("raw") ||
	    is("mapped+tail") || is("mapped-raw"))
		set_fast(tailcall);
	if (is("slow") || is("slow+tail") || is("slow-raw"))
		set_slow(tailcall);
	if (is("two") || is("two+tail"))
		set_other(false), set_fast(tailcall);
	if (is("raw-beside"))
		set_other(true), set_fast(false);
	if (is("slow-raw-beside"))
		set_other(true), set_slow(false);
	if (is("beside-raw"))
		set_fast(false), set_other(true);
	if (is("slow-beside-raw"))
		set_slow(false), set_other(true);
	if (is("elt2"))
		shim_profiler_set_enter_leave_function_hooks2(shim_profiler_create(NULL),
						     enter2, leave2, NULL);
	if (is("elt1"))
		shim_profiler_set_enter_leave_function_hooks(shim_profiler_create(NULL),
						    enter1, leave1, NULL);
	if (is("methods"))
		set_methods();
}

/* --- the functions --- */

static volatile int sink;

struct guard {
	QUIETLY guard() {}
	QUIETLY ~guard() { cleaned(); }
};

/* An exception of its destructor unwinds the destructor itself. */
struct throws_inside {
	QUIETLY throws_inside() {}
	QUIETLY ~throws_inside() noexcept(false) { again(); }
};

void thrower()
{
	sink = sink + 1;
	throw 1;
}

void cleaned()
{
	sink = sink + 1;
}

void handler()
{
	sink = sink + 1;
}

void plain()
{
	sink = sink + 1;
}

void again()
{
	try {
		thrower();
	} catch (int) {
		handler();
	}
}

/* Is unwound, and makes calls meanwhile. */
void middle()
{
	guard one;

	thrower();
}

/* ... and throws exceptions, which it catches. */
void deep()
{
	throws_inside one;

	thrower();
}

/* A function whose frame has no fixed size. */
void sized()
{
	guard one;
	char *room = (char *)alloca((size_t)(sink & 15) * 16 + 16);

	memset(room, 1, 16);
	sink = sink + room[3];
	thrower();
}

QUIETLY CALLED static int many(int a, int b, int c, int d, int e, int f, int g,
			       int h, int i)
{
	if (a + b + c + d + e + f + g + h + i > 0)
		thrower();
	return a;
}

/* A function with arguments on the stack when it is left. */
void pushes()
{
	guard one;

	sink = many(sink + 1, 2, 3, 4, 5, 6, 7, 8, 9);
}

INLINED void inlined()
{
	guard one;

	thrower();
}

void inlines()
{
	inlined();
}

/* Catches, throws again, and returns. */
void outer()
{
	try {
		middle();
	} catch (int) {
		handler();
	}
	plain();
	try {
		try {
			deep();
		} catch (int) {
			handler();
			throw;
		}
	} catch (int) {
		plain();
	}
	for (auto call : { sized, pushes, inlines }) {
		try {
			call();
		} catch (int) {
			plain();
		}
	}
}

void exits()
{
	guard one;

	pthread_exit(NULL);
}

QUIETLY static void *begin(void *)
{
	plain();
	exits();
	return NULL;
}

QUIETLY int main()
{
	pthread_t thread;

	plain();
	outer();
	outer();
	pthread_create(&thread, NULL, begin, NULL);
	pthread_join(thread, NULL);
	plain();
	printf("log %.*s\nindirect %d\n", (int)used, text, indirect);
	return 0;
}
