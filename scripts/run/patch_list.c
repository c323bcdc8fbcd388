/*
 * The library itself finds the functions, in the program as it was loaded: so the list is
 * what --patch does.  It writes them to a file of a recording that is removed again
 * (shim/sources/unmarked_list.c).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <shim/format.h>

#include "json_text.h"
#include "patch_list.h"
#include "preload.h"
#include "recording.h"
#include "say.h"
#include "trial.h"

/* --- the program ---------------------------------------------------------- */

static void set_preload(const char *library, const struct program *program)
{
	const char *old = getenv("LD_PRELOAD");
	char *value;

	if (old == NULL)
		old = "";
	if (asprintf(&value, "%s%s%s%s%s", program->sanitizer,
		     program->sanitizer[0] != '\0' ? ":" : "", old,
		     old[0] != '\0' ? ":" : "", preload_entry(library)) > 0)
		setenv("LD_PRELOAD", value, 1);
}

static void become_program(const char *library, const struct program *program,
			   const struct filter *patch, const char *directory)
{
	char *argv[] = { (char *)(uintptr_t)program->name, NULL };
	int null = open("/dev/null", O_RDWR);
	static const struct rlimit no_core;

	dup2(null, 0);
	dup2(null, 1);
	dup2(null, 2);
	setrlimit(RLIMIT_CORE, &no_core);
	set_preload(library, program);
	setenv("SHIM_DIR", directory, 1);
	setenv("SHIM_PROFILE", "calltree:counts", 1);
	setenv("SHIM_LIST_PATCH", "1", 1);
	unsetenv("SHIM_DISABLE");
	unsetenv("SHIM_FILTER");
	unsetenv("SHIM_BUDGET");
	unsetenv("SHIM_VERBOSE");
	if (filter_export(patch, directory) == 0)
		execv(program->path, argv);
	_exit(STATUS_FAILED);
}

static bool run(struct patch_list *list, const char *library,
		const struct program *program, const struct filter *patch,
		const char *directory)
{
	pid_t child = trial_fork();
	int status = -1;

	if (child == 0)
		become_program(library, program, patch, directory);
	if (child > 0)
		trial_wait(child, &status);
	if (child < 0)
		snprintf(list->error, sizeof(list->error),
			 "no process can be started: %s", strerror(errno));
	else if (WIFSIGNALED(status))
		snprintf(list->error, sizeof(list->error),
			 "it was killed while it was loaded: %s",
			 strsignal(WTERMSIG(status)));
	else if (status != 0)
		snprintf(list->error, sizeof(list->error),
			 "it ended with status %d while it was loaded",
			 WEXITSTATUS(status));
	return list->error[0] == '\0';
}

/* --- the file ------------------------------------------------------------- */

/* NULL without a file. */
static char *read_text(const char *path)
{
	FILE *file = fopen(path, "re");
	struct stat st;
	char *text = NULL;
	size_t n;

	if (file == NULL)
		return NULL;
	if (fstat(fileno(file), &st) == 0 && S_ISREG(st.st_mode))
		text = malloc((size_t)st.st_size + 1);
	if (text != NULL) {
		n = fread(text, 1, (size_t)st.st_size, file);
		text[n] = '\0';
	}
	fclose(file);
	return text;
}

static char *next_field(char **at)
{
	char *field = *at, *end = strpbrk(field, "\t\n");

	if (end == NULL)
		return NULL;
	*at = *end == '\n' ? end : end + 1;
	*end = '\0';
	return field;
}

static bool read_function(struct patch_function *function, char **at)
{
	const char *reason = next_field(at), *address, *size, *name;

	if (reason == NULL || (address = next_field(at)) == NULL ||
	    (size = next_field(at)) == NULL || (name = next_field(at)) == NULL)
		return false;
	*function = (struct patch_function){
		.name = name,
		.reason = reason,
		.address = strtoull(address, NULL, 16),
		.size = strtoull(size, NULL, 10),
	};
	return true;
}

static void count_function(struct patch_object *object,
			   const struct patch_function *function)
{
	object->patched += function->reason[0] == '\0';
	object->left += function->reason[0] != '\0' &&
			strcmp(function->reason, SHIM_LISTED_SMALL) != 0 &&
			strcmp(function->reason, SHIM_LISTED_MARKED) != 0;
}

