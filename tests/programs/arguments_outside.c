/*
 * A function that a library without hooks and debug information contains, and that the
 * program contains inlined: prints how many arguments a hook sees.
 */
#include <shim/hooks.h>
#include <stdio.h>

#ifdef LIBRARY
int outside(int a, short b)
{
	return a + b;
}
#else

#pragma weak shim_profiler_create
#pragma weak shim_profiler_set_event_mask
#pragma weak shim_profiler_set_enter_leave_function_hooks3_with_info
#pragma weak shim_get_function_enter3_info
#pragma weak shim_get_function_leave3_info

#define QUIETLY __attribute__((no_instrument_function))

int outside(int a, short b);

extern inline __attribute__((gnu_inline, always_inline)) int outside(int a,
								     short b)
{
	return a * b;
}

QUIETLY static void enter(union shim_function_or_client function,
			  shim_elt_info info)
{
	struct shim_argument_info arguments[4];
	uint32_t size = sizeof(arguments);
	enum shim_result result = shim_get_function_enter3_info(
		function.function, info, NULL, &size, arguments);

	if (function.function == (uintptr_t)outside)
		printf("%#x: %u arguments, %u and %u bytes\n", result,
		       arguments->ranges_count, arguments->ranges[0].length,
		       arguments->ranges[1].length);
}

QUIETLY static void leave(union shim_function_or_client function,
			  shim_elt_info info)
{
	struct shim_argument_range result = { .length = 0 };
	shim_frame_info frame;

	if (function.function == (uintptr_t)outside)
		printf("%#x: a result\n",
		       shim_get_function_leave3_info(function.function, info,
						     &frame, &result));
}

QUIETLY __attribute__((constructor)) static void start(void)
{
	struct shim_profiler_handle *handle = shim_profiler_create(NULL);

	shim_profiler_set_event_mask(handle, SHIM_MONITOR_ENTERLEAVE |
					    SHIM_ENABLE_FUNCTION_ARGS |
					    SHIM_ENABLE_FUNCTION_RETVAL);
	shim_profiler_set_enter_leave_function_hooks3_with_info(handle, enter, leave,
						       NULL);
}

__attribute__((noinline)) static int calls(int count)
{
	return outside(count, 2) + 1;
}

QUIETLY int main(int count, char **unused)
{
	(void)unused;
	return calls(count) - 3;
}
#endif
