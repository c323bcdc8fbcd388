/*
 * What shim does in a process, for people.  The process says its settings, profilers and
 * threads.  What it has recorded is read from the recording by shim-report, so that the
 * numbers are those of a report and the program has no work.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/running.h"
#include "ctl_status.h"
#include "json_text.h"
#include "say.h"

#define MODULES_SIZE 8192

static struct {
	char recording[PATH_MAX];     /* the process's directory in it */
	char profile[1024], off[256]; /* lists with semicolons */
	char modules[MODULES_SIZE];   /* a line each */
	bool calls_are_off;
	unsigned long threads, broken;
} known;

static const char *after(const char *line, const char *key)
{
	size_t size = strlen(key);

	return strncmp(line, key, size) == 0 ? line + size : NULL;
}

/* The place of @name among the profilers, or NULL. */
static char *find_profiler(const char *name, size_t size)
{
	char *at = known.profile;

	while (at != NULL &&
	       (strncmp(at, name, size) != 0 ||
		(at[size] != '\0' && at[size] != ':' && at[size] != ';')))
		if ((at = strchr(at, ';')) != NULL)
			at++;
	return at;
}

/* Of a built-in profiler: "NAME active" or "NAME off".  It may have been loaded later than
 * those of the settings. */
static void take_builtin(const char *line)
{
	size_t size = strcspn(line, " "), used = strlen(known.profile);
	bool is_off = strcmp(line + size, " off") == 0;

	if (find_profiler(line, size) == NULL)
		snprintf(known.profile + used, sizeof(known.profile) - used,
			 "%s%.*s", used > 0 ? ";" : "", (int)size, line);
	used = strlen(known.off);
	if (is_off)
		snprintf(known.off + used, sizeof(known.off) - used, "%s%.*s",
			 used > 0 ? ";" : "", (int)size, line);
}

void ctl_status_take(const char *line)
{
	size_t used = strlen(known.modules);
	const char *value;

	if ((value = after(line, "recording ")) != NULL)
		snprintf(known.recording, sizeof(known.recording), "%s", value);
	else if ((value = after(line, "profile ")) != NULL)
		snprintf(known.profile, sizeof(known.profile), "%s", value);
	else if ((value = after(line, "builtin ")) != NULL)
		take_builtin(value);
	else if ((value = after(line, "calls ")) != NULL)
		known.calls_are_off = strcmp(value, "off") == 0;
	else if ((value = after(line, "threads ")) != NULL)
		known.threads = strtoul(value, NULL, 10);
	else if ((value = after(line, "module ")) != NULL)
		snprintf(known.modules + used, sizeof(known.modules) - used,
			 "%s\n", value);
	else if (after(line, "handle ") != NULL &&
		 strstr(line, " switched off") != NULL)
		known.broken++;
}

static void print_modules(void)
{
	char *line, *rest = known.modules;

	while ((line = strsep(&rest, "\n")) != NULL)
		if (line[0] != '\0')
			say_plainly("  %-14s %s", "module", line);
}

/* Files of recordings have holes: blocks are counted, not sizes. */
static bool count_bytes(unsigned long long *bytes)
{
	DIR *directory = opendir(known.recording);
	struct dirent *entry;
	struct stat st;

	*bytes = 0;
	while (directory != NULL && (entry = readdir(directory)) != NULL)
		if (fstatat(dirfd(directory), entry->d_name, &st,
			    AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(st.st_mode))
			*bytes += (unsigned long long)st.st_blocks * 512;
	if (directory != NULL)
		closedir(directory);
	return directory != NULL;
}

static void print_size(void)
{
	unsigned long long bytes;

	if (!count_bytes(&bytes)) {
		say_plainly("  %-14s unknown: %s", "on disk", strerror(errno));
		return;
	}
	say_plainly("  %-14s %.1f %s", "on disk",
		    (double)bytes / (bytes < 1 << 20 ? 1 << 10 : 1 << 20),
		    bytes < 1 << 20 ? "KiB" : "MiB");
}

/* Has shim-report print what was recorded: lines of the same form, or an object. */
static bool ask_report(const char *process, const char *report,
		       const char *directory, bool is_json)
{
	int status = 0;
	char own[24];
	pid_t child;

	snprintf(own, sizeof(own), "%ld", running_own_id(atol(process)));
	child = fork();
	if (child == 0) {
		execl(report, "shim-report", "info", "--sums", "--process", own,
		      directory, is_json ? "--json" : (char *)NULL,
		      (char *)NULL);
		say("%s: cannot be executed: %s", report, strerror(errno));
		_exit(STATUS_FAILED);
	}
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return child > 0 && status == 0;
}

static void print_sums(const char *process, const char *report,
		       const char *directory)
{
	if (!ask_report(process, report, directory, false))
		say_plainly("  %-14s unknown: the recording cannot be read",
			    "recorded");
}

/* The recording, which has a directory for each process. */
static const char *find_recording(void)
{
	static char directory[PATH_MAX];
	char *slash;

	snprintf(directory, sizeof(directory), "%s", known.recording);
	slash = strrchr(directory, '/');
	if (slash != NULL && slash != directory)
		*slash = '\0';
	return directory;
}

static void put_modules(void)
{
	char *line, *rest = known.modules;
	const char *comma = "";

	while ((line = strsep(&rest, "\n")) != NULL)
		if (line[0] != '\0') {
			fputs(comma, stdout);
			json_text(line);
			comma = ",";
		}
}

void ctl_status_json(const char *process, const char *report)
{
	const char *directory = find_recording();
	unsigned long long bytes;

	printf("{\"pid\":%s,\"recording\":", process);
	json_text(directory);
	fputs(",\"profilers\":", stdout);
	json_text(known.profile);
	fputs(",\"profilers_off\":", stdout);
	json_text(known.off);
	fputs(",\"modules\":[", stdout);
	put_modules();
	printf("],\"switched_off\":%lu,\"records_calls\":%s,"
	       "\"threads\":%lu,\"disk_bytes\":",
	       known.broken, known.calls_are_off ? "false" : "true",
	       known.threads);
	if (count_bytes(&bytes))
		printf("%llu", bytes);
	else
		fputs("null", stdout);
	fputs(",\"recorded\":", stdout);
	fflush(stdout);
	if (!ask_report(process, report, directory, true))
		fputs("null", stdout);
	puts("}");
}

void ctl_status_print(const char *process, const char *report)
{
	const char *directory = find_recording();

	say_plainly("process %s, recording %s", process, directory);
	say_plainly("  %-14s %s", "profilers",
		    known.profile[0] != '\0' ? known.profile : "none");
	if (known.off[0] != '\0')
		say_plainly("  %-14s %s (`ctl PID load NAME` goes on)",
			    "not recording", known.off);
	print_modules();
	if (known.broken > 0)
		say_plainly("  %-14s %lu switched off after an error", "",
			    known.broken);
	say_plainly("  %-14s %s", "calls",
		    known.calls_are_off ?
			    "not recorded now (`ctl PID start` goes on)" :
			    "reach the profilers");
	print_sums(process, report, directory);
	print_size();
	say_plainly("  %-14s %lu", "threads", known.threads);
}
