/*
 * Nodes: their memory, their calls, and the data of profilers about them (nodes.c,
 * node_data.c).
 */
#ifndef PATH_NODES_H
#define PATH_NODES_H

#include "path/path.h"

/* Adds @memory as a further chunk for nodes; false if SHIM_FILE_CHUNKS are in use. */
bool tree_add_chunk(struct tree *tree, void *memory, size_t size);

/* Gets at least @least bytes for nodes and stores the size in *@size; Returns NULL
 * without memory, and sets *@cause. */
void *tree_get_memory(struct tree *tree, size_t least, size_t *size,
		      enum shim_lost *cause);

/* Takes @size zeroed bytes of the file.  Returns NULL without memory, and sets
 * lost_cause. */
void *tree_take(struct tree *tree, size_t size);

/* Returns an empty table with 2^(64 - @shift) slots, or NULL. */
struct table *tree_make_table(uint64_t shift);

/* Makes the child of @parent for @function and @group (0: none); Returns NULL without
 * memory, and sets lost_cause. */
COLD struct shim_node *node_make(struct tree *tree, struct shim_node *parent,
				 uint64_t function, uint16_t group);
/* Makes a node for a call that was open when shim was attached; no search finds it. */
COLD struct shim_node *
node_make_older(struct tree *tree, struct shim_node *parent, uint64_t function);

/* Gives @node the extra node of calltree:exact; its last call took @duration.  A path's
 * first call needs none, because the path's time is its duration. */
COLD void node_add_extra(struct shim_node *node, uint64_t duration);

/* Counts a @duration outside the range of @extra. */
COLD void node_widen(struct shim_extra_node *extra, uint64_t duration);

/* Called when the tick has changed since the end of the last hook.  It was @before when
 * this hook began, in a call of @node, and is @after now. */
COLD void node_ticked(struct shim_node *node, uint64_t before, uint64_t after);

/* The same in the enter of the current node, a child of @parent. */
COLD void node_enter_ticked(struct shim_node *parent, uint64_t before,
			    uint64_t after);

/* Adds the processor time since @start of a call of @node.  The tick was @before at its
 * end.  The parent of @node is current. */
COLD void node_leave_ticked(struct shim_node *node, uint64_t start,
			    uint64_t before, uint64_t after);

/* Changes the clock of @node's next calls if their average length requires it. */
COLD void node_choose_clock(struct shim_node *node);

/* The duration of @node's open call, for close_call. */
uint64_t node_duration(struct shim_node *node);

/* Whether @wanted is @node or one of its callers. */
bool node_is_below(const struct shim_node *node,
		   const struct shim_node *wanted);

/* Calls that end without a leave: their number, and the time of their end by both
 * clocks. */
struct ended_calls {
	uint64_t calls;
	uint64_t time, coarse_time;
};

/* Ends the call of @node, if it is open. */
void node_end_unwound(struct shim_node *node, struct ended_calls *unwound);

/* Adds the calls of @unwound to the recording's count.  Called after all have ended. */
void node_count_unwound(const struct ended_calls *unwound);

/* Ends the calls from @node outwards, up to @outer, which stays open.  Returns @outer.
 * The function changes only local state, so a signal handler that comes between finds
 * the thread unchanged. */
struct shim_node *node_unwind(struct shim_node *node,
			      const struct shim_node *outer);

/* --- data of profilers --- */

/*
 * Each profiler has one word for a node, per slot (path_add_slot).  (@extra of a node
 * is faster, but has only one word.)
 *
 * tree_find_data - the word, or 0 tree_set_data - stores the word; false without
 * memory, and sets lost_cause
 */
uint64_t tree_find_data(const struct tree *tree, const struct shim_node *node,
			unsigned slot);
bool tree_set_data(struct tree *tree, const struct shim_node *node,
		   unsigned slot, uint64_t word);

#endif
