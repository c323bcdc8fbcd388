/*
 * Starts shim in a process that was started without it.
 *
 * One thread at a safe place (safe.c) makes the calls: mmap for a stack, dlopen of the
 * library, and profrun_attach_start with the settings.  Meanwhile the other threads that
 * run are stopped, so that it gets the processors; threads that wait, wait on.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <shim/attach.h>

#include "base/memory.h"
#include "base/messages.h"
#include "base/numbers.h"
#include "base/seconds.h"
#include "base/text.h"
#include "common/running.h"
#include "process/attach.h"
#include "process/remote_symbols.h"
#include "process/steps.h"

#define CONTROL_S 5 /* for the socket of `profrun ctl` */

/* A limit of file sizes below that is told. */
#define SMALL_FILE (64u << 20)

static bool wants_coverage(const char *items)
{
	for (; items; items = strchr(items, ';')) {
		items += *items == ';';
		if (!strncmp(items, "coverage", 8) &&
		    (items[8] == '\0' || items[8] == ':' || items[8] == ';'))
			return true;
	}
	return false;
}

static size_t put_settings(const struct attach *attach,
			   const struct attach_options *options, char **text)
{
	size_t size;
	FILE *out = open_memstream(text, &size);

	if (!out)
		die("%s", strerror(errno));
	fprintf(out, "SHIM_DIR=%s%c", attach->directory, 0);
	if (options->profile)
		fprintf(out, "SHIM_PROFILE=%s%c", options->profile, 0);
	if (options->filter)
		fprintf(out, "SHIM_FILTER=%s%c", options->filter, 0);
	if (options->libcalls)
		fprintf(out, "SHIM_LIBCALLS=%s%c", options->libcalls, 0);
	if (options->has_control)
		fprintf(out, "SHIM_CONTROL=1%c", 0);
	fputc(0, out);
	fputc(0, out);
	if (fclose(out) != 0)
		die("%s", strerror(errno));
	return size;
}

static void say_done(const struct attach *attach, bool is_quiet,
		     const char *what)
{
	char time[SHORT_TEXT], others[64] = "";
	const char *shown = human_ns(time, (double)attach->others.stopped_ns);

	if (is_quiet)
		return;
	if (attach->stopped_threads > 0)
		snprintf(others, sizeof(others), ", %u other%s for %s",
			 attach->stopped_threads,
			 attach->stopped_threads == 1 ? "" : "s", shown);
	fprintf(stderr,
		"profrun: %s process %d (%s); one of its threads was stopped "
		"for %s%s\n",
		what, (int)attach->target.pid, attach->target.name,
		human_ns(time, (double)attach->stopped_ns), others);
}

/* The recording may begin, and a limit of the process end it early: no call is recorded if it
 * is below a quarter of a MiB. */
static void say_file_limit(const struct attach *attach)
{
	struct rlimit limit;
	char text[SHORT_TEXT];

	if (prlimit(attach->target.pid, RLIMIT_FSIZE, NULL, &limit) == 0 &&
	    limit.rlim_cur < SMALL_FILE)
		fprintf(stderr,
			"profrun: its files may have %s (RLIMIT_FSIZE): what "
			"does not fit into the recording's is lost\n",
			human_bytes(text, limit.rlim_cur));
}

/* The recording has the names that the process has for its files. */
static void say_root(const struct attach *attach)
{
	char path[PATH_MAX];
	ssize_t length = readlink(attach->root, path, sizeof(path) - 1);

	path[length > 0 ? length : 0] = '\0';
	/* Only the mounts are its own: a --symfs of "/" changes no name. */
	if (!strcmp(path, "/") && target_is_same_file(path, attach->root))
		return;
	/* In another mount namespace the name may be that of another directory. */
	if (length > 0 && access(path, F_OK) == 0 &&
	    target_is_same_file(path, attach->root))
		fprintf(stderr,
			"profrun: the process has another root directory: "
			"profrun report --symfs %s\n",
			path);
	else
		fprintf(stderr,
			"profrun: the process has other mounts: while it runs, "
			"profrun report --symfs %s\n",
			attach->root);
}

