/* Prints which ranks of a job are missing, and how others ended. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/memory.h"
#include "base/text.h"
#include "read/job.h"
#include "read/recording.h"
#include "text/job.h"

#define KINDS_MAX 8 /* of ends, or of programs */

static bool is_missing(const struct job_rank *rank, const void *context)
{
	(void)context;
	return rank->starts == 0;
}

static bool has_no_end(const struct job_rank *rank, const void *context)
{
	const struct recording *recording = context;

	return rank->starts && !recording->parts[rank->part].has_end;
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
	const struct run *part = &ending->recording->parts[rank->part];

	return rank->starts && part->has_end &&
	       part->wait_status == ending->status;
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
		const struct run *part = &recording->parts[job->ranks[i].part];
		struct ending ending = { recording, part->wait_status };

		if (!job->ranks[i].starts || !part->has_end ||
		    part->wait_status == 0)
			continue;
		for (n = 0; n < count && seen[n] != part->wait_status; n++)
			;
		if (n < count)
			continue;
		seen[count++] = part->wait_status;
		put_status(out, job, &ending);
	}
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
	put_programs(out, &job);
	job_free(&job);
}
