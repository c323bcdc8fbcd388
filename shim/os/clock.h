/*
 * Where times come from.  The exact clock is the processor's counter.  The
 * coarse one costs a load: the kernel writes the counter's value at its last
 * timer tick into the page it shares with every process ([vvar]); it is found
 * by matching the page's words against the clocks.
 */
#ifndef SHIM_CLOCK_H
#define SHIM_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct shim_meta;

/* Finds both; call once, with the state lock held.  False: no tick was found. */
bool clock_start(void);
/* Writes what is known into a new recording. */
void clock_describe(struct shim_meta *meta);
/* The exact clock, or the coarse one where the exact one would fault. */
uint64_t clock_read(void);
/* The calling thread is about to lose the exact clock. */
void clock_close(void);
/* Takes another reading, so that the reader knows how long a unit is. */
void clock_note(struct shim_meta *meta);

#endif