/* Whether `profrun ctl` reaches the process. */
static bool has_control(const struct attach *attach)
{
	char directory[PATH_MAX];

	return running_recording(attach->target.pid, directory) &&
	       access(keep_format("%s/control", directory), F_OK) == 0;
}

/* What a detach leaves: threads may be in it. */
static void say_stays(struct attach *attach, uint64_t shim)
{
	uint64_t at = remote_symbol(&attach->remote, shim,
				    "profrun_attach_mapped");
	const struct space *space = &attach->memory.space;
	uint64_t bytes = 0;
	char text[SHORT_TEXT];
	uint32_t i, count = 0;
	bool changed;

	/* The process may end now. */
	if (!at || !remote_read(&attach->remote, at, &bytes, sizeof(bytes)) ||
	    !process_memory_read(&attach->memory, &changed))
		return;
	fprintf(stderr, "profrun: mapped in it stay ");
	for (i = 0; i < space->module_count; i++)
		if (!strncmp(space->modules[i].name, "libshim", 7))
			fprintf(stderr, "%s%s", count++ ? ", " : "",
				space->modules[i].name);
	fprintf(stderr, "%s and %s of recordings and tables%s\n",
		count > 1 ? "," : "", human_bytes(text, bytes),
		has_control(attach) ?
			"; two threads serve `profrun ctl`, on stacks of their own" :
			"");
}

/* Continues after a detach. */
static void go_on(struct attach *attach, uint64_t shim,
		  const struct attach_options *options)
{
	char directory[PATH_MAX], *slash;
	int32_t result;

	if (options->has_control || options->profile || options->filter ||
	    options->libcalls)
		die("process %d (%s) was recorded before: without -o it continues "
		    "that recording, with its profilers, filter, library calls "
		    "and control",
		    (int)attach->target.pid, attach->target.name);
	if (!running_recording(attach->target.pid, directory))
		die("process %d (%s): it has no recording that can go on: "
		    "begin another one with -o DIR",
		    (int)attach->target.pid, attach->target.name);
	slash = strrchr(directory, '/');
	*slash = '\0';
	strcpy(attach->directory, directory);
	attach_stop(attach);
	attach_map_stack(attach, 1);
	attach_send_call(attach, shim);
	result = attach_call_shim(attach, shim, "profrun_attach_start",
				  attach->stack + ATTACH_STACK_SIZE,
				  "it records");
	attach_finish(attach);
	if (result < 0)
		die("process %d (%s): shim does not start again (%#x)",
		    (int)attach->target.pid, attach->target.name,
		    (unsigned)result);
}

/* Begins the first recording of the process, or another one if @loaded, where shim is
 * loaded, is not 0. */
static void begin(struct attach *attach, const struct attach_options *options,
		  uint64_t loaded)
{
	char *settings, reason[SHIM_ATTACH_REASON] = "";
	uint64_t shim;
	size_t size;
	int32_t result;

	if (wants_coverage(options->profile))
		attach_check_traps(attach);
	attach_make_directory(attach, options->output);
	attach_note_unused(attach);
	if (!loaded)
		attach_send_library(attach, options->library);
	size = put_settings(attach, options, &settings);
	attach_stop(attach);
	attach_map_stack(attach, size > PATH_MAX ? size : PATH_MAX);
	/* A profrun that was killed may have loaded it. */
	shim = loaded ? loaded : attach_find_shim(attach);
	if (!shim) {
		attach_load(attach);
		shim = attach_find_shim(attach);
	}
	if (!shim ||
	    !remote_write(&attach->remote, attach->stack + ATTACH_STACK_SIZE,
			  settings, size)) {
		attach_finish(attach);
		die("process %d (%s): the library is not where it was loaded",
		    (int)attach->target.pid, attach->target.name);
	}
	if (!loaded)
		attach_await_forks(attach);
	attach_note_unused(NULL);
	attach_send_call(attach, shim);
	result = attach_call_shim(attach, shim, "profrun_attach_start",
				  attach->stack + ATTACH_STACK_SIZE,
				  "it records");
	attach_note_unused(attach);
	if (result < 0)
		remote_read(&attach->remote, attach->stack + ATTACH_STACK_SIZE,
			    reason, sizeof(reason));
	attach_finish(attach);
	free(settings);
	attach_drop_copy(attach);
	reason[sizeof(reason) - 1] = '\0';
	if (result == (int32_t)SHIM_E_INVALIDARG)
		die("process %d (%s): %s", (int)attach->target.pid,
		    attach->target.name, reason);
	if (result < 0)
		die("process %d (%s): nothing is recorded: %s",
		    (int)attach->target.pid, attach->target.name,
		    reason[0] ? reason : keep_format("%#x", (unsigned)result));
	attach_note_unused(NULL);
}

