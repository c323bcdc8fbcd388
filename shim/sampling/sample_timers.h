/*
 * The timers of the sampler: they decide when the next sample of a thread is due, and
 * its weight.  State lock held, except for functions that say they are async.
 */
#ifndef SHIM_SAMPLE_TIMERS_H
#define SHIM_SAMPLE_TIMERS_H

#include "runtime/thread.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct sample_rate {
	uint32_t mode; /* enum shim_sample_mode */
	uint32_t frequency_hz;
	int signal;
	uint32_t
		distance; /* of two signals of a thread that runs, in periods */
};

/* Creates the timers of @thread or sets them again.  Returns 0; on -errno the thread
 * has no timers. */
int timers_set(struct thread *thread, const struct sample_rate *rate);

void timers_remove(struct thread *thread);

/* Whether a timer of the sampler has sent the signal with @info.  Async. */
bool timers_have_sent(const siginfo_t *info);

/* The weight in periods of the sample with @info; @self is the calling thread.  0 if
 * less than a period of the thread's time has passed.  Async. */
uint32_t timers_weigh(struct thread *self, const siginfo_t *info,
		      const struct sample_rate *rate);

/* Returns the time that @self has spent in callbacks since timers_weigh, in ns: real time
 * in mode REAL, otherwise processor time.  The weights of later samples do not contain
 * that processor time.  Async. */
uint64_t timers_leave_out(struct thread *self, const struct sample_rate *rate);

/* Sets the fine timer again if the distance is more than a period, or was: a random one, or one
 * period if @self->is_sample_soon.  Called at the end of each signal of a timer.  Async. */
void timers_keep_distance(struct thread *self, const struct sample_rate *rate);

#endif
