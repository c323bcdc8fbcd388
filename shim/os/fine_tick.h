/*
 * The fine tick: the clock, which profrun writes into a file of the recording
 * (struct shim_tick) many times in a tick of the kernel.
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
 * Maps the file of the recording's directory @directory (a descriptor), once the
 * clocks have started.  Returns the mapping of FINE_TICK_SIZE bytes, or NULL: there is
 * no such file, or it is not written now, or not on this machine.
 */
const void *fine_tick_map(int directory);

/* Writes its length into the meta of a recording. */
void fine_tick_describe(struct shim_meta *meta);

/* True once, if its writer was killed before the program's end, with all that could
 * have ended it properly. */
bool fine_tick_was_killed(void);

#endif
