/*
 * A complete ELT profiler: writes down how often each function was called.
 *
 * The hook interrupts the program, so it only counts, in a table of fixed size and
 * without a lock.  Names are looked up at the end, in a callback that may block.
 */
#include <shim/hooks.h>
#include <shim/info.h>
#include <stdio.h>
#include <string.h>

static struct slot {
	shim_function function;
	unsigned long calls;
} slots[4096];
static const char *path;

static void entered(union shim_function_or_client id)
{
	for (unsigned i = 0; i < 4096; i++) {
		struct slot *slot = &slots[(id.function / 16 + i) % 4096];
		shim_function old = 0;

		if (!__atomic_compare_exchange_n(&slot->function, &old, id.function,
						 0, __ATOMIC_RELAXED,
						 __ATOMIC_RELAXED) &&
		    old != id.function)
			continue; /* another function's slot */
		__atomic_add_fetch(&slot->calls, 1, __ATOMIC_RELAXED);
		return;
	}
}

static void ends(struct shim_profiler *profiler)
{
	FILE *file = fopen(path, "w");

	(void)profiler;
	for (unsigned i = 0; file && i < 4096; i++) {
		char name[256] = "?";

		if (slots[i].calls == 0)
			continue;
		shim_function_demangled_name(slots[i].function, sizeof(name), NULL,
					     name);
		fprintf(file, "%lu %s\n", slots[i].calls, name);
	}
	if (file)
		fclose(file);
}

/* "calls:FILE" */
SHIM_PROFILER_MODULE(calls)
{
	struct shim_profiler_handle *handle = shim_profiler_create(NULL);

	path = strchr(description, ':');
	if (!handle || !path++)
		return SHIM_E_INVALIDARG;
	shim_profiler_on_runtime_shutdown_end(handle, ends);
	return shim_profiler_set_enter_leave_function_hooks3(handle, entered, NULL,
							     NULL);
}
