/* Finds the ranks of a job in the parts of a recording. */
#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/messages.h"
#include "base/text.h"
#include "read/job.h"
#include "read/process.h"
#include "read/recording.h"

#define RANKS_MAX  10000000u
#define RANGES_MAX 20

/* "rank.12", "rank.12.1"; NONE for other names. */
static uint32_t rank_of(const char *name)
{
	unsigned long rank;
	char *end;

	if (!name || strncmp(name, "rank.", 5) != 0 ||
	    !isdigit((unsigned char)name[5]))
		return NONE;
	rank = strtoul(name + 5, &end, 10);
	return (*end == '\0' || *end == '.') && rank < RANKS_MAX ?
		       (uint32_t)rank :
		       NONE;
}

/* The highest rank, plus one; 0: a part is no rank. */
static uint32_t count_parts(const struct recording *recording)
{
	uint32_t i, rank, count = 0;

	for (i = 0; i < recording->part_count; i++) {
		rank = rank_of(recording->parts[i].name);
		if (rank == NONE)
			return 0;
		if (rank >= count)
			count = rank + 1;
	}
	return count;
}

/* The size of its job; a damaged number is not believed. */
static uint32_t stated_by(const struct process *process)
{
	const char *text = process_string(process, "ranks");
	unsigned long count = text ? strtoul(text, NULL, 10) : 0;

	return count <= RANKS_MAX ? (uint32_t)count : 0;
}

static uint32_t stated_count(const struct recording *recording)
{
	uint32_t i, count = 0;

	for (i = 0; i < recording->process_count && count == 0; i++)
		count = stated_by(&recording->processes[i]);
	return count;
}

/* The job and the program of the first process of each part. */
static void find_programs(struct job *job, const struct recording *recording)
{
	const char *program;
	uint32_t i, rank;

	for (i = 0; i < recording->process_count; i++) {
		const struct process *process = &recording->processes[i];

		rank = rank_of(recording->parts[process->part].name);
		if (rank >= job->count || job->ranks[rank].program)
			continue;
		program = process_string(process, "program");
		job->ranks[rank].program = program ? base_name(program) : NULL;
		job->ranks[rank].size = stated_by(process);
	}
}

void job_read(struct job *job, const struct recording *recording)
{
	uint32_t count = count_parts(recording), i, rank;
	uint32_t stated = count ? stated_count(recording) : 0;

	*job = (struct job){ .count = count > stated ? count : stated };
	if (count == 0)
		job->count = 0;
	job->ranks = allocate(job->count, sizeof(*job->ranks));
	for (i = 0; job->count && i < recording->part_count; i++) {
		rank = rank_of(recording->parts[i].name);
		job->ranks[rank].starts++;
		job->ranks[rank].part = i;
	}
	find_programs(job, recording);
}

void job_free(struct job *job)
{
	free(job->ranks);
}

static void put_range(FILE *out, uint32_t first, uint32_t last, uint32_t number)
{
	if (number == RANGES_MAX)
		fputs(", ...", out);
	if (number >= RANGES_MAX)
		return;
	fprintf(out, "%s%u", number ? ", " : "", first);
	if (last > first)
		fprintf(out, "%s%u", last == first + 1 ? ", " : "-", last);
}

char *job_list(const struct job *job,
	       bool (*wanted)(const struct job_rank *rank, const void *context),
	       const void *context, uint32_t *count)
{
	uint32_t i, first = NONE, ranges = 0;
	size_t size;
	char *text = NULL;
	FILE *out = open_memstream(&text, &size);

	*count = 0;
	if (!out)
		die("out of memory");
	for (i = 0; i <= job->count; i++) {
		if (i < job->count && wanted(&job->ranks[i], context)) {
			++*count;
			if (first == NONE)
				first = i;
		} else if (first != NONE) {
			put_range(out, first, i - 1, ranges++);
			first = NONE;
		}
	}
	fclose(out);
	return text;
}
