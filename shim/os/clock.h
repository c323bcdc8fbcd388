/*
 * The clocks.  The exact clock is the processor's counter; the coarse one (coarse_clock.h)
 * costs a load.
 */
#ifndef SHIM_CLOCK_H
#define SHIM_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shim_meta;

/* Finds both clocks; called once, with the state lock held.  False if there
 * is no coarse clock. */
bool clock_start(void);
/* Writes the properties of the clocks into a new recording. */
void clock_describe(struct shim_meta *meta);
/* Clock units in a second; 0: unknown. */
uint64_t clock_hz(void);

#define CLOCK_BOOT_SIZE 48
/* Stores the kernel's boot_id, which names the time since the host was started.  Returns
 * its length; 0: it cannot be read. */
size_t clock_read_boot(char boot[CLOCK_BOOT_SIZE]);

/* Two readings at the same time, nearly: the exact clock and CLOCK_MONOTONIC. */
struct clock_reading {
	uint64_t clock;
	uint64_t mono_ns; /* 0: the system call failed */
};

/* Stores the best of at most @tries readings.  Returns the clock units that passed during
 * it; UINT64_MAX if no system call succeeded. */
uint64_t clock_read_both(struct clock_reading *reading, int tries);
/* The exact clock, or the coarse one where the exact one would fault. */
uint64_t clock_read(void);
/* The calling thread is about to lose the exact clock. */
void clock_close(void);
/* Reads the clocks again, so that the report can compute the length of a unit. */
void clock_note(struct shim_meta *meta);
/* Writes the processor time that the process has taken until its end. */
void clock_note_cpu(struct shim_meta *meta);

#endif
