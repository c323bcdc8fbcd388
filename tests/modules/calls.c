/* A complete ELT profiler: writes to the file of "calls:FILE" how often each
 * function was called.  A hook interrupts the program, so it only counts. */
#include <shim/hooks.h>
#include <shim/info.h>
#include <stdio.h>
#include <string.h>

static shim_function functions[4096];
static unsigned long calls[4096], used;
static uintptr_t map(shim_function function, int *hook)
{
	uintptr_t i = __atomic_add_fetch(&used, 1, __ATOMIC_RELAXED);
	if ((*hook = i < 4096))
		functions[i] = function;
	return i; /* the function's client id; 0 would mean none */
}
static void enter(union shim_function_or_client id)
{
	__atomic_add_fetch(&calls[id.client], 1, __ATOMIC_RELAXED);
}
static void end(struct shim_profiler *colon)
{
	char name[256];
	FILE *file = fopen((char *)colon + 1, "w");
	for (unsigned i = 1; file && i <= used && i < 4096; i++)
		if (!shim_function_demangled_name(functions[i], 256, 0, name))
			fprintf(file, "%lu %s\n", calls[i], name);
	if (file)
		fclose(file);
}
SHIM_PROFILER_MODULE(calls)
{
	void *colon = strchr(description, ':');
	struct shim_profiler_handle *self = shim_profiler_create(colon);
	if (colon == NULL)
		return SHIM_E_INVALIDARG;
	shim_profiler_set_function_id_mapper(self, map);
	shim_profiler_on_runtime_shutdown_end(self, end);
	return shim_profiler_set_enter_leave_function_hooks3(self, enter, 0, 0);
}
