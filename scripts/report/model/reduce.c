/*
 * Reduces a job.  The files reduced.HOST, which each host has written when its
 * last rank ended, are joined; ranks in none of them are shared by processes,
 * one for each processor.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/messages.h"
#include "base/names.h"
#include "base/output.h"
#include "model/reduce.h"
#include "model/reduction.h"
#include "model/window.h"
#include "read/files.h"

/* A job of fewer ranks is read as a whole, unless a file of it was reduced. */
#define RANKS_LEAST 32
/* For fewer ranks, a process costs more than it saves. */
#define RANKS_EACH  8
#define WORKERS_MAX 64

#define FILE_NAME "reduced"

bool reduce_is_possible(const struct options *options)
{
	return !options->pid && !options->threads && !options->samples &&
	       !options->trace && !options->memory && !options->locks &&
	       !options->exceptions && !options->coverage &&
	       !options->has_window && !options->by_line &&
	       options->value != VALUE_WAITS && options->value < VALUE_BYTES;
}

/* --- the files --- */

static bool is_reduced_name(const char *name)
{
	return !strncmp(name, FILE_NAME, strlen(FILE_NAME)) &&
	       (name[strlen(FILE_NAME)] == '\0' ||
		name[strlen(FILE_NAME)] == '.') &&
	       !strstr(name, ".tmp");
}

/* The parts of a recording. */
struct parts {
	const struct recording *recording;
	struct names names;
	uint64_t *identities;
	bool *is_done; /* in the reduction */
};

static struct parts begin_parts(const struct recording *recording)
{
	struct parts parts = {
		.recording = recording,
		.identities = reduction_identities(recording),
		.is_done = allocate(recording->part_count, sizeof(bool)),
	};
	uint32_t i;

	for (i = 0; i < recording->part_count; i++)
		names_add(&parts.names, recording->parts[i].name);
	return parts;
}

static void end_parts(struct parts *parts)
{
	names_free(&parts->names);
	free(parts->identities);
	free(parts->is_done);
}

/* Whether all parts in the file are in the recording, the same as they were, and
 * in no file before. */
static bool is_current(const struct reduction *reduction,
		       const struct parts *parts)
{
	uint32_t i, part;

	for (i = 0; i < reduction->parts.count; i++) {
		part = names_find(&parts->names, reduction->parts.text[i]);
		if (part == NONE || parts->is_done[part] ||
		    reduction->part_identities[i] != parts->identities[part])
			return false;
	}
	return reduction->parts.count > 0;
}

static void join_file(struct reduction *all, const struct parts *parts,
		      int directory, const char *name)
{
	struct reduction reduction;
	uint32_t i;
	int fd = openat(directory, name,
			O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (fd < 0)
		return;
	if (!reduction_read(&reduction, fd)) {
		warn("%s/%s: damaged, or of another version; the ranks are "
		     "read instead",
		     parts->recording->path, name);
		return;
	}
	if (is_current(&reduction, parts)) {
		reduction_join(all, &reduction);
		for (i = 0; i < reduction.parts.count; i++)
			parts->is_done[names_find(
				&parts->names, reduction.parts.text[i])] = true;
	}
	reduction_free(&reduction);
}

static void join_files(struct reduction *all, const struct parts *parts)
{
	int directory = open(parts->recording->path,
			     O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	size_t count, i;
	char **names;

	if (directory < 0)
		return;
	names = list_names(directory, is_reduced_name, &count);
	for (i = 0; i < count; i++)
		join_file(all, parts, directory, names[i]);
	free(names);
	close(directory);
}

/* --- processes that share the ranks --- */

struct worker {
	pid_t pid;
	int file;
};

/* Ends this process; status 2: a rank has more than calls. */
static _Noreturn void reduce_parts(const struct recording *recording,
				   const uint32_t *parts, uint32_t count,
				   int file)
{
	struct reduction reduction;
	FILE *out = fdopen(file, "w");
	uint32_t i;

	die_at_once();
	progress_off();
	reduction_begin(&reduction);
	for (i = 0; i < count; i++) {
		const char *name = recording->parts[parts[i]].name;

		if (!reduction_add(&reduction,
				   keep_format("%s/%s", recording->path, name),
				   name))
			_exit(2);
	}
	reduction_end(&reduction);
	_exit(out && reduction_write(&reduction, out) ? 0 : 1);
}

static struct worker start_worker(const struct recording *recording,
				  const uint32_t *parts, uint32_t count)
{
	struct worker worker = { .file = memfd_create(FILE_NAME, MFD_CLOEXEC) };
	int null;

	worker.pid = worker.file < 0 ? -1 : fork();
	if (worker.pid != 0)
		return worker;
	/* The reader of the file repeats the warnings, in order. */
	null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (null >= 0)
		dup2(null, STDERR_FILENO);
	reduce_parts(recording, parts, count, worker.file);
}

/* Joins what a process has made; false: it has failed. */
static bool end_worker(struct reduction *all, struct worker worker)
{
	struct reduction reduction;
	int status;
	bool is_good;

	if (worker.pid < 0) {
		close(worker.file);
		return false;
	}
	while (waitpid(worker.pid, &status, 0) < 0)
		if (errno != EINTR)
			return false;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		close(worker.file);
		return false;
	}
	lseek(worker.file, 0, SEEK_SET);
	is_good = reduction_read(&reduction, worker.file);
	if (is_good)
		reduction_join(all, &reduction);
	reduction_free(&reduction);
	return is_good;
}

static uint32_t count_workers(uint32_t ranks)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	uint32_t workers = (ranks + RANKS_EACH - 1) / RANKS_EACH;

	if (processors > 0 && workers > (uint32_t)processors)
		workers = (uint32_t)processors;
	return workers > WORKERS_MAX ? WORKERS_MAX : workers;
}

