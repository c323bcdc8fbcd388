/* The ranks of a parallel job: which recordings they left, and how they ended. */
#ifndef REPORT_READ_JOB_H
#define REPORT_READ_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "read/recording.h"

/* A rank of the job; of one that was started again, the last start counts. */
struct job_rank {
	uint32_t starts; /* 0: it has left no recording */
	uint32_t part;	 /* in recording->parts */
	uint32_t size; /* ranks of its job, as its process knows; 0: unknown */
	const char *program;
};

struct job {
	struct job_rank *ranks;
	uint32_t count; /* 0: the recording is not that of a job */
};

/* Finds the ranks by the names of the parts, "rank.N" or "rank.N.START", and
 * their number by what the processes know of it. */
void job_read(struct job *job, const struct recording *recording);
void job_free(struct job *job);

/* Lists numbers as "3, 7-9, 12", at most a few ranges; free() it. */
char *job_list(const struct job *job,
	       bool (*wanted)(const struct job_rank *rank, const void *context),
	       const void *context, uint32_t *count);

#endif
