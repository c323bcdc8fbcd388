/*
 * What the files of the memory profiler share.
 *
 *     memory.c            allocations and releases, by path
 *     memory_points.c     how much lived, from time to time
 *     memory_snapshots.c  what lives now, when somebody asks
 */
#ifndef MEMORY_H
#define MEMORY_H

#include "calltree.h"

/* How long it may take to find out what is lost; 0: nobody wants to know. */
extern uint64_t memory_leaks_ms;

/* How often, in clock units, what lives is written down; 0: when somebody asks. */
extern uint64_t memory_snapshot_period;

/* The memory node that a block's word means; NULL if it is none of this process. */
struct shim_memory_node *memory_of_note(uint64_t note);

/* --- memory_points.c --- */

/* From this clock on memory_point_add() is to be called. */
extern uint64_t memory_point_due;

/* Makes room for them in @tree; @length: of a tick, in clock units. */
void memory_points_start(struct tree *tree, uint64_t length);
COLD void memory_point_add(uint64_t clock, uint64_t live_bytes);

/* A forked child begins anew. */
void memory_points_forked(void);

/* --- memory_snapshots.c --- */

/* Its number; 0 if there is none.  It takes at most @limit_ms to find out what is lost;
 * 0: nobody wants to know. */
uint32_t memory_snapshot_take(uint64_t limit_ms);
void memory_snapshots_forked(void);

/* Whether something could be found out, by its @result. */
enum shim_leaks memory_leaks_of(enum shim_result result);

#endif
