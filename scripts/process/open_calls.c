/*
 * Reads the open calls of a running program.  A node of the call tree tells whether its
 * call is open.  The innermost open node of a thread has the path of its open calls.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "common/running.h"
#include "process/open_calls.h"
#include "read/recording.h"

static const struct shim_node *node_of(const struct tree_file *file,
				       const struct entry *entry)
{
	return (const void *)(file->data + entry->offset);
}

static bool is_open(const struct recording *recording,
		    const struct tree_file *file, uint32_t number)
{
	const struct entry *entry = &file->entries[number];

	return entry->site != NONE && !recording->sites[entry->site].is_frame &&
	       !recording->sites[entry->site].group &&
	       node_of(file, entry)->frame != 0;
}

static void add_path(struct open_calls *calls,
		     const struct recording *recording,
		     const struct tree_file *file, uint32_t number)
{
	uint32_t at, depth = 0, i;
	struct open_path *path;

	for (at = number; at != NONE && depth <= file->entry_count;
	     at = file->entries[at].parent)
		depth += file->entries[at].site != NONE;
	GROW(calls->paths, calls->count, calls->room);
	path = &calls->paths[calls->count++];
	path->tid = (pid_t)file->tid;
	path->count = depth;
	path->functions = allocate(depth, sizeof(*path->functions));
	for (at = number, i = depth; at != NONE && i > 0;
	     at = file->entries[at].parent)
		if (file->entries[at].site != NONE)
			path->functions[--i] =
				recording->sites[file->entries[at].site]
					.address;
}

static void add_file(struct open_calls *calls,
		     const struct recording *recording,
		     const struct tree_file *file)
{
	bool *has_open = allocate(file->entry_count + 1, sizeof(*has_open));
	uint32_t i, parent;

	for (i = 0; i < file->entry_count; i++) {
		parent = file->entries[i].parent;
		if (parent != NONE && is_open(recording, file, i))
			has_open[parent] = true;
	}
	for (i = 0; i < file->entry_count; i++)
		if (!has_open[i] && is_open(recording, file, i))
			add_path(calls, recording, file, i);
	free(has_open);
}

void open_calls_read(struct open_calls *calls, const struct target *target)
{
	char directory[PATH_MAX], *slash;
	struct recording recording;
	uint32_t i, n;

	*calls = (struct open_calls){ .recording = NULL };
	if (!running_recording(target->pid, directory))
		return;
	slash = strrchr(directory, '/');
	if (!slash || slash == directory)
		return;
	*slash = '\0';
	calls->recording = keep_text(directory, SIZE_MAX);
	recording_open(&recording, calls->recording,
		       (uint32_t)running_own_id(target->pid));
	for (i = 0; i < recording.process_count; i++) {
		const struct process *process = &recording.processes[i];

		/* A program before exec has the same process id, but another
		 * directory. */
		if (strcmp(slash + 1, process->name))
			continue;
		for (n = 0; n < process->file_count; n++)
			if (!process->files[n].is_sampled)
				add_file(calls, &recording, &process->files[n]);
	}
}

const struct open_path *open_calls_of(const struct open_calls *calls, pid_t tid,
				      const struct open_path *after)
{
	const struct open_path *path = after ? after + 1 : calls->paths;
	pid_t own = calls->count ? (pid_t)running_own_id(tid) : tid;

	for (; path < calls->paths + calls->count; path++)
		if (path->tid == own)
			return path;
	return NULL;
}

void open_calls_free(struct open_calls *calls)
{
	uint32_t i;

	for (i = 0; i < calls->count; i++)
		free(calls->paths[i].functions);
	free(calls->paths);
}
