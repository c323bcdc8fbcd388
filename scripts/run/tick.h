/* The fine tick: the clock, written into the recording for the program's hooks (see
 * struct shim_tick in <shim/format.h>). */
#ifndef RUN_TICK_H
#define RUN_TICK_H

#include <stdbool.h>

#define TICK_HZ	    2000
#define TICK_HZ_MIN 100
#define TICK_HZ_MAX 10000

/*
 * tick_begin - start the writer, a process, before the child is started
 *
 * It writes @hz times a second into a file in @directory, once another process has set
 * *@is_there.  tick_wait() in that process returns when the file is there, or cannot
 * be.
 */
void tick_begin(unsigned hz, const char *directory, const bool *is_there);
void tick_wait(void);

/*
 * tick_end - stop the writer and remove its file
 *
 * Processes of the program that still run use the kernel's tick from now on.
 */
void tick_end(void);

#endif
