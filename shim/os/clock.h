/*
 * The clocks.  The exact clock is the processor's counter.  The coarse clock
 * costs a load: the kernel writes the counter's value at its last timer tick
 * into a page that it shares with every process ([vvar]).  shim finds the word
 * by comparing the page with the clocks.
 */
#ifndef SHIM_CLOCK_H
#define SHIM_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct shim_meta;

/* Finds both clocks; called once, with the state lock held.  False if there
 * is no coarse clock. */
bool clock_start(void);
/* Writes the properties of the clocks into a new recording. */
void clock_describe(struct shim_meta *meta);
/* Clock units in a second; 0: unknown. */
uint64_t clock_hz(void);
/* The exact clock, or the coarse one where the exact one would fault. */
uint64_t clock_read(void);
/* The calling thread is about to lose the exact clock. */
void clock_close(void);
/* Reads the clocks again, so that the report can compute the length of a unit. */
void clock_note(struct shim_meta *meta);

#endif
