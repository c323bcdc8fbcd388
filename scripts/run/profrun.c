/*
 * profrun - profile a program; see profrun --help
 *
 * Finds the parts of shim by their fixed places relative to this file, and passes the
 * arguments unchanged to the part for the verb.  (A shell would need descriptors to
 * read a script, and the program may have only four.)
 */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "say.h"

#define LENGTH(array) (sizeof(array) / sizeof(*(array)))

static const char usage[] =
	"Usage: profrun [run] [OPTIONS] [--] PROGRAM [ARG...]\n"
	"\n"
	"Runs PROGRAM, records where its time goes, and prints the report to standard\n"
	"error when it ends.  PROGRAM, or the parts of it to be seen, must be compiled\n"
	"with -finstrument-functions (and -g).\n"
	"\n"
	"    profrun run [OPTIONS] [--] PROGRAM [ARG...]       the same\n"
	"    profrun record [OPTIONS] [--] PROGRAM [ARG...]    run only\n"
	"    profrun stat [OPTIONS] [--] PROGRAM [ARG...]      run; one paragraph\n"
	"    profrun report [DIR] [OPTIONS]                    where the time went\n"
	"    profrun annotate [FUNCTION [DIR]]                 its lines, with their samples\n"
	"    profrun export FORMAT [DIR] [OPTIONS]             folded, json, csv, ...\n"
	"    profrun html [DIR] [-o FILE]                      a page to look at\n"
	"    profrun tui [DIR]                                 look through it, on a terminal\n"
	"    profrun replay [DIR] [OPTIONS]                    the calls of a trace, in time\n"
	"    profrun diff A B                                  what got slower\n"
	"    profrun merge -o DIR DIR...                       one recording of several\n"
	"    profrun reduce [DIR]                              add up the ranks of a job\n"
	"    profrun history add DIR...                        keep its times by version\n"
	"    profrun history [FUNCTION]                        when they changed\n"
	"    profrun gprof [GPROF OPTIONS] [DIR]               the real gprof on it\n"
	"    profrun finish [DIR]                              gmon.out of killed programs\n"
	"    profrun info [DIR]                                what was recorded, and how\n"
	"    profrun doctor [PROGRAM]                          why is there no data?\n"
	"    profrun stack PID|CORE                            stacks of any program\n"
	"    profrun top PID                                   what it does now, on a terminal\n"
	"    profrun attach PID [OPTIONS]                      record what runs already\n"
	"    profrun detach PID                                end that recording\n"
	"    profrun ctl [PID VERB [...]]                      while it runs\n"
	"    profrun help [VERB]                               the manual page\n"
	"\n"
	"DIR is a recording; without it, the newest in the working directory.\n"
	"`profrun VERB --help` tells the options, `profrun help VERB` shows its manual\n"
	"page; there are also `profrun help profilers`, `recording` and `modules`.\n"
	"`profrun -- PROGRAM` runs a program that is named like a verb.\n";

/* The path of this file, its directory, and the prefix of the installation. */
static char me[PATH_MAX], here[PATH_MAX], top[PATH_MAX];
static char run[PATH_MAX], report[PATH_MAX], process[PATH_MAX];
static char library[PATH_MAX], complete[PATH_MAX];

__attribute__((format(printf, 2, 3))) static void put(char path[PATH_MAX],
						      const char *format, ...)
{
	va_list list;
	int length;

	va_start(list, format);
	length = vsnprintf(path, PATH_MAX, format, list);
	va_end(list);
	if (length < 0 || length >= PATH_MAX) {
		say("the path of a part of shim is too long");
		exit(STATUS_FAILED);
	}
}

/* @directory is as configured: usually relative to the prefix. */
static void put_installed(char path[PATH_MAX], const char *directory,
			  const char *name)
{
	if (directory[0] == '/')
		put(path, "%s/%s", directory, name);
	else
		put(path, "%s/%s/%s", top, directory, name);
}

/* Finds the path of this file, with links resolved. */
static void find_me(const char *name)
{
	ssize_t length = readlink("/proc/self/exe", me, sizeof(me) - 1);
	char *slash;

	if (length > 0)
		me[length] = '\0';
	else if (realpath(name, me) == NULL) {
		say("cannot find out where %s is: %s", name, strerror(errno));
		exit(STATUS_FAILED);
	}
	strcpy(here, me);
	slash = strrchr(here, '/');
	if (slash != NULL)
		*slash = '\0';
}

