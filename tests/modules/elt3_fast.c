/*
 * Counts calls with fast hooks, the cheapest kind.
 *
 * The program's own code calls a fast hook at any place, with any lock held, also in
 * signal handlers: the hook may only do what is always safe.
 */
#include <shim/hooks.h>
#include <stdio.h>
#include <string.h>

static unsigned long enters, leaves;
static const char *path;

static void entered(union shim_function_or_client function)
{
	(void)function;
	__atomic_add_fetch(&enters, 1, __ATOMIC_RELAXED);
}

static void left(union shim_function_or_client function)
{
	(void)function;
	__atomic_add_fetch(&leaves, 1, __ATOMIC_RELAXED);
}

/* A callback runs on an ordinary thread and may do anything. */
static void ends(struct shim_profiler *profiler)
{
	FILE *file = fopen(path, "w");

	(void)profiler;
	if (!file)
		return;
	fprintf(file, "enters %lu\nleaves %lu\n", enters, leaves);
	fclose(file);
}

/* "elt3_fast:FILE" */
SHIM_PROFILER_MODULE(elt3_fast)
{
	struct shim_profiler_handle *handle;

	path = strchr(description, ':');
	if (!path)
		return SHIM_E_INVALIDARG;
	path++;
	handle = shim_profiler_create(NULL);
	if (!handle)
		return SHIM_E_FAIL;
	shim_profiler_on_runtime_shutdown_end(handle, ends);
	return shim_profiler_set_enter_leave_function_hooks3(handle, entered, left,
						    NULL);
}
