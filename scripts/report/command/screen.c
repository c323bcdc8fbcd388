/*
 * profrun tui reads the recording as the report does, and shows it on the screen; profrun
 * top finds the recording of a process that runs.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/messages.h"
#include "command/screen.h"
#include "common/running.h"
#include "model/choose.h"
#include "model/hits.h"
#include "model/model.h"
#include "model/options.h"
#include "read/recording.h"
#include "screen/terminal.h"
#include "screen/top.h"
#include "screen/tui.h"

int tui(const struct options *options, const char *path)
{
	struct recording recording;
	struct model model, samples = { .recording = NULL };
	struct tui tui = { .model = &model, .options = options };

	terminal_need("tui needs a terminal; profrun report prints tables");
	recording_open(&recording, path ? path : recording_find(),
		       options->pid);
	tui.has_hits = hits_are_there(&recording);
	recording.is_read_again = true;
	choose_build(&model, &samples, &recording, options);
	if (samples.recording)
		tui.samples = &samples;
	if (!model.calls && !model.open && !model.has_memory)
		die("%s: there are no calls, samples or allocations in it to "
		    "look through; profrun report prints what there is",
		    recording.path);
	progress_end();
	tui_run(&tui);
	return 0;
}

static uint32_t read_pid(const char *word)
{
	char *end;
	long pid = strtol(word, &end, 10);

	if (end == word || *end || pid <= 0 || pid > INT_MAX)
		die_usage("top: '%s' is not the number of a process", word);
	return (uint32_t)pid;
}

/* The recording that has the directory PID.N of the process. */
static const char *find_recording(uint32_t pid)
{
	char directory[PATH_MAX];

	if (!running_recording(pid, directory)) {
		if (kill((pid_t)pid, 0) != 0 && errno == ESRCH)
			die("there is no process %u", pid);
		die("shim does not record process %u (profrun ctl lists those "
		    "that it records)",
		    pid);
	}
	*strrchr(directory, '/') = '\0';
	return keep_text(directory, SIZE_MAX);
}

int top(struct options *options, const char *pid)
{
	struct top top = { .options = options, .delay = options->delay };

	terminal_need("top needs a terminal; profrun ctl PID status prints "
		      "what was recorded");
	top.pid = read_pid(pid);
	options->pid = (uint32_t)running_own_id(top.pid);
	top.path = find_recording(top.pid);
	top.profrun = getenv("SHIM_PROFRUN");
	top_run(&top);
	return 0;
}
