/*
 * A program that is its own profiler, through weak symbols, so that it also runs
 * without shim; with -DINSIDE it contains a module.
 */
#include <shim/hooks.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLAIN __attribute__((no_instrument_function))
#define WEAK(name) extern __typeof__(name) name __attribute__((weak))

WEAK(shim_profiler_load);
WEAK(shim_profiler_create);
WEAK(shim_profiler_api_version);
WEAK(shim_profiler_on_runtime_shutdown_end);
WEAK(shim_profiler_set_cleanup_callback);
WEAK(shim_profiler_set_enter_leave_function_hooks3);

struct shim_profiler {
	int number;
};

static unsigned long enters, leaves;
static struct shim_profiler self = { 7 };

PLAIN static void entered(union shim_function_or_client function)
{
	(void)function;
	enters++;
}

PLAIN static void left(union shim_function_or_client function)
{
	(void)function;
	leaves++;
}

PLAIN static void ends(struct shim_profiler *profiler)
{
	const char *path = getenv("EMBEDDER_RESULT");
	FILE *file = path ? fopen(path, "w") : NULL;

	if (!file)
		return;
	fprintf(file, "profiler %d\nenters %lu\nleaves %lu\n",
		profiler ? profiler->number : 0, enters, leaves);
	fclose(file);
}

PLAIN static enum shim_result set_up(struct shim_profiler *profiler)
{
	struct shim_profiler_handle *handle = shim_profiler_create(profiler);

	if (!handle)
		return SHIM_E_FAIL;
	shim_profiler_on_runtime_shutdown_end(handle, ends);
	return shim_profiler_set_enter_leave_function_hooks3(handle, entered, left,
						    NULL);
}

#ifdef INSIDE
/* `profrun -p embedder` finds it here, because the search begins with the program. */
SHIM_PROFILER_MODULE(embedder)
{
	return set_up(NULL);
}
#endif

/* EMBEDDER_LOAD: descriptions separated by blanks; "*" at the end of one makes it a
 * mebibyte long. */
PLAIN static void load_all(char *list)
{
	for (char *item = strtok(list, " "); item; item = strtok(NULL, " ")) {
		size_t length = strlen(item);
		size_t size = item[length - 1] == '*' ? 1 << 20 : length;
		char *description = malloc(size + 1);

		memset(description, 'x', size);
		memcpy(description, item, length - (size != length));
		description[size] = '\0';
		fprintf(stderr, "%.40s: 0x%08x\n", item,
			(unsigned)shim_profiler_load(description, NULL, 0));
		free(description);
	}
}

__attribute__((constructor)) PLAIN static void begin(void)
{
	const char *list = getenv("EMBEDDER_LOAD");

	if (!shim_profiler_create)
		return;
	if (list && shim_profiler_load)
		load_all(strdup(list));
	else if (getenv("EMBEDDER_RESULT"))
		set_up(&self);
}

static int leaf(int n)
{
	return n + 1;
}

int main(void)
{
	int n = 0;

	while (n < 1000)
		n = leaf(n);
	if (shim_profiler_api_version &&
	    shim_profiler_api_version() != SHIM_PROFILER_API_VERSION)
		return 1;
	if (shim_profiler_create && shim_profiler_create(NULL))
		return 2; /* too late */
	printf("%d\n", n);
	return 7;
}
