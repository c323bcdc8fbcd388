/*
 * shim-run - the part of profrun that runs programs
 *
 *     shim-run run|record LIBRARY REPORT [OPTIONS] [--] PROGRAM [ARG...]
 *     shim-run doctor LIBRARY REPORT [PROGRAM]
 *     shim-run ctl LIBRARY REPORT [PID VERB ...]
 *
 * profrun passes the paths of libshim.so.0 and of shim-run's siblings.
 *
 * `record` becomes the program.  `run` starts it as a child, waits, and then
 * has the report written.  Whatever fails on our side, the program still runs.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/descriptors.h"
#include "common/stack.h"
#include "counters.h"
#include "ctl.h"
#include "doctor.h"
#include "gaps.h"
#include "histograms.h"
#include "job.h"
#include "live.h"
#include "modules.h"
#include "opener.h"
#include "preload.h"
#include "profiles.h"
#include "program.h"
#include "recording.h"
#include "say.h"
#include "settings.h"
#include "supervise.h"
#include "tick.h"

/* The seconds that rank 0 waits for the ends of the other ranks. */
#define JOB_SECONDS 10

extern char **environ;

static struct settings settings;
static struct program program;
static struct job job;
static bool is_sampled_instead;
static char *profrun; /* the command; NULL: unknown */

/* The child's message to its parent before it executes the program. */
struct start {
	bool has_failed;	  /* the program was not executed */
	bool is_made;		  /* the directory exists */
	char directory[PATH_MAX]; /* the recording's; empty: none */
};

/* --- before ------------------------------------------------------------- */

/* Says why the program might give no data. */
static void warn_of_program(void)
{
	const char *name = program.name;

	if (program.is_foreign)
		say("%s: is built for %s: it cannot be profiled here", name,
		    program_machine(program.path));
	else if (program.is_static)
		say("%s: is statically linked: nothing can be preloaded into"
		    " it; it runs unprofiled (link it dynamically)",
		    name);
	else if (program.is_privileged)
		say("%s: runs with the rights of another user: nothing can be"
		    " preloaded into it; it runs unprofiled (run it as that"
		    " user)",
		    name);
	else if (program.has_hooks)
		say("%s: has a __cyg_profile_func_enter of its own, which goes"
		    " before ours",
		    name);
	else if (program.is_elf && !program.is_marked &&
		 (is_sampled_instead || profiles_record_calls(&settings)))
		say("%s: is not compiled with -finstrument-functions: %s (to see"
		    " every call, add -finstrument-functions and -g to its"
		    " compiler flags, or use --patch '*')",
		    name,
		    is_sampled_instead ?
			    "it is sampled instead" :
			    "only the libraries and programs it uses can be seen");
}

/* A program without hooks can still be sampled, and its libraries may have hooks. */
static void choose_profile(void)
{
	const char *given = getenv("SHIM_PROFILE");

	if (settings.profile[0] != '\0' || (given != NULL && *given != '\0'))
		return;
	if (settings.is_stat)
		snprintf(settings.profile, sizeof(settings.profile),
			 "calltree;memory;locks");
	if (!program.is_elf || program.is_foreign || program.is_static ||
	    program.is_privileged || program.has_hooks || program.is_marked)
		return;
	is_sampled_instead = true;
	/* No calls, no cost of calls. */
	settings.budget = NULL;
	unsetenv("SHIM_BUDGET");
	snprintf(settings.profile, sizeof(settings.profile), "%s",
		 settings.is_stat ? "calltree;sampling;memory;locks" :
				    "calltree;sampling");
}

/* Whether profiler @item can find paths by unwinding and has no such option yet. */
static bool could_unwind(const char *item)
{
	static const char *const names[] = { "memory", "locks", "exceptions" };
	size_t size = strcspn(item, ":");

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strlen(names[i]) == size &&
		    strncmp(item, names[i], size) == 0)
			return strstr(item, "unwind") == NULL;
	return false;
}

/* In a program without instrumentation, paths come from unwinding.  So they do in a script:
 * calls of instrumented functions in programs that it runs still have their paths. */
