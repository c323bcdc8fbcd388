/*
 * hooked_opens KIND LIBRARY... - opens, calls and closes plugins one after another,
 * usually at one address, with a profiler of its own that asks about each function.
 * Prints one line for each event:
 *
 *     E|L NAME LIBRARY      a hook or method event, with the client id if mapped
 *     ? NAME LIBRARY        a mapper or filter was asked
 *     gone RESULT           what is said of a function of the library that has gone
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <shim/hooks.h>
#include <shim/info.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#pragma weak shim_profiler_create
#pragma weak shim_profiler_on_method_enter
#pragma weak shim_profiler_set_call_instrumentation_filter_callback
#pragma weak shim_profiler_set_event_mask
#pragma weak shim_profiler_set_enter_leave_function_hooks3
#pragma weak shim_profiler_set_enter_leave_function_hooks3_with_info
#pragma weak shim_profiler_set_function_id_mapper
#pragma weak shim_profiler_enable_symbols
#pragma weak shim_function_name
#pragma weak shim_function_info
#pragma weak shim_image_info
#pragma weak shim_result_name

#define QUIETLY __attribute__((no_instrument_function))

static char text[1 << 16];
static size_t used;
static char kind[32];

QUIETLY static int is(const char *name)
{
	return strcmp(kind, name) == 0;
}

QUIETLY static void note(const char *what)
{
	size_t size = strlen(what);

	if (used + size > sizeof(text))
		abort();
	memcpy(text + used, what, size);
	used += size;
}

/* Prints shim's description of a function, in any context. */
QUIETLY static void note_function(const char *what, shim_function function)
{
	char name[64] = "", path[256] = "";
	enum shim_result r;
	shim_image image = 0;

	r = shim_function_info(function, &image, NULL);
	if (r == SHIM_OK)
		r = shim_image_info(image, NULL, NULL, NULL, NULL, sizeof(path),
				    NULL, path);
	if (r == SHIM_OK)
		r = shim_function_name(function, sizeof(name), NULL, name);
	note(what);
	note(" ");
	note(r == SHIM_OK ? name : shim_result_name(r));
	note(" ");
	note(strrchr(path, '/') ? strrchr(path, '/') + 1 : "?");
	note("\n");
}

QUIETLY static void fast_enter(union shim_function_or_client function)
{
	note_function("E", function.function);
}

QUIETLY static void fast_leave(union shim_function_or_client function)
{
	note_function("L", function.function);
}

QUIETLY static void slow_enter(union shim_function_or_client function,
			       shim_elt_info info)
{
	(void)info;
	note_function("E", function.function);
}

QUIETLY static void on_enter(struct shim_profiler *profiler,
			     shim_function function,
			     struct shim_call_context *context)
{
	(void)profiler;
	(void)context;
	note_function("E", function);
}

/* The client id shows which answer of the mapper it was. */
static uintptr_t asked;

QUIETLY static uintptr_t map(shim_function function, int *hook)
{
	(void)hook;
	note_function("?", function);
	return ++asked;
}

QUIETLY static void mapped_enter(union shim_function_or_client function)
{
	char line[32];

	snprintf(line, sizeof(line), "E %lu\n", (unsigned long)function.client);
	note(line);
}

QUIETLY static enum shim_call_instrumentation_flags
choose(struct shim_profiler *profiler, shim_function function)
{
	(void)profiler;
	note_function("?", function);
	return SHIM_CALL_INSTRUMENTATION_ENTER;
}

QUIETLY static void read_kind(void)
{
	char arguments[4096] = "";
	int file = open("/proc/self/cmdline", O_RDONLY);
	ssize_t size = read(file, arguments, sizeof(arguments) - 1);

	close(file);
	if (size > 0)
		strncpy(kind, arguments + strlen(arguments) + 1,
			sizeof(kind) - 1);
}

QUIETLY __attribute__((constructor)) static void start(void)
{
	struct shim_profiler_handle *handle;

	read_kind();
	if (!shim_profiler_create)
		return;
	handle = shim_profiler_create(NULL);
	shim_profiler_enable_symbols(handle);
	if (is("fast"))
		shim_profiler_set_enter_leave_function_hooks3(handle, fast_enter,
						     fast_leave, NULL);
	if (is("slow")) {
		shim_profiler_set_event_mask(handle, SHIM_MONITOR_ENTERLEAVE |
						    SHIM_ENABLE_FRAME_INFO);
		shim_profiler_set_enter_leave_function_hooks3_with_info(
			handle, slow_enter, NULL, NULL);
	}
	if (is("mapper")) {
		shim_profiler_set_enter_leave_function_hooks3(handle, mapped_enter, NULL,
						     NULL);
		shim_profiler_set_function_id_mapper(handle, map);
	}
	if (is("filter")) {
		shim_profiler_set_call_instrumentation_filter_callback(handle,
								       choose);
		shim_profiler_on_method_enter(handle, on_enter);
	}
}

QUIETLY int main(int count, char **arguments)
{
	void *last = NULL;

	for (int i = 2; i < count; i++) {
		void *library = dlopen(arguments[i], RTLD_NOW);
		int (*work)(int) = library ? (int (*)(int))dlsym(library,
								 "work") :
					     NULL;

		if (!work) {
			fprintf(stderr, "%s\n", dlerror());
			return 1;
		}
		work(1);
		printf("%s\n", !last		   ? "first" :
			       last == (void *)work ? "same place" :
						      "elsewhere");
		last = (void *)work;
		dlclose(library);
		if (shim_function_info)
			printf("gone %s\n",
			       shim_result_name(shim_function_info(
				       (shim_function)work, NULL, NULL)));
	}
	printf("%.*s", (int)used, text);
	return 0;
}
