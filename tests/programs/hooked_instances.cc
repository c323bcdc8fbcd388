/*
 * hooked_instances - prints which instance of its function each slow hook gets: for
 * templates, for functions that the linker has folded, for copies, for inlined
 * functions.
 *
 * Prints the hook's letter, the function's name, the instance's name and the name of
 * the function whose code it is.
 */
#include <cstdio>
#include <cstdlib>
#include <shim/hooks.h>
#include <shim/info.h>

#pragma weak shim_profiler_create
#pragma weak shim_profiler_set_event_mask
#pragma weak shim_profiler_set_enter_leave_function_hooks3_with_info
#pragma weak shim_get_function_enter3_info
#pragma weak shim_get_function_leave3_info
#pragma weak shim_get_function_tailcall3_info
#pragma weak shim_get_frame_instance
#pragma weak shim_function_demangled_name

#define QUIETLY __attribute__((no_instrument_function))
#define CALLED	__attribute__((noinline))

static volatile int sink;
static bool is_on;
static shim_frame_info kept;

QUIETLY static void note(char letter, shim_function function,
			 shim_frame_info frame)
{
	char called[128] = "?", name[128] = "?", in[128] = "?", few[4];
	shim_function code = 0;
	uint32_t total = 0, again = 0;
	int r;

	if (!is_on)
		return;
	shim_function_demangled_name(function, sizeof(called), NULL, called);
	r = shim_get_frame_instance(frame, &code, sizeof(name), &total, name);
	shim_function_demangled_name(code, sizeof(in), NULL, in);
	printf("%c %s|%s|%s\n", letter, called, name, in);
	if (r != SHIM_OK || total == 0 ||
	    shim_get_frame_instance(frame, NULL, sizeof(few), &again, few) ||
	    again != total || few[3] != '\0' ||
	    shim_get_frame_instance(frame, NULL, 4, NULL, NULL) !=
		    SHIM_E_INVALIDARG ||
	    shim_get_frame_instance(frame + 8, NULL, 0, NULL, NULL) !=
		    SHIM_E_INVALIDARG ||
	    shim_get_frame_instance(0, NULL, 0, NULL, NULL) != SHIM_E_INVALIDARG)
		printf("wrong %#x %u %u\n", r, total, again);
	kept = frame;
}

QUIETLY static void enter(union shim_function_or_client function,
			  shim_elt_info info)
{
	shim_frame_info frame = 0;

	if (shim_get_function_enter3_info(function.function, info, &frame, NULL,
					  NULL) == SHIM_OK)
		note('E', function.function, frame);
}

QUIETLY static void leave(union shim_function_or_client function,
			  shim_elt_info info)
{
	shim_frame_info frame = 0;

	if (shim_get_function_leave3_info(function.function, info, &frame,
					  NULL) == SHIM_OK)
		note('L', function.function, frame);
}

QUIETLY static void tail_call(union shim_function_or_client function,
			      shim_elt_info info)
{
	shim_frame_info frame = 0;

	if (shim_get_function_tailcall3_info(function.function, info,
					     &frame) == SHIM_OK)
		note('T', function.function, frame);
}

QUIETLY __attribute__((constructor)) static void start(void)
{
	struct shim_profiler_handle *handle;

	if (!shim_profiler_create)
		abort();
	handle = shim_profiler_create(NULL);
	shim_profiler_set_event_mask(handle,
			    SHIM_MONITOR_ENTERLEAVE | SHIM_ENABLE_FRAME_INFO);
	shim_profiler_set_enter_leave_function_hooks3_with_info(handle, enter, leave,
						       tail_call);
}

/* The code for int and long is the same; only the names differ. */
template <typename T> CALLED T *twice(T *at)
{
	sink = sink * 2;
	return at;
}

/* gcc -O3 makes a copy for the 3. */
CALLED static int copied(int *at, int much)
{
	for (int i = 0; i < much; i++)
		for (int j = 0; j < much; j++)
			*at += sink / much;
	return *at;
}

QUIETLY CALLED static int call_copied(int *at, int much)
{
	for (int i = 0; i < much; i++)
		copied(at, 3);
	return copied(at, much);
}

static inline __attribute__((always_inline)) int inlined(int n)
{
	return sink + n * 3;
}

CALLED int around(int n)
{
	return inlined(n) + 7;
}

CALLED int target(int n)
{
	return n + 4000;
}

CALLED int tail(int n)
{
#ifdef __clang__
	[[clang::musttail]]
#endif
	return target(n + 1);
}

QUIETLY int main(void)
{
	int number = 1;
	long large = 2;

	is_on = true;
	twice(&number);
	twice(&large);
	call_copied(&number, number);
	around(1);
	tail(1);
	is_on = false;
	if (shim_get_frame_instance(kept, NULL, 0, NULL, NULL) !=
	    SHIM_E_UNSUPPORTED_CALL_SEQUENCE)
		printf("wrong outside\n");
	return number + (int)large == 0;
}