static void choose_unwinding(void)
{
	static char text[sizeof(settings.profile)];
	static char longer[sizeof(settings.profile)];
	char *rest = text, *item;

	if (program.is_marked || program.has_hooks)
		return;
	strcpy(text, settings.profile);
	settings.profile[0] = '\0';
	while ((item = profiles_next(&rest)) != NULL) {
		snprintf(longer, sizeof(longer), "%s%s", item,
			 !could_unwind(item) ? "" :
			 strchr(item, ':')   ? ",unwind" :
					       ":unwind");
		if (!profiles_add(settings.profile, sizeof(settings.profile),
				  longer)) {
			say("%s: too long: options that this program needs "
			    "were added",
			    settings.profile);
			exit(STATUS_USAGE);
		}
	}
}

/* Appends @entry to a list for LD_PRELOAD, which has no empty entries. */
static void append_entry(char *list, size_t size, const char *entry,
			 size_t length)
{
	size_t n = strlen(list);

	if (length == 0 || n + length + 2 > size)
		return;
	if (n > 0)
		list[n++] = ':';
	memcpy(list + n, entry, length);
	list[n + length] = '\0';
}

/* Appends the library beside libshim, if it is there. */
static void append_beside(char *list, size_t size, const char *name)
{
	char path[PATH_MAX];
	const char *slash = strrchr(settings.library, '/'), *entry;
	int length = slash != NULL ? (int)(slash - settings.library) + 1 : 0;

	snprintf(path, sizeof(path), "%.*s%s", length, settings.library, name);
	if (access(path, R_OK) != 0)
		return;
	entry = preload_entry(path);
	if (strstr(list, entry) == NULL)
		append_entry(list, size, entry, strlen(entry));
}

/* The order: the sanitizer that must be first, the former entries, the libraries for MPI and
 * OpenMP, libshim. */
static void set_preload(void)
{
	const char *entry = preload_entry(settings.library);
	const char *old = getenv("LD_PRELOAD");
	size_t size, length;
	char *list;

	/* libshim comes last, even if an outer profrun has put it into the list. */
	if (old == NULL)
		old = "";
	size = strlen(old) + sizeof(program.sanitizer) + 3 * PATH_MAX + 6;
	list = calloc(1, size);
	if (list == NULL)
		return;
	if (strstr(old, program.sanitizer) == NULL)
		append_entry(list, size, program.sanitizer,
			     strlen(program.sanitizer));
	for (; *old != '\0'; old += length + (old[length] != '\0')) {
		length = strcspn(old, ": ");
		if (length != strlen(entry) || strncmp(old, entry, length) != 0)
			append_entry(list, size, old, length);
	}
	if (program.has_mpi)
		append_beside(list, size, "libshim-mpi.so");
	if (program.has_openmp)
		append_beside(list, size, "libshim-openmp.so");
	append_entry(list, size, entry, strlen(entry));
	setenv("LD_PRELOAD", list, 1);
	free(list);
}

static bool check_library(void)
{
	const char *error = preload_error(settings.library);

	if (access(settings.library, R_OK) < 0)
		error = strerror(errno);
	if (error != NULL)
		say("%s: %s; %s runs unprofiled", settings.library, error,
		    program.name);
	return error == NULL;
}

/* All ranks of a job share one directory, which is one recording, unless the user's
 * pattern gives each rank its own name. */
static bool has_job_directory(void)
{
	return job.size > 1 && !(settings.is_output_given &&
				 (strstr(settings.output, "%r") != NULL ||
				  strstr(settings.output, "%p") != NULL));
}

static const char *choose_output(void)
{
	const char *output = settings.output;
	static char pattern[PATH_MAX];

	if (!has_job_directory())
		return output;
	if (settings.is_output_given)
		snprintf(pattern, sizeof(pattern), "%s/rank.%%r", output);
	else
		snprintf(pattern, sizeof(pattern), "profrun.%%n.%s/rank.%%r",
			 job.id);
	return pattern;
}