/* The process makes the socket again in another recording, within a second. */
static void wait_for_control(const struct attach *attach)
{
	static const struct timespec pause = { 0, 5000000 };
	uint64_t until = ns_of(CLOCK_MONOTONIC) + CONTROL_S * 1000000000ull;

	while (!has_control(attach) && ns_of(CLOCK_MONOTONIC) < until)
		nanosleep(&pause, NULL);
}

/* After a detach: continues that recording, or begins another one with -o. */
static void begin_again(struct attach *attach, uint64_t shim,
			const struct attach_options *options)
{
	bool awaits;

	if (!options->output) {
		go_on(attach, shim, options);
		return;
	}
	awaits = options->has_control || has_control(attach);
	begin(attach, options, shim);
	if (awaits)
		wait_for_control(attach);
}

int attach_begin(const struct attach_options *options, int pid,
		 const char **directory)
{
	static struct attach attach;
	uint64_t shim;

	attach.wait_ns = options->wait_ns;
	attach_open(&attach, pid, options->is_forced);
	shim = attach_find_shim(&attach);
	if (!shim) {
		begin(&attach, options, 0);
	} else {
		switch (attach_read_state(&attach, shim)) {
		case SHIM_ATTACH_OPENED: begin(&attach, options, 0); break;
		case SHIM_ATTACH_DETACHED:
			begin_again(&attach, shim, options);
			break;
		case SHIM_ATTACH_RECORDS:
			die("process %d (%s) is recorded already: `profrun ctl "
			    "%d status`, or `profrun detach %d`",
			    pid, attach.target.name, pid, pid);
		default:
			die("process %d (%s) was started with shim: use "
			    "`profrun ctl %d VERB`",
			    pid, attach.target.name, pid);
		}
	}
	attach_close(&attach);
	say_done(&attach, options->is_quiet, "recording");
	*directory = attach.directory;
	if (options->is_quiet)
		return 0;
	fprintf(stderr, "profrun: recording: %s\n", attach_name_here(&attach));
	say_file_limit(&attach);
	if (attach.root[0])
		say_root(&attach);
	return 0;
}

int attach_end(int pid, bool is_quiet, uint64_t wait_ns)
{
	static struct attach attach;
	uint64_t shim;
	int32_t result;

	attach.wait_ns = wait_ns;
	attach_open(&attach, pid, true);
	shim = attach_find_shim(&attach);
	if (!shim || attach_read_state(&attach, shim) != SHIM_ATTACH_RECORDS)
		die("process %d (%s) is not attached to", pid,
		    attach.target.name);
	attach_stop(&attach);
	attach_map_stack(&attach, 1);
	result = attach_call_shim(&attach, shim, "profrun_attach_stop", 0,
				  "the recording is whole");
	attach_finish(&attach);
	/* The thread of a profrun that was killed may have been faster. */
	if (result < 0 &&
	    attach_read_state(&attach, shim) != SHIM_ATTACH_DETACHED)
		die("process %d (%s): shim does not stop (%#x)", pid,
		    attach.target.name, (unsigned)result);
	say_done(&attach, is_quiet, "detached from");
	if (!is_quiet)
		say_stays(&attach, shim);
	attach_close(&attach);
	return 0;
}
