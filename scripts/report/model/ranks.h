/* Measures how evenly the parts of a job share its work. */
#ifndef REPORT_MODEL_RANKS_H
#define REPORT_MODEL_RANKS_H

#include <stdbool.h>
#include <stdint.h>

#include "model/model.h"

/* Self time, or total of a path; or calls. */
struct rank_figure {
	uint32_t rank, next;
	double value;
};

/* A function, or a call path.  Ranks without a figure have no entry: there may
 * be many ranks. */
struct rank_row {
	uint32_t first, last; /* range in ranks->figures, by rank; or NONE */
	uint32_t count;
	uint64_t calls;
	bool has_estimate; /* among them, */
	bool has_unknown;  /* and calls that cannot be estimated */
	double tick;	   /* the coarsest clock of its times; 0: exact */
	double mean, least, most;
	uint32_t least_rank, most_rank;
};

struct ranks {
	struct model *model;
	bool is_timed;
	const char **names;
	uint32_t count;
	struct rank_figure *figures;
	uint32_t figure_count, figure_room;
	double *each; /* figures of one row, for printing */
	uint32_t *of_thread;
	struct rank_row all;
	struct rank_row *functions;
	/* Paths of all ranks in one tree, parents before children. */
	struct rank_row *paths;
	uint32_t *parent, *function;
	uint32_t path_count, path_room, parent_room, function_room;
};

/* Adds up @model, which has the paths of threads separate. */
void ranks_collect(struct ranks *ranks, struct model *model);

/* The slowest rank's time above the mean, in percent. */
double ranks_imbalance(const struct rank_row *row);

/* The paths of all ranks, in one tree. */
void ranks_add_paths(struct ranks *ranks);

#endif