/* The installation may have been moved as a whole, so its prefix is computed. */
static void find_top(void)
{
	size_t length = strlen(here), bin = strlen(BINDIR);

	strcpy(top, here);
	if (length > bin && here[length - bin - 1] == '/' &&
	    strcmp(here + length - bin, BINDIR) == 0)
		top[length - bin - 1] = '\0';
}

static void find_parts(void)
{
	const char *given;
	char built[PATH_MAX];

	put(built, "%s/scripts/run/shim-run", here);
	if (access(built, X_OK) == 0) { /* not installed: a build */
		strcpy(run, built);
		put(report, "%s/scripts/report/shim-report", here);
		put(process, "%s/scripts/process/shim-process", here);
		put(library, "%s/shim/libshim.so.0", here);
		put(complete, "%s/scripts/profrun-complete", here);
	} else {
		put_installed(run, LIBEXECDIR, "shim/shim-run");
		put_installed(report, LIBEXECDIR, "shim/shim-report");
		put_installed(process, LIBEXECDIR, "shim/shim-process");
		put_installed(library, LIBDIR, "libshim.so.0");
		put_installed(complete, LIBEXECDIR, "shim/profrun-complete");
	}
	given = getenv("SHIM_LIBEXEC");
	if (given != NULL && given[0] != '\0') {
		put(run, "%s/shim-run", given);
		put(report, "%s/shim-report", given);
		put(process, "%s/shim-process", given);
	}
	given = getenv("SHIM_LIBRARY");
	if (given != NULL && given[0] != '\0')
		put(library, "%s", given);
}

/* Executes @part with @count @words, then the words of the command line from @word
 * on. */
static void become(const char *part, const char *const *words, int count,
		   char **word)
{
	char **all;
	int left = 0;

	if (access(part, X_OK) < 0) {
		say("%s is missing: shim is not completely built or installed",
		    part);
		exit(STATUS_FAILED);
	}
	while (word[left] != NULL)
		left++;
	all = calloc((size_t)(count + left) + 1, sizeof(*all));
	if (all != NULL) {
		memcpy(all, words, (size_t)count * sizeof(*all));
		memcpy(all + count, word, (size_t)left * sizeof(*all));
		execv(part, all);
	}
	say("%s: cannot be executed: %s", part, strerror(errno));
	exit(STATUS_FAILED);
}

static void become_run(const char *verb, char **word)
{
	const char *words[] = { run, verb, library, report };

	/* The screen of --live runs `profrun ctl`. */
	if (strcmp(verb, "run") == 0)
		setenv("SHIM_PROFRUN", me, 1);
	become(run, words, LENGTH(words), word);
}

static bool is_among(const char *word, const char *const *list)
{
	while (*list != NULL && strcmp(*list, word) != 0)
		list++;
	return *list != NULL;
}

static const char *const run_verbs[] = { "run",	   "record", "stat",
					 "doctor", "ctl",    NULL };
static const char *const report_verbs[] = {
	"report", "replay",   "export", "html",	   "gprof",
	"merge",  "diff",     "reduce", "history", "finish",
	"info",	  "annotate", "tui",	"top",	   NULL,
};

static const char *const process_verbs[] = { "stack", "attach", "detach",
					     NULL };

/* Whether the options of `record` name a process instead of a program. */
static bool names_process(char **word)
{
	for (; *word != NULL && (*word)[0] == '-'; word++) {
		if (strncmp(*word, "--pid", 5) == 0 &&
		    ((*word)[5] == '\0' || (*word)[5] == '='))
			return true;
		if (strcmp(*word, "--") == 0)
			return false;
		/* Options with a value in the next word. */
		if ((strcmp(*word, "-p") == 0 || strcmp(*word, "-o") == 0 ||
		     strcmp(*word, "-F") == 0 || strcmp(*word, "--for") == 0 ||
		     strcmp(*word, "--profile") == 0 ||
		     strcmp(*word, "--output") == 0 ||
		     strcmp(*word, "--filter") == 0 ||
		     strcmp(*word, "--patch") == 0) &&
		    word[1] != NULL)
			word++;
	}
	return false;
}

/* For the verbs that attach shim, which need the library. */
static void become_attach(const char *verb, char **word)
{
	const char *words[] = { process, verb, "--library", library };

	become(process, words, LENGTH(words), word);
}