static int export_filter(const struct filter *filter, const char *directory)
{
	int r;

	if (filter->list == NULL)
		return 0;
	r = filter_export(filter, directory);
	if (r == 0)
		return 0;
	say("%s: cannot keep the list of --%s: %s", directory,
	    filter_option(filter), strerror(-r));
	return STATUS_FAILED;
}

/* A rank that went on would wait in MPI_Init for those whose recordings exist. */
static bool is_of_other_job(struct start *start)
{
	char *slash = strrchr(start->directory, '/');
	int r;

	if (!has_job_directory())
		return false;
	*slash = '\0';
	r = job_claim(&job, start->directory);
	if (r == -EEXIST && job.rank == 0)
		say("%s: holds ranks of another job; a recording is never"
		    " overwritten (use -o with another name, or remove it)",
		    start->directory);
	*slash = '/';
	return r == -EEXIST;
}

/* Returns 0, or the status to exit with before anything is started. */
static int make_recording(struct start *start)
{
	int r;

	if (settings.is_disabled || !check_library())
		return 0;
	r = recording_create(
		choose_output(),
		(settings.is_output_given ? RECORDING_FIXED : 0) |
			(has_job_directory() ? RECORDING_OF_RANK : 0),
		program.name, start->directory);
	if ((r == 0 || r == -EEXIST) && is_of_other_job(start)) {
		if (r == 0)
			recording_remove(start->directory);
		return STATUS_FAILED;
	}
	if (r == -EEXIST && settings.is_output_given) {
		say("%s: exists; a recording is never overwritten (%%p in the"
		    " name makes it unique)",
		    start->directory);
		return STATUS_FAILED;
	}
	if (r < 0) {
		if (start->directory[0])
			say("%s: cannot be created: %s; %s runs unprofiled",
			    start->directory, recording_error(r), program.name);
		else
			say("the working directory has no path: %s (use -o with "
			    "an absolute name); %s runs unprofiled",
			    recording_error(r), program.name);
		start->directory[0] = '\0';
		return 0;
	}
	r = export_filter(&settings.filter, start->directory);
	if (r == 0)
		r = export_filter(&settings.patch, start->directory);
	if (r == 0)
		r = export_filter(&settings.libcalls, start->directory);
	if (r != 0)
		recording_remove(start->directory);
	else if (getenv("SHIM_PATCH") != NULL && !settings.is_record)
		recording_share(start->directory);
	return r;
}

static void set_environment(const char *directory)
{
	char speaker[32];

	/* These variables are about profrun, which prints the messages itself. */
	unsetenv("SHIM_VERBOSE");
	unsetenv("SHIM_QUIET");
	unsetenv("SHIM_NO_REPORT");
	unsetenv("SHIM_NODE_FILES");
	unsetenv("SHIM_TICK");
	unsetenv("SHIM_OPENER");
	setenv("SHIM_DIR", directory, 1);
	if (settings.profile[0] != '\0')
		setenv("SHIM_PROFILE", settings.profile, 1);
	if (settings.budget != NULL)
		setenv("SHIM_BUDGET", settings.budget, 1);
	if (settings.has_control)
		setenv("SHIM_CONTROL", "1", 1);
	if (opener_secret() != NULL)
		setenv("SHIM_OPENER", opener_secret(), 1);
	snprintf(speaker, sizeof(speaker), "%ld%s", (long)getpid(),
		 settings.is_record && !settings.is_quiet ? ":settings" : "");
	setenv("SHIM_SPEAK", speaker, 1);
	/* Otherwise ld.so would complain on the program's stderr. */
	if (!program.is_foreign)
		set_preload();
	if (settings.is_verbose) {
		say("running %s", program.path);
		say("SHIM_DIR=%s", directory);
		if (getenv("SHIM_PROFILE") != NULL)
			say("SHIM_PROFILE=%s", getenv("SHIM_PROFILE"));
		if (getenv("LD_PRELOAD") != NULL)
			say("LD_PRELOAD=%s", getenv("LD_PRELOAD"));
	}
}

