/* Who was late in a parallel job, and how long others waited for it. */
#ifndef REPORT_MODEL_LATE_RANKS_H
#define REPORT_MODEL_LATE_RANKS_H

#include <stdint.h>

#include "model/model.h"
#include "trace/messages.h"
#include "trace/trace.h"

/* Waits of any process in one function for one other process, for one reason. */
struct late_rank {
	enum message_wait_kind kind;
	uint32_t late;	   /* process that was late */
	uint32_t function; /* in which others waited; a number in the model */
	uint32_t thread;   /* of the late process */
	double waited_ns;
	uint64_t times;
};

/* A process of the job. */
struct rank_waits {
	double waited_ns;  /* of all its threads */
	double awaited_ns; /* others have waited so long for it */
};

struct late_ranks {
	struct recording recording;
	struct model model; /* used for its functions only */
	struct trace trace;
	const struct messages *messages;
	struct late_rank *all; /* the longest first */
	uint32_t count;
	struct rank_waits *processes; /* by number in recording.processes */
};

/* Reads the messages of the recording at @path; ->messages is NULL if there are none. */
void late_ranks_find(struct late_ranks *ranks, const char *path);
void late_ranks_free(struct late_ranks *ranks);

/* "sends later", "receives later", "comes last" */
const char *late_reason(enum message_wait_kind kind);
/* "rank 2"; or the name of the recording's process. */
const char *late_rank_name(const struct late_ranks *ranks, uint32_t process);

#endif
