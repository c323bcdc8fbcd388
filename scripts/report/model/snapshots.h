/* Heap snapshots that were requested, and the size of the heap over time. */
#ifndef REPORT_MODEL_SNAPSHOTS_H
#define REPORT_MODEL_SNAPSHOTS_H

#include <stdbool.h>
#include <stdint.h>
#include <shim/format.h>

#include "read/process.h"

struct model;

/* The live memory of a path, or of all paths. */
struct alive {
	uint32_t path;
	uint64_t bytes, blocks;
	/* of these, unreachable ones, as in struct memory */
	uint64_t lost, lost_blocks;
	uint64_t below, below_blocks;
};

/* A snapshot of the heap. */
struct snapshot {
	const struct process *process;
	uint32_t number; /* in its process, from 1 on */
	double ns;	 /* after the start */
	double duration_ns;
	uint64_t leaks;	  /* enum shim_leaks */
	uint64_t missing; /* live blocks that are not in it */
	bool is_complete;
	struct alive all;
	struct alive *paths; /* by path */
	uint32_t path_count, path_room;
};

/* The size of the heap at a time. */
struct point {
	double ns; /* after the start */
	uint64_t bytes;
};

/* Call these in order for a process: the snapshots of its files, the addresses
 * of memory nodes, then the live memory of paths. */
void snapshots_begin(struct model *model, const struct process *process);
void snapshots_note(struct model *model, uint64_t address, uint32_t path);
void snapshots_end(struct model *model, const struct process *process);
/* The same for snapshots as memory_move() for memory. */
void snapshots_move(struct model *model, const uint32_t *own);
/* The next snapshot; NULL: no more. */
const struct snapshot *snapshots_get(const struct model *model, uint32_t i);
/* Returns the number of points, sorted by time. */
uint32_t snapshots_points(const struct process *process,
			  struct point points[SHIM_POINTS]);

#endif
