/*
 * arguments_again LIBRARY...: opens each library, calls its function some times, and
 * closes it.  Each time it prints the address of the function and the reported sizes of
 * its argument and its result.
 *
 * With REMOVES, the library's file is removed as soon as it is open; with AHEAD, debug
 * information is opened before any inquiry.
 */
#include <dlfcn.h>
#include <shim/hooks.h>
#include <shim/values.h>
#include <stdio.h>

#ifdef TYPE
/* The libraries: the same code for each type. */
TYPE again(TYPE value)
{
	return value;
}
#else

#pragma weak shim_profiler_create
#pragma weak shim_profiler_set_event_mask
#pragma weak shim_profiler_set_enter_leave_function_hooks3_with_info
#pragma weak shim_get_function_enter3_info
#pragma weak shim_get_function_leave3_info
#pragma weak shim_profiler_enable_values

#define QUIETLY __attribute__((no_instrument_function))

static unsigned argument_length, result_length;

QUIETLY static void enter(union shim_function_or_client function,
			  shim_elt_info info)
{
	struct shim_argument_info arguments[2];
	uint32_t size = sizeof(arguments);

	argument_length = 0;
	if (shim_get_function_enter3_info(function.function, info, NULL, &size,
					  arguments) == SHIM_OK)
		argument_length = arguments->ranges[0].length;
}

QUIETLY static void leave(union shim_function_or_client function,
			  shim_elt_info info)
{
	struct shim_argument_range result = { .length = 0 };
	shim_frame_info frame;

	shim_get_function_leave3_info(function.function, info, &frame, &result);
	result_length = result.start ? result.length : 0;
}

QUIETLY __attribute__((constructor)) static void start(void)
{
	struct shim_profiler_handle *handle = shim_profiler_create(NULL);

	shim_profiler_set_event_mask(handle, SHIM_MONITOR_ENTERLEAVE |
					    SHIM_ENABLE_FUNCTION_ARGS |
					    SHIM_ENABLE_FUNCTION_RETVAL);
	shim_profiler_set_enter_leave_function_hooks3_with_info(handle, enter, leave,
						       NULL);
#ifdef AHEAD
	shim_profiler_enable_values(handle);
#endif
}

QUIETLY int main(int count, char **libraries)
{
	for (int i = 1; i < count; i++) {
		void *library = dlopen(libraries[i], RTLD_NOW);
		int (*again)(int) =
			library ? (int (*)(int))dlsym(library, "again") : NULL;

		if (!again)
			return 1;
#ifdef REMOVES
		remove(libraries[i]);
#endif
		for (int calls = 0; calls < 3; calls++) {
			again(calls);
			printf("%p %u %u\n", (void *)again, argument_length,
			       result_length);
		}
		dlclose(library);
	}
}
#endif
