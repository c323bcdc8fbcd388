/*
 * The ranks of a job, added up: what reports and --ranks need, without the
 * trees of the ranks.  A reduction of some ranks is made by one process, and
 * reductions are added to each other, so many processes can share the work.
 *
 * A file of a reduction holds these structures as they are in memory: only a
 * program with the same structures reads it.  Everything in it can be made
 * again from the ranks.
 */
#ifndef REPORT_MODEL_REDUCTION_H
#define REPORT_MODEL_REDUCTION_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/map.h"
#include "base/names.h"
#include "model/model.h"
#include "model/selftime.h"
#include "read/recording.h"

/* How the times of a path, or its calls, differ between ranks. */
struct rank_spread {
	double least, most, tick;
	uint32_t least_rank, most_rank; /* numbers in the reduction */
	uint32_t count;			/* ranks that have the path */
	uint32_t missing;		/* the first that has not; NONE */
};

struct reduced_path {
	struct path path;
	struct rank_spread spread;
};

/* A function, and a process that called it.  Processes are "RANK/PID.N". */
struct reduced_function {
	const char *process, *group; /* @group: NULL: all calls */
	uint64_t address;	     /* in the memory of that process */
	uint32_t generation;
	bool has_hooks;
	double tick;
	uint64_t calls;
	uint64_t *histogram; /* SHIM_BUCKETS, or NULL */
	const char *key;     /* object, address in it, and group */
};

struct reduced_rank {
	const char *name;
	uint64_t calls;
};

/* A function in a rank. */
struct reduced_figure {
	uint32_t function, rank;
	uint64_t calls;
	struct self_parts parts;
};

/* What only the trees of a process tell. */
struct reduced_process {
	const char *name;
	uint64_t end_clock, latest_clock;
	uint32_t end_source;
};

struct reduced_thread {
	const char *process;
	struct thread thread;
};

/* Sums of the whole model. */
struct reduced_sums {
	double bucket_ns, tick;
	uint64_t calls, open, older, lost, orphans, unwound, damaged;
	uint64_t open_until_when;
	uint64_t lost_causes[SHIM_LOST_CAUSES];
	uint64_t lost_others[SHIM_LOST_KINDS][SHIM_LOST_CAUSES];
	bool has_extras, has_errors, has_times, has_untimed_ranks;
};

struct reduction {
	/* the directories that are in it; also those without a thread */
	struct names parts;
	uint64_t *part_identities; /* reduction_identities() */
	uint32_t part_room;
	struct reduced_rank *ranks;
	struct reduced_process *processes;
	struct reduced_thread *threads;
	struct reduced_function *functions;
	struct reduced_path *paths; /* [0]: the root */
	struct reduced_figure *figures;
	uint32_t rank_count, process_count, thread_count, function_count;
	uint32_t path_count, figure_count;
	uint32_t rank_room, process_room, thread_room, function_room;
	uint32_t path_room, figure_room;
	struct names keys; /* of @functions, with the same numbers */
	struct map path_by_key;
	struct names warnings;
	struct reduced_sums sums;
};

void reduction_begin(struct reduction *reduction);
/*
 * reduction_add - read a rank, and add it
 *
 * @path is the directory of the rank, and @name the last part of it.  Returns
 * false if the rank has more than calls (samples, memory...): then the reduction
 * is as it was.
 */
bool reduction_add(struct reduction *reduction, const char *path,
		   const char *name);
/* Adds @other, whose ranks come after all ranks of @reduction. */
void reduction_join(struct reduction *reduction, const struct reduction *other);
/* Fills the fields of spreads that need all ranks. */
void reduction_end(struct reduction *reduction);
void reduction_free(struct reduction *reduction);
/* Adds the calls and times of @path to @sum. */
void reduction_sum_path(struct path *sum, const struct path *path);

/* Returns false, with errno, if the file cannot be written. */
bool reduction_write(const struct reduction *reduction, FILE *file);
/* Returns false if the file is no reduction that this program can read. */
bool reduction_read(struct reduction *reduction, int fd);

/* A number for each part, which changes when a part of the same name begins
 * anew, or ends; free() them. */
uint64_t *reduction_identities(const struct recording *recording);
/* Builds the model of calls, like model_build(); @recording has no trees. */
void reduction_build(struct model *model, const struct reduction *reduction,
		     struct recording *recording,
		     const struct options *options);

#endif
