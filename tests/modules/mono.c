/*
 * A profiler in the manner of Mono: shim calls its filter once for each function, and
 * calls of the chosen functions raise method_* events.  This filter chooses every
 * second function.
 */
#include <shim/hooks.h>
#include <stdio.h>
#include <string.h>

struct shim_profiler {
	const char *path;
	unsigned long asked, chosen, enters, leaves;
};

static struct shim_profiler self;

static enum shim_call_instrumentation_flags
choose(struct shim_profiler *profiler, shim_function function)
{
	(void)function;
	if (profiler->asked++ % 2)
		return SHIM_CALL_INSTRUMENTATION_NONE;
	profiler->chosen++;
	return (enum shim_call_instrumentation_flags)(
		SHIM_CALL_INSTRUMENTATION_ENTER |
		SHIM_CALL_INSTRUMENTATION_LEAVE);
}

static void entered(struct shim_profiler *profiler, shim_function function,
		    struct shim_call_context *context)
{
	(void)function;
	(void)context;
	profiler->enters++;
}

static void left(struct shim_profiler *profiler, shim_function function,
		 struct shim_call_context *context)
{
	(void)function;
	(void)context;
	profiler->leaves++;
}

static void ends(struct shim_profiler *profiler)
{
	FILE *file = fopen(profiler->path, "w");

	if (!file)
		return;
	fprintf(file, "asked %lu\nchosen %lu\nenters %lu\nleaves %lu\n",
		profiler->asked, profiler->chosen, profiler->enters,
		profiler->leaves);
	fclose(file);
}

/* "mono:FILE" */
SHIM_PROFILER_MODULE(mono)
{
	struct shim_profiler_handle *handle = shim_profiler_create(&self);
	const char *path = strchr(description, ':');

	if (!handle || !path)
		return SHIM_E_FAIL;
	self.path = path + 1;
	shim_profiler_on_method_enter(handle, entered);
	shim_profiler_on_method_leave(handle, left);
	shim_profiler_on_runtime_shutdown_end(handle, ends);
	return shim_profiler_set_call_instrumentation_filter_callback(handle,
								      choose);
}
