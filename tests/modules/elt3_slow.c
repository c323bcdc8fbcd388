/*
 * Slow hooks get an eltInfo, with which they can ask about the current call: here, for
 * its frame.  The flags must first announce the inquiries.
 */
#include <shim/hooks.h>
#include <stdio.h>
#include <string.h>

/* shim passes this to every callback. */
struct shim_profiler {
	const char *path;
	unsigned long enters, leaves, frames, failures;
};

static struct shim_profiler self;

/* Compilers expect that a stack frame begins at a multiple of 16. */
static void check_alignment(uintptr_t frame)
{
	if (frame % 16 != 0)
		self.failures++;
}

static void entered(union shim_function_or_client function, shim_elt_info info)
{
	shim_frame_info frame = 0;
	uint32_t size = 0;
	enum shim_result result;

	self.enters++;
	check_alignment((uintptr_t)__builtin_frame_address(0));
	result = shim_get_function_enter3_info(function.function, info, &frame,
					       &size, NULL);
	if (result == SHIM_OK && frame)
		self.frames++;
	else
		self.failures++;
}

static void left(union shim_function_or_client function, shim_elt_info info)
{
	shim_frame_info frame = 0;

	self.leaves++;
	check_alignment((uintptr_t)__builtin_frame_address(0));
	if (shim_get_function_leave3_info(function.function, info, &frame,
					  NULL) != SHIM_OK)
		self.failures++;
}

static void ends(struct shim_profiler *profiler)
{
	FILE *file = fopen(profiler->path, "w");

	if (!file)
		return;
	fprintf(file, "enters %lu\nleaves %lu\nframes %lu\nfailures %lu\n",
		profiler->enters, profiler->leaves, profiler->frames,
		profiler->failures);
	fclose(file);
}

/* "elt3_slow:FILE" */
SHIM_PROFILER_MODULE(elt3_slow)
{
	struct shim_profiler_handle *handle = shim_profiler_create(&self);
	const char *path = strchr(description, ':');
	enum shim_result result;

	if (!handle || !path)
		return SHIM_E_FAIL;
	self.path = path + 1;
	shim_profiler_on_runtime_shutdown_end(handle, ends);
	result = shim_profiler_set_event_mask(handle, SHIM_MONITOR_ENTERLEAVE |
						     SHIM_ENABLE_FRAME_INFO);
	if (SHIM_FAILED(result))
		return result;
	return shim_profiler_set_enter_leave_function_hooks3_with_info(handle, entered,
							      left, NULL);
}
