/*
 * A program that requests its own coverage (<shim/coverage.h>) before main, and prints
 * the results.  With arguments it makes no request.
 */
#include <dlfcn.h>
#include <shim/coverage.h>
#include <shim/profiler.h>
#include <stdio.h>
#include <stdlib.h>

#define PLAIN __attribute__((no_instrument_function))

#pragma weak shim_profiler_create
#pragma weak shim_profiler_enable_coverage
#pragma weak shim_profiler_set_coverage_filter_callback
#pragma weak shim_profiler_get_coverage_data
#pragma weak shim_profiler_on_function_reached
#pragma weak shim_profiler_on_coverage_object
#pragma weak shim_result_name

struct shim_profiler {
	const char *name;
	unsigned asked, first, second;
};

static struct shim_profiler one = { "one", 0, 0, 0 }, two = { "two", 0, 0, 0 };
static struct shim_profiler_handle *handle, *other;
static volatile int zero;
static unsigned told, objects, lines;

int first(int number);
int second(int number);
int third(int number);

int first(int number)
{
	if (number > 3)		/* + 2 */
		return 1;
	return zero;
}

int second(int number)
{
	return number;
}

int third(int number)
{
	return number + 1;
}

PLAIN static int ask(struct shim_profiler *profiler, shim_function function)
{
	profiler->asked++;
	profiler->first += function == (shim_function)first;
	profiler->second += function == (shim_function)second;
	return function == (profiler == &one ? (shim_function)first :
					       (shim_function)second);
}

/* Requests coverage of objects that are loaded later. */
PLAIN static int ask_all(struct shim_profiler *profiler, shim_function function)
{
	(void)profiler, (void)function;
	return 1;
}

PLAIN static void reached(struct shim_profiler *profiler,
			  shim_function function)
{
	(void)profiler;
	told += function == (shim_function)first;
}

PLAIN static void object(struct shim_profiler *profiler,
			 struct shim_coverage_object *given)
{
	(void)profiler;
	objects += given->state == SHIM_COVERAGE_LINES;
	lines += given->line_count;
}

PLAIN static void print(struct shim_profiler *profiler,
			const struct shim_coverage_data *data)
{
	const char *file = data->file_name;
	const char *base = file;

	for (; file && *file; file++)
		if (*file == '/')
			base = file + 1;
	printf("  %s %s:%u+%lu %lu\n", profiler->name, base ? base : "-",
	       data->line, data->code_offset > 0 ? 1ul : 0ul,
	       (unsigned long)data->counter);
}

PLAIN static void get(const char *name, shim_function function)
{
	enum shim_result r =
		shim_profiler_get_coverage_data(handle, function, print);

	printf("%s: %s\n", name, shim_result_name(r));
}

PLAIN __attribute__((constructor)) static void set_up(void)
{
	if (!shim_profiler_create || getenv("COVERS_NOT"))
		return;
	handle = shim_profiler_create(&one);
	other = shim_profiler_create(&two);
	printf("enable: %s\n", shim_result_name(shim_profiler_enable_coverage(handle)));
	shim_profiler_set_coverage_filter_callback(handle, ask);
	shim_profiler_set_coverage_filter_callback(other, ask);
	shim_profiler_on_function_reached(handle, reached);
	shim_profiler_on_coverage_object(handle, object);
}

int main(void)
{
	int (*call)(int) = NULL;
	void *library;

	if (!shim_profiler_create)
		return 0;
	if (!handle)
		handle = shim_profiler_create(&one);
	printf("late: %s\n", shim_result_name(shim_profiler_enable_coverage(handle)));
	first(1);
	first(1);
	third(1);
	get("first", (shim_function)first);
	get("second", (shim_function)second);
	get("third", (shim_function)third);
	get("nothing", 1);
	printf("no callback: %s\n",
	       shim_result_name(shim_profiler_get_coverage_data(
		       handle, (shim_function)first, NULL)));
	printf("told %u\n", told);
	printf("asked %d %d of first, %d %d of second\n", one.first > 0,
	       two.first > 0, one.second > 0, two.second > 0);
	shim_profiler_set_coverage_filter_callback(handle, ask_all);
	get("third", (shim_function)third);
	library = dlopen(getenv("COVERS_LIBRARY"), RTLD_NOW);
	if (library)
		*(void **)&call = dlsym(library, "library_call");
	if (call) {
		call(1);
		get("library", (shim_function)call);
	}
	printf("objects %u, lines %d\n", objects, lines > 0);
	return 0;
}