/* A text file without "#!" is a shell script, as for execvp(). */
static void execute_script(void)
{
	char **word = settings.command, **copy;
	int n = 0;

	while (word[n] != NULL)
		n++;
	copy = calloc(n + 2, sizeof(*copy));
	if (copy == NULL)
		return;
	copy[0] = "/bin/sh";
	copy[1] = program.path;
	memcpy(copy + 2, word + 1, n * sizeof(*copy));
	execve(copy[0], copy, environ);
	free(copy);
}

/* Executes the program.  Returns only on failure: the status to exit with. */
static int execute(void)
{
	int error;

	execve(program.path, settings.command, environ);
	if (errno == ENOEXEC && !program.is_elf)
		execute_script();
	error = errno;
	if (error == ENOENT && program.interpreter[0] != '\0')
		say("%s: cannot be executed: its interpreter %s is not there",
		    program.name, program.interpreter);
	else
		say("%s: cannot be executed: %s", program.name,
		    strerror(error));
	return STATUS_NOT_EXECUTABLE;
}

/* Executes the program, or returns the status to exit with. */
static int become_program(void *data)
{
	struct start *start = data;
	int status;

	if (settings.has_gaps)
		gaps_wait();
	status = make_recording(start);
	if (status == 0) {
		if (start->directory[0] != '\0') {
			__atomic_store_n(&start->is_made, true,
					 __ATOMIC_RELEASE);
			tick_wait();
			set_environment(start->directory);
		}
		if (settings.is_record && !settings.is_quiet &&
		    start->directory[0] != '\0')
			say("recording: %s", start->directory);
		if (settings.is_live)
			live_redirect();
		status = execute();
		recording_remove(start->directory);
	}
	start->has_failed = true;
	return status;
}

/* --- after -------------------------------------------------------------- */

static void say_nothing_recorded(enum recording_content content,
				 const char *directory)
{
	const char *name = program.name;
	int r = recording_try_room(directory);

	if (r < 0)
		say("nothing was recorded: %s: %s (free space or use -o to"
		    " record elsewhere, then run again)",
		    directory, recording_error(r));
	else if (program.is_foreign)
		say("nothing was recorded: %s is built for another kind of"
		    " machine",
		    name);
	else if (program.is_static)
		say("nothing was recorded: %s is statically linked", name);
	else if (program.is_privileged)
		say("nothing was recorded: %s runs with the rights of another"
		    " user",
		    name);
	else if (program.has_hooks)
		say("nothing was recorded: %s has a __cyg_profile_func_enter of"
		    " its own",
		    name);
	else if (content == RECORDING_NOTHING)
		say("nothing was recorded: %s did not load %s (`profrun doctor"
		    " %s` may know why)",
		    name, settings.library, name);
	else if (is_sampled_instead)
		say("nothing was recorded: %s did not compute for long enough"
		    " to be sampled",
		    name);
	else if (recording_was_filtered(directory))
		say("nothing was recorded: --filter lets none of the functions"
		    " through that were called (`profrun report %s` names items"
		    " that match none)",
		    directory);
	else if (settings.patch.list != NULL)
		say("nothing was recorded: none of the functions that --patch"
		    " chooses ran");
	else if (settings.libcalls.list != NULL)
		say("nothing was recorded: none of the calls that --libcalls"
		    " chooses was made");
	else if (profiles_record_calls(&settings) && program.is_marked)
		say("nothing was recorded: none of the functions of %s that"
		    " ran was marked, or its marks could not be used (then a"
		    " line above says why)",
		    name);
	else if (profiles_record_calls(&settings))
		say("nothing was recorded: none of the functions that ran was"
		    " compiled with -finstrument-functions (add it, and -g, to"
		    " the compiler flags, or use --patch '*' or -p sampling)");
}

static int become_report(void *directory)
{
	const char *word[REPORT_OPTIONS_MAX + 5];
	int n = 0;

	word[n++] = settings.report;
	word[n++] = settings.is_stat ? "stat" : "report";
	for (int i = 0; settings.report_option[i] != NULL; i++)
		word[n++] = settings.report_option[i];
	word[n++] = "--";
	word[n++] = directory;
	word[n] = NULL;
	dup2(STDERR_FILENO, STDOUT_FILENO);
	execv(settings.report, (char **)word);
	say("%s: cannot be executed: %s", settings.report, strerror(errno));
	return STATUS_FAILED;
}

