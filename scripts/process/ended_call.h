/* System calls that a tracer's stop has ended. */
#ifndef PROCESS_ENDED_CALL_H
#define PROCESS_ENDED_CALL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

/*
 * ended_call_repeat - lets a stopped thread begin a call again that failed with EINTR
 *
 * signal(7) lists such calls: a stop ends them also without a signal for the program.
 * Then this function changes @registers, which the caller stores in the thread; they have
 * the call's number in rax.  @mask: the signals that the thread blocks.
 *
 * Returns false if there is nothing to repeat.
 */
bool ended_call_repeat(pid_t pid, pid_t tid, uint64_t mask,
		       struct user_regs_struct *registers);

/* Whether the call ended so, and has no time limit.  A repeated call has its whole limit
 * again; so a stop every few milliseconds would make the limit endless. */
bool ended_call_is_unlimited(const struct user_regs_struct *registers);

#endif
