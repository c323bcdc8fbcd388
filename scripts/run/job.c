/*
 * Parallel jobs, as their starters describe them to each process: OpenMPI,
 * MPICH and its kin (PMI), Slurm's srun.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "job.h"

#define RANKS_MAX	 10000000
#define LOOKS_PER_SECOND 20

struct starter {
	const char *size, *rank;
	const char *id[2]; /* both together identify the job; NULL: none */
};

static const struct starter starters[] = {
	{ "OMPI_COMM_WORLD_SIZE",
	  "OMPI_COMM_WORLD_RANK",
	  { "PMIX_NAMESPACE", NULL } },
	{ "PMI_SIZE", "PMI_RANK", { "PMI_JOBID", NULL } },
	/* Only a job step has this variable, not a batch script itself. */
	{ "SLURM_STEP_NUM_TASKS",
	  "SLURM_PROCID",
	  { "SLURM_JOB_ID", "SLURM_STEP_ID" } },
};

static int read_number(const char *name, unsigned int *number)
{
	const char *text = getenv(name);
	unsigned long value;
	char *end;

	if (text == NULL || *text < '0' || *text > '9')
		return 0;
	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno != 0 || *end != '\0' || value > RANKS_MAX)
		return 0;
	*number = (unsigned int)value;
	return 1;
}

/* Without an id, the parent's pid: the starter is the parent of all ranks of a host. */
static void find_id(struct job *job, const struct starter *starter)
{
	const char *first = starter->id[0] ? getenv(starter->id[0]) : NULL;
	const char *second = starter->id[1] ? getenv(starter->id[1]) : NULL;

	if (first == NULL || *first == '\0')
		snprintf(job->id, sizeof(job->id), "%ld", (long)getppid());
	else
		snprintf(job->id, sizeof(job->id), "%s%s%s", first,
			 second ? "." : "", second ? second : "");
	for (char *at = job->id; *at != '\0'; at++)
		if (*at == '/' || *at == '%' || (unsigned char)*at <= ' ')
			*at = '_';
}

void job_find(struct job *job)
{
	size_t count = sizeof(starters) / sizeof(starters[0]);

	for (size_t i = 0; i < count; i++) {
		if (!read_number(starters[i].size, &job->size) ||
		    !read_number(starters[i].rank, &job->rank) ||
		    job->rank >= job->size)
			continue;
		find_id(job, &starters[i]);
		return;
	}
	*job = (struct job){ .size = 1 };
}

static unsigned int count_ended(const char *directory)
{
	DIR *dir = opendir(directory);
	unsigned int count = 0;
	struct dirent *entry;

	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		char end[sizeof(entry->d_name) + sizeof("/end")];

		if (strncmp(entry->d_name, "rank.", 5) != 0)
			continue;
		snprintf(end, sizeof(end), "%s/end", entry->d_name);
		count += faccessat(dirfd(dir), end, F_OK, 0) == 0;
	}
	if (dir != NULL)
		closedir(dir);
	return count;
}

unsigned int job_wait(const struct job *job, const char *directory,
		      unsigned int seconds)
{
	struct timespec pause = { .tv_nsec = 1000000000 / LOOKS_PER_SECOND };
	unsigned int ended;

	for (unsigned int i = 0;; i++) {
		ended = count_ended(directory);
		if (ended >= job->size || i >= seconds * LOOKS_PER_SECOND)
			return ended;
		nanosleep(&pause, NULL);
	}
}
