/* Prints which ranks of a job are missing, and how others ended. */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <shim/format.h>

#include "base/memory.h"
#include "base/text.h"
#include "read/job.h"
#include "read/process.h"
#include "read/recording.h"
#include "text/job.h"

#define KINDS_MAX 8 /* of ends, of programs, or of jobs */

static bool is_missing(const struct job_rank *rank, const void *context)
{
	(void)context;
	return rank->starts == 0;
}

/* The last image of the process that was started as a rank. */
static const struct process *last_image(const struct recording *recording,
					uint32_t part)
{
	const struct process *last = NULL;
	uint32_t i;

	for (i = 0; i < recording->process_count; i++) {
		const struct process *process = &recording->processes[i];

		if (process->part == part && process->is_main &&
		    (!last || process->number > last->number))
			last = process;
	}
	return last;
}

/* The wait status of a rank: the one that profrun saw, or, after `profrun record`, what
 * shim has seen in the program.  False if it is not known. */
static bool find_status(const struct recording *recording,
			const struct job_rank *rank, int *status)
{
	const struct run *part = &recording->parts[rank->part];
	const struct process *last;

	*status = part->wait_status;
	if (!rank->starts || part->has_end)
		return rank->starts != 0;
	last = last_image(recording, rank->part);
	if (!last)
		return false;
	*status = last->meta.end == SHIM_END_ABORT ?
			  SIGABRT :
			  W_EXITCODE((int)(last->meta.exit_status & 255), 0);
	return last->meta.end == SHIM_END_EXIT ||
	       last->meta.end == SHIM_END_ABORT;
}

static bool has_no_end(const struct job_rank *rank, const void *context)
{
	int status;

	return rank->starts && !find_status(context, rank, &status);
}

static bool was_restarted(const struct job_rank *rank, const void *context)
{
	(void)context;
	return rank->starts > 1;
}

/* A wait status, and the parts that have one. */
struct ending {
	const struct recording *recording;
	int status;
};

static bool has_status(const struct job_rank *rank, const void *context)
{
	const struct ending *ending = context;
	int status;

	return find_status(ending->recording, rank, &status) &&
	       status == ending->status;
}

static bool runs_program(const struct job_rank *rank, const void *context)
{
	return rank->starts && rank->program && !strcmp(rank->program, context);
}

/* Prints "rank 3 TEXT", or "ranks 3, 5 TEXTS"; nothing if there is none. */
static void put_ranks(FILE *out, const struct job *job,
		      bool (*wanted)(const struct job_rank *, const void *),
		      const void *context, const char *one, const char *many)
{
	uint32_t count;
	char *list = job_list(job, wanted, context, &count);

	if (count)
		fprintf(out, "  rank%s %s %s\n", count == 1 ? "" : "s", list,
			count == 1 ? one : many);
	free(list);
}

static void put_status(FILE *out, const struct job *job,
		       const struct ending *ending)
{
	int status = ending->status;
	const char *text;

	text = WIFSIGNALED(status) ?
		       keep_format("killed by signal %d (%s)", WTERMSIG(status),
				   strsignal(WTERMSIG(status))) :
		       keep_format("with exit status %d", WEXITSTATUS(status));
	put_ranks(out, job, has_status, ending,
		  keep_format("%s %s", WIFSIGNALED(status) ? "was" : "ended",
			      text),
		  keep_format("%s %s", WIFSIGNALED(status) ? "were" : "ended",
			      text));
}

/* A line for each way to end but success. */
static void put_ends(FILE *out, const struct job *job,
		     const struct recording *recording)
{
	int seen[KINDS_MAX];
	uint32_t i, n, count = 0;

	for (i = 0; i < job->count && count < KINDS_MAX; i++) {
		struct ending ending = { recording, 0 };

		if (!find_status(recording, &job->ranks[i], &ending.status) ||
		    ending.status == 0)
			continue;
		for (n = 0; n < count && seen[n] != ending.status; n++)
			;
		if (n < count)
			continue;
		seen[count++] = ending.status;
		put_status(out, job, &ending);
	}
}

static bool is_of_size(const struct job_rank *rank, const void *context)
{
	return rank->starts && rank->size == *(const uint32_t *)context;
}

/* Ranks of another job have taken the places of ranks that were missing. */
static void put_sizes(FILE *out, const struct job *job)
{
	uint32_t seen[KINDS_MAX], i, n, count = 0;

	for (i = 0; i < job->count && count < KINDS_MAX; i++) {
		for (n = 0; n < count && seen[n] != job->ranks[i].size; n++)
			;
		if (job->ranks[i].size && n == count)
			seen[count++] = job->ranks[i].size;
	}
	for (n = 0; count > 1 && n < count; n++)
		put_ranks(out, job, is_of_size, &seen[n],
			  keep_format("is of a job of %u ranks", seen[n]),
			  keep_format("are of a job of %u ranks", seen[n]));
}

/* Lists the programs if there are several. */
static void put_programs(FILE *out, const struct job *job)
{
	const char *seen[KINDS_MAX];
	uint32_t i, n, count = 0;

	for (i = 0; i < job->count && count < KINDS_MAX; i++) {
		const char *program = job->ranks[i].program;

		for (n = 0; program && n < count; n++)
			if (!strcmp(seen[n], program))
				break;
		if (program && n == count)
			seen[count++] = program;
	}
	for (n = 0; count > 1 && n < count; n++) {
		uint32_t ranks;
		char *list = job_list(job, runs_program, seen[n], &ranks);

		fprintf(out, "  rank%s %s ran ", ranks == 1 ? "" : "s", list);
		put_text(out, seen[n]);
		fputc('\n', out);
		free(list);
	}
}

void job_print(FILE *out, const struct recording *recording)
{
	struct job job;

	job_read(&job, recording);
	put_ranks(out, &job, is_missing, NULL,
		  keep_format("of %u has left no recording", job.count),
		  keep_format("of %u have left no recording", job.count));
	put_ranks(out, &job, has_no_end, recording,
		  "has no end: it was killed together with profrun, or still "
		  "runs",
		  "have no end: they were killed together with profrun, or "
		  "still run");
	put_ends(out, &job, recording);
	put_ranks(out, &job, was_restarted, NULL,
		  "was started more than once; all starts count",
		  "were started more than once; all starts count");
	put_sizes(out, &job);
	put_programs(out, &job);
	job_free(&job);
}
