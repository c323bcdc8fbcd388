/*
 * The coarse clock costs a load: at each timer tick the kernel writes the value of its
 * clock source into a page that it shares with every process ([vvar]).
 *
 * Often the clock source is the processor's counter, so the word has clock units.  On
 * virtual machines it may be another clock that runs at a steady rate (kvm-clock, in
 * nanoseconds; Hyper-V's, in 100 ns), and shim converts values of the word.
 */
#ifndef SHIM_COARSE_CLOCK_H
#define SHIM_COARSE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct clock_reading;

/* Finds the word; @hz: clock units in a second.  Called once, with the state lock held.
 * False if there is none. */
bool coarse_clock_start(uint64_t hz);
/* The length of a tick in clock units; 0: no coarse clock. */
uint64_t coarse_clock_length(void);
/* The time of the last tick in clock units; 0: no coarse clock. */
uint64_t coarse_clock_read(void);
/* Reads that time, and CLOCK_MONOTONIC_COARSE of the same tick. */
struct clock_reading coarse_clock_read_both(void);

#endif
