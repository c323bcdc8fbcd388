/*
 * Values and their expected text: each SHOW is a function with a parameter of that
 * type, the value, and the expected answers of shim: the type's name, the text, the
 * JSON.  The program is its own profiler: it asks in a callback.
 *
 * An empty expectation is not checked; long addresses are written 0xADDRESS.
 */
#ifndef VALUES_H
#define VALUES_H

#include <pthread.h>
#include <shim/profiler.h>
#include <shim/values.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#pragma weak shim_profiler_create
#pragma weak shim_profiler_on_runtime_initialized
#pragma weak shim_thread_create
#pragma weak shim_get_parameter_count
#pragma weak shim_get_parameter_info
#pragma weak shim_get_result_type
#pragma weak shim_get_type_info
#pragma weak shim_print_value

struct shown {
	const char *name;
	void *function;
	const void *value;
	const char *type, *text, *json;
};

/* @value is at the offset of a parameter of type @of. */
#define SHOW_AT(name, of, at, type_, text_, json_)                             \
	__attribute__((noinline)) void take_##name(__typeof__(of) name); \
	__attribute__((noinline)) void take_##name(__typeof__(of) name)        \
	{                                                                      \
		(void)name;                                                    \
		__asm__ volatile("" ::: "memory");                             \
	}                                                                      \
	static const struct shown shown_##name = { #name,                      \
						   (void *)take_##name,        \
						   at,                         \
						   type_,                      \
						   text_,                      \
						   json_ };
#define SHOW(name, of, type, text, json, ...)                                  \
	static __typeof__(of) value_##name = __VA_ARGS__;                      \
	SHOW_AT(name, of, &value_##name, type, text, json)

static char printed[70000];
static int failures;

/* Prints one line: name, tab, actual text, tab, expected text. */
static void tell(const char *name, const char *what, const char *got,
		 const char *want)
{
	printf("%s %s\t%s\t%s\n", name, what, got, want);
}

static void fail(const char *what, int result)
{
	printf("fails %s\t%x\t0\n", what, (unsigned)result);
	failures++;
}

static const char *print(shim_type type, const void *value, uint32_t flags)
{
	uint32_t total = 0;
	enum shim_result r = shim_print_value(type, value, flags,
					      sizeof(printed), &total, printed);

	if (r != SHIM_OK)
		fail("print", r);
	else if (total != strlen(printed) + 1)
		fail("total", (int)total);
	return printed;
}

static void show(const struct shown *shown)
{
	shim_function function = (shim_function)shown->function;
	char name[512];
	shim_type type;
	enum shim_result r;

	r = shim_get_parameter_info(function, 0, &type, sizeof(name), NULL,
				    name);
	if (r != SHIM_OK) {
		fail(shown->name, r);
		return;
	}
	tell(shown->name, "name", name, shown->name);
	shim_get_type_info(type, NULL, NULL, sizeof(name), NULL, name);
	tell(shown->name, "type", name, shown->type);
	tell(shown->name, "text", print(type, shown->value, 0), shown->text);
	tell(shown->name, "json", print(type, shown->value, SHIM_PRINT_JSON),
	     shown->json);
}

static void show_all(void);
int main(void);
static int is_done;

/* --- several inquiries at once --- */

static shim_type first_type;
static const void *first_value;
static char first_text[4096];

static void print_often(void *unused)
{
	char mine[4096];

	(void)unused;
	for (int i = 0; i < 20000; i++) {
		mine[0] = '\0';
		shim_print_value(first_type, first_value, 0, sizeof(mine), NULL,
				 mine);
		if (strcmp(mine, first_text) != 0)
			__atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED);
	}
	__atomic_add_fetch(&is_done, 1, __ATOMIC_RELEASE);
}

static void take_first(const struct shown *shown)
{
	shim_get_parameter_info((shim_function)shown->function, 0, &first_type,
				0, NULL, NULL);
	first_value = shown->value;
	strcpy(first_text, print(first_type, first_value, 0));
}

static void show_two_threads(const struct shown *shown)
{
	take_first(shown);
	shim_thread_create(print_often, NULL);
	shim_thread_create(print_often, NULL);
	while (__atomic_load_n(&is_done, __ATOMIC_ACQUIRE) < 2)
		usleep(1000);
	printf("threads differ\t%d\t0\n", failures);
}

static void show_after_fork(const struct shown *shown)
{
	int status = -1;
	pid_t child;

	take_first(shown);
	fflush(stdout);
	child = fork();
	if (child == 0) {
		print_often(NULL);
		_exit(failures != 0);
	}
	waitpid(child, &status, 0);
	printf("child status\t%d\t0\n", status);
}

/* --- where memory ends --- */

static void show_strings_at_the_end(shim_type type)
{
	char *pages = (char *)mmap(NULL, 8192, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const char *at = pages + 4096 - 4;

	munmap(pages + 4096, 4096);
	memcpy(pages + 4096 - 4, "abc", 4);
	tell("end", "whole", print(type, &at, 0), "\"abc\"");
	memcpy(pages + 4096 - 4, "abcd", 4);
	tell("end", "no NUL", print(type, &at, 0), "\"abcd\"...");
	at = pages + 4096;
	tell("end", "behind", strstr(print(type, &at, 0), " (unreadable)"),
	     " (unreadable)");
	mprotect(pages, 4096, PROT_NONE);
	at = pages;
	tell("end", "forbidden", strstr(print(type, &at, 0), " (unreadable)"),
	     " (unreadable)");
}

/* --- invalid inquiries --- */

static void show_refusals(shim_function function, shim_type type)
{
	int value[16] = { 0 };
	uint32_t n = 77;
	char text[4] = "xyz";

	printf("refuse none\t%x\t80070057\n",
	       (unsigned)shim_print_value(0, value, 0, 0, NULL, NULL));
	printf("refuse junk\t%x\t80070057\n",
	       (unsigned)shim_print_value((shim_type)value, value, 0, 0, NULL,
					  NULL));
	printf("refuse NULL\t%x\t80070057\n",
	       (unsigned)shim_print_value(type, NULL, 0, 4, NULL, text));
	printf("refuse flags\t%x\t80070057\n",
	       (unsigned)shim_print_value(type, value, 8, 4, NULL, text));
	printf("refuse buffer\t%x\t80070057\n",
	       (unsigned)shim_print_value(type, value, 0, 4, &n, NULL));
	printf("refuse position\t%x\t80070057\n",
	       (unsigned)shim_get_parameter_info(function, 1, NULL, 4, &n,
						 text));
	printf("refuse inside\t%x\t80070057\n",
	       (unsigned)shim_get_parameter_count(
		       (shim_function)main + 1, &n));
	printf("refuse nowhere\t%x\t80070057\n",
	       (unsigned)shim_get_result_type(16, &type));
	printf("untouched\t%u %s\t77 xyz\n", n, text);
}

static void ask(struct shim_profiler *unused)
{
	(void)unused;
	show_all();
	printf("failures\t%d\t0\n", failures);
	fflush(stdout);
}

__attribute__((constructor)) static void begin(void)
{
	if (shim_profiler_create)
		shim_profiler_on_runtime_initialized(
			shim_profiler_create(NULL), ask);
}

int main(void)
{
	return 0;
}

#endif
