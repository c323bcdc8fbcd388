/*
 * Hooks of generation 2, for profilers that were written for the CLR of 2005.
 */
#include <shim/hooks.h>
#include <stdio.h>
#include <string.h>

static unsigned long enters, leaves, frames;
static const char *path;

static void entered(shim_function function, uintptr_t client,
		    shim_frame_info frame, struct shim_argument_info *arguments)
{
	(void)function;
	(void)client;
	(void)arguments;
	enters++;
	frames += frame != 0;
}

static void left(shim_function function, uintptr_t client,
		 shim_frame_info frame, struct shim_argument_range *result)
{
	(void)function;
	(void)client;
	(void)frame;
	(void)result;
	leaves++;
}

static void tail(shim_function function, uintptr_t client,
		 shim_frame_info frame)
{
	left(function, client, frame, NULL);
}

static void ends(struct shim_profiler *profiler)
{
	FILE *file = fopen(path, "w");

	(void)profiler;
	if (!file)
		return;
	fprintf(file, "enters %lu\nleaves %lu\nframes %lu\n", enters, leaves,
		frames);
	fclose(file);
}

/* "elt2:FILE" */
SHIM_PROFILER_MODULE(elt2)
{
	struct shim_profiler_handle *handle = shim_profiler_create(NULL);

	path = strchr(description, ':');
	if (!handle || !path)
		return SHIM_E_FAIL;
	path++;
	shim_profiler_on_runtime_shutdown_end(handle, ends);
	shim_profiler_set_event_mask(handle, SHIM_MONITOR_ENTERLEAVE |
					    SHIM_ENABLE_FRAME_INFO);
	return shim_profiler_set_enter_leave_function_hooks2(handle, entered, left,
						    tail);
}
