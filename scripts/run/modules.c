/*
 * Checks modules before the program starts: a child process loads each with
 * dlopen, so a module that fails or crashes is reported and does not reach the
 * program.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "modules.h"
#include "preload.h"
#include "profiles.h"
#include "say.h"

#define TIMEOUT_S 5

/* The library's answer about a module, from a process that only tries it. */
struct trial {
	enum { TRIED_WELL, TRIED_BADLY, TRIED_CRASHED, TRIED_TOO_LONG } result;
	char text[1024];
};

/* --- a process that opens a module ---------------------------------------- */

/* The library tries the module when it is loaded (SHIM_TRY), and ends the process. */
static void become_trial(const char *library, const char *name, int answer)
{
	int null = open("/dev/null", O_RDWR);
	static const struct rlimit no_core;

	/* Output and core dumps of a module are not wanted here. */
	dup2(null, 0);
	dup2(answer, 1);
	dup2(null, 2);
	setrlimit(RLIMIT_CORE, &no_core);
	setenv("LD_PRELOAD", preload_entry(library), 1);
	setenv("SHIM_DISABLE", "1", 1);
	setenv("SHIM_TRY", name, 1);
	unsetenv("SHIM_PROFILE");
	execl("/proc/self/exe", "shim-run", "try", library, name, (char *)NULL);
	_exit(0);
}

static void wait_for(pid_t child, struct trial *trial)
{
	const struct timespec pause = { 0, 1000000 };
	struct timespec now, end;
	int status;
	pid_t r;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += TIMEOUT_S;
	do {
		r = waitpid(child, &status, WNOHANG);
		/* With SIGCHLD ignored, there is no status to wait for. */
		if (r < 0 && errno == ECHILD)
			return;
		if (r == child) {
			trial->result = WIFSIGNALED(status) ? TRIED_CRASHED :
					WEXITSTATUS(status) ? TRIED_BADLY :
							      TRIED_WELL;
			return;
		}
		nanosleep(&pause, NULL);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec < end.tv_sec);
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	trial->result = TRIED_TOO_LONG;
}

/* Output of a module precedes the answer; the last part that fits is kept. */
static void read_answer(int answer, struct trial *trial)
{
	size_t n = 0;
	ssize_t r;

	fcntl(answer, F_SETFL, O_NONBLOCK);
	while (n < sizeof(trial->text) - 1 &&
	       (r = read(answer, trial->text + n,
			 sizeof(trial->text) - 1 - n)) > 0)
		n += r;
	trial->text[n] = '\0';
}

static void try(const char *library, const char *item, struct trial *trial)
{
	char name[PATH_MAX];
	int answer[2];
	pid_t child;

	*trial = (struct trial){ .result = TRIED_WELL };
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(item, ":"), item);
	if (pipe2(answer, O_CLOEXEC) < 0)
		return;
	child = fork();
	if (child == 0)
		become_trial(library, name, answer[1]);
	close(answer[1]);
	if (child > 0) {
		wait_for(child, trial);
		read_answer(answer[0], trial);
	}
	close(answer[0]);
}

/* --- the list ------------------------------------------------------------ */

static bool is_in_program(const struct program *program, const char *item)
{
	char symbol[128];

	snprintf(symbol, sizeof(symbol), "shim_profiler_init_%.*s",
		 (int)strcspn(item, ":"), item);
	return program_exports(program->path, symbol) != EXPORT_MISSING;
}

/* A module may use symbols that only the program has. */
static bool is_completed_by(const struct program *program, const char *text)
{
	static const char words[] = "undefined symbol: ";
	const char *found = strstr(text, words);
	char symbol[256];

	if (found == NULL)
		return false;
	found += sizeof(words) - 1;
	snprintf(symbol, sizeof(symbol), "%.*s", (int)strcspn(found, " ,;\n"),
		 found);
	return !program->is_elf ||
	       program_exports(program->path, symbol) != EXPORT_MISSING;
}

/* Paths are relative to the working directory, where the program starts too. */
static bool make_absolute(const char *item, char *absolute, size_t size)
{
	size_t length = strcspn(item, ":");
	char path[PATH_MAX], real[PATH_MAX];

	snprintf(absolute, size, "%s", item);
	if (memchr(item, '/', length) == NULL)
		return true;
	snprintf(path, sizeof(path), "%.*s", (int)length, item);
	if (realpath(path, real) == NULL)
		return false;
	snprintf(absolute, size, "%s%s", real, item + length);
	return true;
}

static void refuse(const char *item, const char *format, ...)
	__attribute__((format(printf, 2, 3), noreturn));

static void refuse(const char *item, const char *format, ...)
{
	const char *meant = profiles_nearest(item);
	char text[2048];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (meant != NULL)
		say("%s; did you mean '%s'?", text, meant);
	else
		say("%s; there are %s, and what NAME finds as"
		    " libshim-profiler-NAME.so",
		    text, profiles_names());
	exit(STATUS_USAGE);
}

/* Does not return if @item cannot be recorded. */
static void check_module(const struct settings *settings,
			 const struct program *program, const char *item)
{
	int length = (int)strcspn(item, ":");
	struct trial trial;

	try(settings->library, item, &trial);
	switch (trial.result) {
	case TRIED_WELL: return;
	case TRIED_BADLY:
		if (is_in_program(program, item) ||
		    is_completed_by(program, trial.text))
			return;
		refuse(item, "%s", trial.text);
	case TRIED_CRASHED:
		refuse(item, "profiler '%.*s' crashes when it is loaded",
		       length, item);
	case TRIED_TOO_LONG:
		refuse(item,
		       "profiler '%.*s' does not return when it is loaded"
		       " (%d s)",
		       length, item, TIMEOUT_S);
	}
}

static void check_item(const struct settings *settings,
		       const struct program *program, const char *item,
		       char *absolute, size_t size)
{
	if (!make_absolute(item, absolute, size))
		refuse(item,
		       "profiler '%.*s' was not found: there is no such"
		       " file",
		       (int)strcspn(item, ":"), item);
	if (!profiles_is_builtin(item))
		check_module(settings, program, absolute);
}

void modules_check(struct settings *settings, const struct program *program)
{
	const char *given = profiles_given(settings);
	char *copy, *rest, *part, *item = malloc(PROFILE_SIZE);
	char *list = calloc(1, PROFILE_SIZE);

	copy = rest = strdup(given);
	while (copy != NULL && item != NULL && list != NULL &&
	       (part = profiles_next(&rest)) != NULL) {
		if (*part == '\0')
			continue;
		check_item(settings, program, part, item, PROFILE_SIZE);
		if (!profiles_add(list, PROFILE_SIZE, item)) {
			say("--profile: too many profilers");
			exit(STATUS_USAGE);
		}
	}
	if (list != NULL && *list == '\0') {
		say("--profile: '%s' names no profiler", given);
		exit(STATUS_USAGE);
	}
	if (strcmp(list, given) != 0)
		strcpy(settings->profile, list);
	free(copy);
	free(item);
	free(list);
}
