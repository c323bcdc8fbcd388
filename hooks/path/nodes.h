/*
 * Nodes: their memory, their calls, and data of profilers for them (nodes.c,
 * node_data.c).
 */
#ifndef PATH_NODES_H
#define PATH_NODES_H

#include "path/path.h"

/* Adds @memory as a further chunk for nodes; false: SHIM_FILE_CHUNKS are in use. */
bool tree_add_chunk(struct tree *tree, void *memory, size_t size);

/* Gets at least @least bytes for nodes and stores the size in *@size; NULL sets
 * *@cause. */
void *tree_get_memory(struct tree *tree, size_t least, size_t *size,
		      enum shim_lost *cause);

/* @size zeroed bytes of the file; NULL sets lost_cause. */
void *tree_take(struct tree *tree, size_t size);

/* An empty table with 2^(64 - @shift) slots, or NULL. */
struct table *tree_make_table(uint64_t shift);

/* Makes the child of @parent for @function and @group (0: none); NULL sets
 * lost_cause. */
COLD struct shim_node *node_make(struct tree *tree, struct shim_node *parent,
				 uint64_t function, uint16_t group);

/* Gives @node the extra node of calltree:exact; its last call took @duration.  The
 * first call needs none: the path's time is its duration. */
COLD void node_add_extra(struct shim_node *node, uint64_t duration);

/* Counts a @duration outside the range of @extra. */
COLD void node_widen(struct shim_extra_node *extra, uint64_t duration);

/* The tick has changed since the end of the last hook.  It was @before when this hook
 * began, in a call of @node, and is @after now. */
COLD void node_ticked(struct shim_node *node, uint64_t before, uint64_t after);

/* By processor time, adds that of a call of @node since @start, when the tick was @before
 * at its end; its parent is current. */
COLD void node_leave_ticked(struct shim_node *node, uint64_t start,
			    uint64_t before, uint64_t after);

/* Changes the clock of @node's next calls if their average length calls for it. */
COLD void node_choose_clock(struct shim_node *node);

/* The duration of @node's open call, for close_call. */
uint64_t node_duration(struct shim_node *node);

/* Whether @wanted is @node or one of its callers. */
bool node_is_below(const struct shim_node *node,
		   const struct shim_node *wanted);

/* Calls that end without their leave: their number, and the time when they were ended,
 * by both clocks. */
struct ended_calls {
	uint64_t calls;
	uint64_t time, tick;
};

/* Ends the call of @node, if it is open. */
void node_end_unwound(struct shim_node *node, struct ended_calls *unwound);

/* Adds the calls of @unwound to the recording's count, once all are ended. */
void node_count_unwound(const struct ended_calls *unwound);

/* Ends the calls from @node outwards, up to @outer, which stays open and is returned.
 * The function uses only local state: a signal handler that comes between finds the
 * thread unchanged. */
struct shim_node *node_unwind(struct shim_node *node,
			      const struct shim_node *outer);

/* --- data of profilers --- */

/*
 * A word of each profiler for a node, one per slot (path_add_slot).  (@extra of a node
 * is faster, and has room for one word.)
 *
 * tree_find_data - the word, or 0
 * tree_set_data - false: no memory, lost_cause is set
 */
uint64_t tree_find_data(const struct tree *tree, const struct shim_node *node,
			unsigned slot);
bool tree_set_data(struct tree *tree, const struct shim_node *node,
		   unsigned slot, uint64_t word);

#endif
