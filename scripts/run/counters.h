/* What the system counts of the program: memory, processor time, faults, and events
 * of its processors where that can be had. */
#ifndef RUN_COUNTERS_H
#define RUN_COUNTERS_H

#include <stdbool.h>

/*
 * counters_begin - every @period_ms read what the system says of @child
 *
 * It is noted in @directory once *@is_there, which another process sets.
 */
void counters_begin(int child, unsigned period_ms, const char *directory,
		    const bool *is_there);

/* counters_end - no more of it; if it could not be written, that is said if it
 * @is_wanted */
void counters_end(bool is_wanted);

/* counters_remove - as if nothing had been noted */
void counters_remove(void);

#endif
