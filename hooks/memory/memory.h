/*
 * Declarations shared by the files of the memory profiler.
 *
 *     memory.c            allocations and releases, by path
 *     memory_points.c     live bytes over time
 *     memory_snapshots.c  live blocks by path, on request
 */
#ifndef MEMORY_H
#define MEMORY_H

#include "path/path.h"

/* The kernel's tick, which is in the notes of blocks; NULL: not found */
extern const volatile uint64_t *memory_tick;

/* The time limit of the leak scan; 0: no scan. */
extern uint64_t memory_leaks_ms;

/* The period of snapshots in clock units; 0: only on request. */
extern uint64_t memory_snapshot_period;

/* The memory node of a block's note; NULL if the note belongs to another process. */
struct shim_memory_node *memory_of_note(uint64_t note);

/* --- memory_points.c --- */

/* The value of the tick from which memory_point_add() must be called. */
extern uint64_t memory_point_due;

/* Makes the node of points in @tree.  The length of a tick is @units of the tick, and
 * @clock in clock units. */
void memory_points_start(struct tree *tree, uint64_t units, uint64_t clock);
/* @tick is a value of the kernel's tick. */
COLD void memory_point_add(uint64_t tick, uint64_t live_bytes);

/* Called in a fork child, which starts again without points. */
void memory_points_forked(void);

/* --- memory_snapshots.c --- */

/* Takes a snapshot.  Returns its number; 0 without memory, or while another snapshot is
 * in progress.  The leak scan takes at most @limit_ms; with 0, nothing is scanned. */
uint32_t memory_snapshot_take(uint64_t limit_ms);
void memory_snapshots_forked(void);

/* The state of the leaks after a scan with @result. */
enum shim_leaks memory_leaks_of(enum shim_result result);

#endif
