/* What lived when somebody asked, and how much did from time to time. */
#ifndef REPORT_MODEL_SNAPSHOTS_H
#define REPORT_MODEL_SNAPSHOTS_H

#include <stdbool.h>
#include <stdint.h>
#include <shim/format.h>

#include "read/process.h"

struct model;

/* What a path had that lived, or all of them together. */
struct alive {
	uint32_t path;
	uint64_t bytes, blocks;
	uint64_t lost, lost_blocks; /* of these, as in struct memory */
	uint64_t below, below_blocks;
};

/* What lived when somebody asked. */
struct snapshot {
	const struct process *process;
	uint32_t number; /* in its process, from 1 on */
	double ns;	 /* after the start */
	double duration_ns;
	uint64_t leaks;	  /* enum shim_leaks */
	uint64_t missing; /* blocks that are not in it */
	bool is_complete;
	struct alive all;
	struct alive *paths; /* by path */
	uint32_t path_count, path_room;
};

/* How much lived at a time. */
struct point {
	double ns; /* after the start */
	uint64_t bytes;
};

/*  Of a process: what there is, then where memory nodes are, then who
 * had what. */
void snapshots_begin(struct model *model, const struct process *process);
void snapshots_note(struct model *model, uint64_t address, uint32_t path);
void snapshots_end(struct model *model, const struct process *process);
/* The same of blocks as memory_move() says of memory. */
void snapshots_move(struct model *model, const uint32_t *own);
/* NULL: there are no more. */
const struct snapshot *snapshots_get(const struct model *model, uint32_t i);
/* Returns how many there are, in their order. */
uint32_t snapshots_points(const struct process *process,
			  struct point points[SHIM_POINTS]);

#endif
