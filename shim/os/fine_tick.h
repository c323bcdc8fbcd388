/*
 * The fine tick: profrun writes the clock into a file of the recording (struct shim_tick)
 * many times within one tick of the kernel.
 */
#ifndef SHIM_FINE_TICK_H
#define SHIM_FINE_TICK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shim_meta;

#define FINE_TICK_NAME "tick"
#define FINE_TICK_SIZE 4096

/*
 * Maps the tick's file in the recording's directory @directory, a descriptor, or the
 * error of its opening, with which the opener is asked.  Called after clock_start.  Returns the mapping of FINE_TICK_SIZE bytes; NULL if the file does
 * not exist, or if no process of this machine writes it now.
 */
const void *fine_tick_map(int directory);

/* Writes the fine tick's length into the meta of a recording; 0 if there is no fine
 * tick. */
void fine_tick_describe(struct shim_meta *meta);

/* True once, if its writer was killed before the program's end, with all that could
 * have ended it properly. */
bool fine_tick_was_killed(void);

#endif