static void write_report(char *directory)
{
	int child = supervise_start(become_report, directory);

	if (child < 0)
		say("cannot start the report: %s", strerror(-child));
	else
		supervise_wait(child);
}

static int become_reduction(void *directory)
{
	char host[HOST_NAME_MAX + 1] = "";
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	/* A job with more than calls has no reduction; reports read its ranks. */
	if (null >= 0)
		dup2(null, STDERR_FILENO);
	gethostname(host, sizeof(host) - 1);
	execl(settings.report, settings.report, "reduce", "--host", host,
	      settings.has_node_files ? "--node-files" : "--",
	      (char *)directory, (char *)NULL);
	return STATUS_FAILED;
}

/* The last rank of each host adds up those of the host.  @directory is its own. */
static void reduce_host(const char *directory)
{
	char path[PATH_MAX];
	int child;

	snprintf(path, sizeof(path), "%s", directory);
	*strrchr(path, '/') = '\0';
	if (!job_rank_ended(path))
		return;
	child = supervise_start(become_reduction, path);
	if (child >= 0)
		supervise_wait(child);
	job_host_ended(path);
}

/* Rank 0 reports for all.  @directory is its own. */
static void conclude_job(char *directory)
{
	unsigned int ended;

	*strrchr(directory, '/') = '\0';
	ended = job_wait(&job, directory, JOB_SECONDS);
	if (ended < job.size)
		say("%u of %u ranks have ended, or left a recording here;"
		    " `profrun report %s` has all that come",
		    ended, job.size, directory);
	write_report(directory);
	say("recording: %s", directory);
}

/* Whether a report has something to show.  A histogram alone is what -p pchist means. */
static bool has_content(enum recording_content content, const char *directory)
{
	return content == RECORDING_CALLS ||
	       (!profiles_record_calls(&settings) &&
		recording_has_histograms(directory));
}

/* Whether the report is JSON, which has no head. */
static bool is_for_programs(void)
{
	for (int i = 0; settings.report_option[i] != NULL; i++)
		if (strcmp(settings.report_option[i], "--json") == 0)
			return true;
	return false;
}

/* Tells what the user must know.  Returns whether there is something to report. */
static bool say_what_was_recorded(const char *directory)
{
	enum recording_content content = recording_content(directory);
	bool has_report = settings.wants_report &&
			  has_content(content, directory);
	bool is_told = recording_say_log(directory, has_report &&
							    !settings.is_stat &&
							    !is_for_programs());

	if (content != RECORDING_CALLS && is_told)
		say("nothing was recorded");
	else if (content != RECORDING_CALLS)
		say_nothing_recorded(content, directory);
	return has_report;
}

static void conclude(char *directory, int wait_status)
{
	bool is_in_job = has_job_directory(), has_report, is_empty;

	recording_keep_jit_names(directory);
	if (WIFSIGNALED(wait_status))
		histograms_finish(settings.report, directory);
	is_empty = recording_content(directory) != RECORDING_CALLS &&
		   !recording_has_histograms(directory);
	has_report = !settings.is_quiet && say_what_was_recorded(directory);
	/* From here on, the directory of a rank may be in an archive. */
	if (is_in_job && job_is_large(&job))
		reduce_host(directory);
	if (settings.is_quiet || (is_in_job && job.rank != 0))
		return;
	if (is_in_job && settings.wants_report) {
		conclude_job(directory);
		return;
	}
	if (has_report)
		write_report(directory);
	if (settings.is_stat && !settings.is_output_given) {
		recording_delete(directory);
		return;
	}
	if (is_in_job && settings.has_node_files)
		*strrchr(directory, '/') = '\0';
	say(is_empty ? "empty recording: %s" : "recording: %s", directory);
}