/* Returns the exit status. */
static int print(const char *text)
{
	fputs(text, stdout);
	return say_end(0) == 0 ? 0 : STATUS_FAILED;
}

/* Returns if there is no page, or no program to show it. */
static void show_page(const char *page)
{
	const char *section = strrchr(page, '.') + 1;
	char name[64], path[3][PATH_MAX];

	put(path[0], "%s/scripts/manual/%s", here, page);
	snprintf(name, sizeof(name), "man%s/%s", section, page);
	put_installed(path[1], MANDIR, name);
	snprintf(name, sizeof(name), "man%s/%s.gz", section, page);
	put_installed(path[2], MANDIR, name);
	for (size_t i = 0; i < LENGTH(path); i++)
		if (access(path[i], R_OK) == 0)
			execlp("man", "man", path[i], (char *)NULL);
}

/* Shows the page of @verb with man; without a page, the text of --help. */
static int help(const char *verb)
{
	static const char *const others[][2] = {
		{ "", "profrun.1" },
		{ "profrun", "profrun.1" },
		{ "profilers", "shim-profilers.7" },
		{ "recording", "shim-recording.5" },
		{ "modules", "shim.7" },
		{ "shim", "shim.7" },
	};
	bool is_verb = is_among(verb, run_verbs) ||
		       is_among(verb, report_verbs) ||
		       is_among(verb, process_verbs);
	const char *page = NULL;
	char name[64];

	if (strcmp(verb, "-h") == 0 || strcmp(verb, "--help") == 0)
		return print(usage);
	for (size_t i = 0; i < LENGTH(others); i++)
		if (strcmp(verb, others[i][0]) == 0)
			page = others[i][1];
	if (is_verb) {
		snprintf(name, sizeof(name), "profrun-%s.1", verb);
		page = name;
	}
	if (page == NULL) {
		say("there is no help on %s", verb);
		return STATUS_USAGE;
	}
	show_page(page);
	if (is_verb)
		execl(me, "profrun", verb, "--help", (char *)NULL);
	if (strcmp(page, "profrun.1") == 0)
		return print(usage);
	say("the manual page %.*s(%s) is not installed, or man is not",
	    (int)(strrchr(page, '.') - page), page, strrchr(page, '.') + 1);
	return STATUS_FAILED;
}

static bool is_directory(const char *path)
{
	struct stat info;

	return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* `stat DIR`, also after --json. */
static bool is_stat_of_recording(char *const *words)
{
	if (words[0] != NULL && strcmp(words[0], "--json") == 0)
		words++;
	return words[0] != NULL && is_directory(words[0]);
}

int main(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : "";
	bool is_read; /* a verb that reads a recording */

	find_me(argv[0] ? argv[0] : "profrun");
	find_top();
	find_parts();
	is_read = is_among(verb, report_verbs) ||
		  (strcmp(verb, "stat") == 0 && is_stat_of_recording(argv + 2));
	if (strcmp(verb, "attach") == 0 ||
	    (strcmp(verb, "record") == 0 && names_process(argv + 2)))
		become_attach(verb, argv + 2);
	if (!is_read && is_among(verb, run_verbs))
		become_run(verb, argv + 2);
	if (is_read) {
		const char *words[] = { report };

		/* It runs `profrun ctl`. */
		if (strcmp(verb, "top") == 0)
			setenv("SHIM_PROFRUN", me, 1);
		become(report, words, 1, argv + 1);
	}
	if (is_among(verb, process_verbs)) {
		const char *words[] = { process };

		become(process, words, 1, argv + 1);
	}
	/* for the completions of shells */
	if (strcmp(verb, "--complete") == 0) {
		const char *words[] = { complete, me };

		become(complete, words, LENGTH(words), argv + 2);
	}
	if (strcmp(verb, "--version") == 0)
		return print("profrun " VERSION "\n");
	if (strcmp(verb, "--help") == 0 || strcmp(verb, "-h") == 0)
		return print(usage);
	if (strcmp(verb, "help") == 0) {
		if (argc > 3) {
			say("help: one verb at a time");
			return STATUS_USAGE;
		}
		return help(argc > 2 ? argv[2] : "");
	}
	if (argc <= 1) {
		fputs(usage, stderr);
		return STATUS_USAGE;
	}
	become_run("run", argv + 1);
	return STATUS_FAILED;
}