static bool share_parts(struct reduction *all,
			const struct recording *recording,
			const uint32_t *parts, uint32_t count)
{
	uint32_t worker_count = count_workers(count), i, at = 0;
	struct worker workers[WORKERS_MAX];
	bool is_good = true;

	fflush(NULL);
	for (i = 0; i < worker_count; i++) {
		uint32_t share = count / worker_count +
				 (i < count % worker_count);

		workers[i] = start_worker(recording, parts + at, share);
		at += share;
	}
	for (i = 0; i < worker_count; i++)
		is_good = end_worker(all, workers[i]) && is_good;
	return is_good;
}

/* Adds the parts that are not done. */
static bool add_rest(struct reduction *all, const struct parts *parts)
{
	const struct recording *recording = parts->recording;
	uint32_t *rest = allocate(recording->part_count, sizeof(*rest));
	uint32_t count = 0, i;
	bool is_good;

	for (i = 0; i < recording->part_count; i++)
		if (!parts->is_done[i])
			rest[count++] = i;
	is_good = count == 0 || share_parts(all, recording, rest, count);
	free(rest);
	return is_good;
}

/* Calls of one rank and times of another cannot be compared. */
static bool is_mixed(const struct reduction *reduction)
{
	return reduction->sums.has_times && reduction->sums.has_untimed_ranks;
}

const struct reduction *reduce_for_report(const struct recording *recording)
{
	struct reduction *all;
	struct parts parts;
	bool is_good = false;

	if (recording->part_count < 2)
		return NULL;
	all = allocate(1, sizeof(*all));
	parts = begin_parts(recording);
	reduction_begin(all);
	join_files(all, &parts);
	if (all->parts.count > 0 || recording->part_count >= RANKS_LEAST)
		is_good = add_rest(all, &parts) && !is_mixed(all);
	end_parts(&parts);
	if (is_good) {
		reduction_end(all);
		return all;
	}
	reduction_free(all);
	free(all);
	return NULL;
}

/* Marks the parts of other hosts as done. */
static void skip_other_hosts(struct parts *parts, const char *host)
{
	const struct recording *recording = parts->recording;
	uint32_t i;

	for (i = 0; i < recording->process_count; i++) {
		const char *its = process_string(&recording->processes[i],
						 "host");

		parts->is_done[recording->processes[i].part] =
			!its || strcmp(its, host) != 0;
	}
}

bool reduce_write(const struct recording *recording, const char *host)
{
	const char *name = host ? keep_format("%s/%s.%s", recording->path,
					      FILE_NAME, host) :
				  keep_format("%s/%s", recording->path,
					      FILE_NAME);
	struct reduction all;
	struct parts parts;

	if (!recording->parts[0].name)
		die("%s: is one recording, not those of ranks",
		    recording->path);
	parts = begin_parts(recording);
	reduction_begin(&all);
	if (host)
		skip_other_hosts(&parts, host);
	else
		join_files(&all, &parts);
	if (!add_rest(&all, &parts)) {
		reduction_free(&all);
		end_parts(&parts);
		return false;
	}
	reduction_end(&all);
	if (!reduction_write(&all, output_open(name)))
		die("%s: %s", name, strerror(errno));
	output_close();
	reduction_free(&all);
	end_parts(&parts);
	return true;
}
