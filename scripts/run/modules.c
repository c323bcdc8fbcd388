#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "modules.h"
#include "say.h"

#define PREFIX "libshim-profiler-"
#define TIMEOUT_MS 5000

enum {
	TRIED_WELL,
	TRIED_MISSING,	/* no such file */
	TRIED_BADLY,	/* the loader, or shim, does not want it */
	TRIED_CRASHED,
	TRIED_TOO_LONG,
};

/* --- the process that opens one ------------------------------------------ */

static int try_open(const char *path)
{
	const char *error;
	size_t length = strlen(path);

	if (strchr(path, '/') != NULL && access(path, F_OK) < 0)
		return TRIED_MISSING;
	if (dlopen(path, RTLD_NOW | RTLD_LOCAL) != NULL)
		return TRIED_WELL;
	error = dlerror();
	if (strncmp(error, path, length) == 0 &&
	    strncmp(error + length, ": cannot open shared object file: No such",
		    41) == 0)
		return TRIED_MISSING;
	return TRIED_BADLY;
}

static int try_in(const char *directory, size_t length, const char *name)
{
	char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%.*s/" PREFIX "%s.so", (int)length,
		 directory, name);
	return try_open(path);
}

/* In the order of the library (shim/module.c). */
int modules_try(const char *library, const char *item)
{
	const char *path = getenv("SHIM_MODULE_PATH"), *slash;
	int best = TRIED_MISSING, r;
	char name[PATH_MAX];

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(item, ":"), item);
	if (strchr(name, '/') != NULL)
		return try_open(name);
	slash = strrchr(library, '/');
	r = slash == NULL ? TRIED_MISSING :
			    try_in(library, slash - library, name);
	if (r != TRIED_MISSING)
		best = r;
	while (best != TRIED_WELL && path != NULL && *path != '\0') {
		size_t length = strcspn(path, ":");

		r = *path == '/' ? try_in(path, length, name) : TRIED_MISSING;
		if (r != TRIED_MISSING)
			best = r;
		path += length + (path[length] == ':');
	}
	if (best == TRIED_WELL)
		return best;
	snprintf(name, sizeof(name), PREFIX "%.*s.so",
		 (int)strcspn(item, ":"), item);
	r = try_open(name);
	return r == TRIED_MISSING ? best : r;
}

/* --- starting it, and waiting -------------------------------------------- */

static void become_trial(const char *library, const char *item)
{
	int null = open("/dev/null", O_RDWR);
	static const struct rlimit no_core;

	/* What a module prints or dumps here is nobody's business. */
	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	setrlimit(RLIMIT_CORE, &no_core);
	setenv("LD_PRELOAD", library, 1);
	setenv("SHIM_DISABLE", "1", 1);
	unsetenv("SHIM_PROFILE");
	execl("/proc/self/exe", "shim-run", "try", library, item, (char *)NULL);
	_exit(TRIED_WELL);
}

static int wait_for(pid_t child)
{
	const struct timespec pause = { 0, 1000000 };
	int status;
	pid_t r;

	for (int waited_ms = 0; waited_ms < TIMEOUT_MS; waited_ms++) {
		r = waitpid(child, &status, WNOHANG);
		if (r == child)
			return WIFSIGNALED(status) ? TRIED_CRASHED :
						     WEXITSTATUS(status);
		/* Where SIGCHLD is ignored nobody can tell how it went. */
		if (r < 0 && errno == ECHILD)
			return TRIED_WELL;
		nanosleep(&pause, NULL);
	}
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	return TRIED_TOO_LONG;
}

static int try(const char *library, const char *item)
{
	pid_t child = fork();

	if (child == 0)
		become_trial(library, item);
	return child < 0 ? TRIED_WELL : wait_for(child);
}

/* --- the list ------------------------------------------------------------ */

static bool is_in_program(const struct program *program, const char *item)
{
	char symbol[128];

	/* What a script runs is not known yet. */
	if (!program->is_elf)
		return true;
	snprintf(symbol, sizeof(symbol), "shim_profiler_init_%.*s",
		 (int)strcspn(item, ":"), item);
	return program_exports(program->path, symbol) != EXPORT_MISSING;
}

/* Relative to where the program will start, which is here. */
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

/* NULL, or why it is left out. */
static const char *objection(const struct settings *settings,
			     const struct program *program, const char *item)
{
	switch (try(settings->library, item)) {
	case TRIED_MISSING:
		return is_in_program(program, item) ? NULL : "was not found";
	case TRIED_CRASHED: return "crashes when it is loaded";
	case TRIED_TOO_LONG: return "does not return when it is loaded";
	default: return NULL;
	}
}

static bool check(const struct settings *settings,
		  const struct program *program, const char *item,
		  char *absolute, size_t size)
{
	const char *why = "was not found";

	if (settings_is_builtin(item)) {
		snprintf(absolute, size, "%s", item);
		return true;
	}
	if (make_absolute(item, absolute, size))
		why = objection(settings, program, absolute);
	if (why != NULL)
		say("profiler '%.*s' %s: it is left out (there are %s, and what"
		    " NAME finds as " PREFIX "NAME.so)",
		    (int)strcspn(item, ":"), item, why, settings_profilers());
	return why == NULL;
}

bool modules_check(struct settings *settings, const struct program *program)
{
	const char *given = settings->profile[0] != '\0' ?
				    settings->profile :
				    getenv("SHIM_PROFILE");
	char *copy, *rest, *part, *item = malloc(PROFILE_SIZE);
	char *list = calloc(1, PROFILE_SIZE);
	size_t n = 0;

	if (given == NULL || *given == '\0')
		given = "calltree";
	copy = rest = strdup(given);
	while (copy != NULL && item != NULL && list != NULL &&
	       (part = strsep(&rest, ";")) != NULL) {
		if (*part == '\0' ||
		    !check(settings, program, part, item, PROFILE_SIZE))
			continue;
		n += snprintf(list + n, PROFILE_SIZE - n, "%s%s",
			      n > 0 ? ";" : "", item);
		if (n >= PROFILE_SIZE)
			break;
	}
	if (n > 0 && n < PROFILE_SIZE && strcmp(list, given) != 0)
		strcpy(settings->profile, list);
	free(copy);
	free(item);
	free(list);
	if (n == 0)
		say("no profiler is left: %s runs unprofiled", program->name);
	return n > 0;
}
