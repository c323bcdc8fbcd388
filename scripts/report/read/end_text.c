/*
 * Describes in words how the program of a recording ended.  The wait status
 * that profrun saw counts more than the program's own record.
 */
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <shim/format.h>

#include "base/memory.h"
#include "read/end_text.h"
#include "read/process.h"
#include "read/recording.h"

static const char *meta_end_text(const struct process *process)
{
	switch (process->meta.end) {
	case SHIM_END_EXIT:
		return keep_format("exit status %u", process->meta.exit_status);
	case SHIM_END_EXEC: return "became another program";
	case SHIM_END_ABORT: return "aborted";
	case SHIM_END_DETACHED: return "detached";
	default: return "killed, crashed or still running";
	}
}

/* The wait status that profrun saw counts more than the program's own
 * record. */
const char *end_text(const struct recording *recording)
{
	int status = recording->wait_status;
	const struct process *last = &recording->processes[0];
	uint32_t i;

	if (recording->has_end && WIFEXITED(status))
		return keep_format("exit status %d", WEXITSTATUS(status));
	if (recording->has_end && WIFSIGNALED(status))
		return keep_format("killed by signal %d (%s)%s",
				   WTERMSIG(status),
				   strsignal(WTERMSIG(status)),
				   WCOREDUMP(status) ? ", core dumped" : "");
	if (recording->has_end)
		return keep_format("wait status %#x", (unsigned int)status);
	for (i = 1; i < recording->process_count; i++)
		if (recording->processes[i].is_main &&
		    recording->processes[i].number > last->number)
			last = &recording->processes[i];
	return meta_end_text(last);
}