static void end_watching(const struct start *start)
{
	tick_end();
	opener_end(start->directory);
	gaps_end(!start->has_failed);
	counters_end(!start->has_failed);
	if (!start->has_failed || !start->is_made)
		return;
	gaps_remove();
	counters_remove();
	recording_remove(start->directory);
}

/* --- the verbs ---------------------------------------------------------- */

static int run(void)
{
	struct start *start;
	bool is_recorded;
	int child, status;

	start = mmap(NULL, sizeof(*start), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (start == MAP_FAILED) {
		say("no memory: %s", strerror(errno));
		return STATUS_FAILED;
	}
	status = supervise_begin();
	if (status < 0) {
		say("signals cannot be blocked: %s", strerror(-status));
		return STATUS_FAILED;
	}
	if (settings.has_gaps)
		gaps_prepare();
	/* A tick takes 1 to 4 % of a processor, which would be another rank's. */
	if (profiles_want_tick(&settings) &&
	    (settings.is_tick_given || !job_fills_processors(&job)))
		tick_begin(settings.tick_hz, start->directory, &start->is_made);
	opener_begin(start->directory, &start->is_made);
	child = supervise_start(become_program, start);
	if (child < 0) {
		tick_end();
		opener_end(start->directory);
		say("cannot start a process: %s", strerror(-child));
		return STATUS_FAILED;
	}
	if (settings.has_gaps)
		gaps_begin(child, start->directory, &start->is_made);
	if (settings.counters_ms)
		counters_begin(child, settings.counters_ms, start->directory,
			       &start->is_made);
	if (settings.is_live)
		live_begin(child, settings.report, profrun);
	status = supervise_wait(child);
	is_recorded = !start->has_failed && start->directory[0] != '\0';
	/* The screen stays until the user leaves it. */
	if (is_recorded) {
		recording_close(start->directory, status);
		recording_unshare(start->directory);
	}
	live_end();
	end_watching(start);
	if (is_recorded)
		conclude(start->directory, status);
	supervise_end(status);
}

static int record(void)
{
	static struct start start;

	return become_program(&start);
}

static int do_verb(int words, char **word)
{
	int r;

	descriptors_hold();
	if (words < 4)
		return STATUS_USAGE;
	if (strcmp(word[1], "probe") == 0)
		return doctor_probe();
	/* The library should have answered this verb; it was not loaded. */
	if (strcmp(word[1], "try") == 0)
		return 0;
	if (strcmp(word[1], "ctl") == 0)
		return say_end(ctl(word[3], words - 4, word + 4));
	if (strcmp(word[1], "doctor") == 0)
		return say_end(doctor(word[2], word[3], words - 3, word + 3));
	if (realpath(word[2], settings.library) == NULL)
		snprintf(settings.library, sizeof(settings.library), "%s",
			 word[2]);
	settings.report = word[3];
	/* It is none of the program's variables. */
	if (getenv("SHIM_PROFRUN") != NULL)
		profrun = strdup(getenv("SHIM_PROFRUN"));
	unsetenv("SHIM_PROFRUN");
	job_find(&job);
	word[3] = word[1];
	settings_read(&settings, words - 3, word + 3);
	job.has_node_files = settings.has_node_files;
	r = program_find(&program, settings.command[0]);
	if (r != 0)
		return r;
	if (settings.is_live && !live_prepare())
		return STATUS_USAGE;
	program_inspect(&program);
	/* shim marks it. */
	program.is_marked |= settings.patch.list != NULL ||
			     settings.libcalls.list != NULL;
	choose_profile();
	choose_unwinding();
	/* One rank warns for all. */
	if (!settings.is_quiet && (!has_job_directory() || job.rank == 0))
		warn_of_program();
	if (settings.is_disabled && !settings.is_quiet)
		say("SHIM_DISABLE is set: %s runs unprofiled", program.name);
	if (!settings.is_disabled) {
		profiles_check_together(&settings);
		modules_check(&settings, &program);
	}
	return settings.is_record ? record() : run();
}

int main(int words, char **word)
{
	return stack_call(do_verb, words, word);
}
