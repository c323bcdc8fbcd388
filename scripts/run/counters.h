/* The system's counters of the program: memory, processor time, page faults, and
 * processor events if they are available. */
#ifndef RUN_COUNTERS_H
#define RUN_COUNTERS_H

#include <stdbool.h>

/*
 * counters_begin - read the system's counters of @child every @period_ms
 *
 * They are written to @directory once another process has set *@is_there.
 */
void counters_begin(int child, unsigned period_ms, const char *directory,
		    const bool *is_there);

/* counters_end - stop; if @is_wanted, report that they could not be written */
void counters_end(bool is_wanted);

/* counters_remove - remove the counters from the recording */
void counters_remove(void);

#endif
