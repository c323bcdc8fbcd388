/* Adds the times of nodes to their paths. */
#ifndef REPORT_MODEL_NODE_TIMES_H
#define REPORT_MODEL_NODE_TIMES_H

#include <stdbool.h>
#include <stdint.h>
#include <shim/format.h>

#include "base/map.h"
#include "base/names.h"

struct entry;
struct model;
struct path;
struct process;
struct tree_file;

/* A node of a function that was switched off (--budget). */
struct counted {
	uint32_t path, thread, throttled;
	uint64_t before;   /* calls before that */
	uint64_t recorded; /* and since */
};

/* A model under construction, with the file that is being added. */
struct build {
	struct model *model;
	struct process *process;
	struct tree_file *file;
	uint32_t process_index;
	struct map paths;     /* parent << 32 | function */
	struct names threads; /* "process/tid/name" */
	uint32_t *stack;
	uint64_t last; /* the last tick of the thread that is being added */
	bool has_coroutines;	/* a thread of the file has run some */
	uint32_t orphan_thread; /* thread of the nodes without a root */
	uint64_t cycles, cycle_offset;
	uint64_t bad_times, bad_time_offset;
	uint64_t bad_counts, bad_count_offset;
	uint64_t count_limit; /* process_count_limit() */
	uint64_t bad_extras, bad_extra_offset;
	uint64_t bad_memory, bad_memory_offset;
	struct shim_heap_node heap; /* of the process; valid if has_heap */
	bool has_heap;
	bool is_calibrated; /* budget_is_calibrated() */
	/* of the process; if true, the following are valid: */
	bool has_budget;
	uint32_t first_throttled;
	struct map throttled; /* by site */
	struct counted *counted;
	uint32_t counted_count, counted_room;
};

/* Counts a damage, and keeps the place of the first. */
void model_blame(uint64_t *count, uint64_t *first, uint64_t offset);
/* Tells of @count counts of the file @name that cannot be, and adds them to the damage. */
void model_count_bad(struct model *model, const char *name, uint64_t count,
		     uint64_t first);
/* Adds the minimum, maximum and histogram of the node at @offset, if all of its
 * calls were timed exactly. */
void node_times_add_ranges(struct build *build, const struct shim_node *node,
			   uint64_t offset, struct path *path);
/* Whether the times fit: no path can have taken longer than the time that there
 * was. */
bool node_times_are_possible(const struct process *process,
			     const struct shim_node *node);
/* Adds the time of @node to @path, and the children's part of it to @parent. */
void node_times_add(struct build *build, const struct shim_node *node,
		    const struct entry *entry, struct path *path,
		    struct path *parent);

#endif