static unsigned int count_lines(const char *text)
{
	unsigned int lines = 0;

	for (; *text != '\0'; text++)
		lines += *text == '\n';
	return lines;
}

static bool parse(struct patch_list *list, char *text)
{
	unsigned int lines = count_lines(text);
	struct patch_function *functions = calloc(lines + 1,
						  sizeof(*functions));
	struct patch_object *objects = calloc(lines + 1, sizeof(*objects)),
			    *object = NULL;
	char *at = text, *kind, *path;

	if (functions == NULL || objects == NULL)
		return false;
	list->objects = objects;
	while ((kind = next_field(&at)) != NULL) {
		if (strcmp(kind, "object") == 0) {
			path = next_field(&at);
			if (path == NULL)
				return false;
			object = &objects[list->count++];
			object->path = path;
			object->functions = functions;
		} else if (object == NULL || !read_function(functions, &at)) {
			return false;
		} else {
			count_function(object, functions++);
			object->count++;
		}
		at++;
	}
	return true;
}

bool patch_list_read(struct patch_list *list, const char *library,
		     const struct program *program, const struct filter *patch)
{
	const char *path = trial_begin();
	char file[PATH_MAX + sizeof(SHIM_LISTED_FILE) + 1], *text;
	bool is_good;

	memset(list, 0, sizeof(*list));
	if (path == NULL) {
		snprintf(list->error, sizeof(list->error),
			 "a recording cannot be made in this directory: %s",
			 strerror(errno));
		return false;
	}
	is_good = run(list, library, program, patch, path);
	recording_say_log(path, false);
	snprintf(file, sizeof(file), "%s/%s", path, SHIM_LISTED_FILE);
	text = is_good ? read_text(file) : NULL;
	trial_end();
	if (is_good && text == NULL)
		snprintf(list->error, sizeof(list->error),
			 "the list chooses none of its functions, or they"
			 " cannot be patched on this machine");
	else if (is_good && !parse(list, text))
		snprintf(list->error, sizeof(list->error),
			 "the library's list of functions is damaged");
	return list->error[0] == '\0';
}

/* --- output --------------------------------------------------------------- */

static void print_function(const struct patch_function *function)
{
	char address[24];
	const char *name = function->name;

	if (name[0] == '\0') {
		snprintf(address, sizeof(address), "0x%llx", function->address);
		name = address;
	}
	if (function->reason[0] == '\0')
		say_plainly("patched  %s", name);
	else
		say_plainly("left     %s: %s", name, function->reason);
}

void patch_list_print(const struct patch_list *list)
{
	for (unsigned int i = 0; i < list->count; i++) {
		const struct patch_object *object = &list->objects[i];

		say_plainly("%s:", object->path);
		for (unsigned int k = 0; k < object->count; k++)
			print_function(&object->functions[k]);
		say_plainly("total    %u of %u functions of 5 bytes or more"
			    " can be patched",
			    object->patched, object->patched + object->left);
	}
}

static void print_function_json(const struct patch_function *function)
{
	fputs("{\"name\":", stdout);
	json_text(function->name[0] != '\0' ? function->name : NULL);
	printf(",\"address\":%llu,\"size\":%llu,\"patched\":%s,\"reason\":",
	       function->address, function->size,
	       function->reason[0] == '\0' ? "true" : "false");
	json_text(function->reason[0] != '\0' ? function->reason : NULL);
	putchar('}');
}

void patch_list_print_json(const struct patch_list *list)
{
	putchar('[');
	for (unsigned int i = 0; i < list->count; i++) {
		const struct patch_object *object = &list->objects[i];

		fputs(i > 0 ? ",\n{\"object\":" : "\n{\"object\":", stdout);
		json_text(object->path);
		printf(",\"patched\":%u,\"left\":%u,\"functions\":[",
		       object->patched, object->left);
		for (unsigned int k = 0; k < object->count; k++) {
			fputs(k > 0 ? ",\n" : "\n", stdout);
			print_function_json(&object->functions[k]);
		}
		fputs("]}", stdout);
	}
	putchar(']');
}
