/* Waits for a child as if the child had been run directly. */
#ifndef RUN_SUPERVISE_H
#define RUN_SUPERVISE_H

/*
 * supervise_begin - keep signals for supervise_wait() from now on
 *
 * Returns 0, or -errno if signals cannot be blocked.
 */
int supervise_begin(void);

/*
 * supervise_start - run @run in a child with the earlier state of this process
 *
 * The state is its signal mask, its ignored signals and its timers.  @run returns the
 * exit status in case it does not exec.
 *
 * Returns the child's pid or -errno.
 */
int supervise_start(int (*run)(void *data), void *data);

/*
 * supervise_helper - call @ended from supervise_wait() when another child of this
 * process, @pid, has ended
 *
 * A helper that was stopped is killed: it helps no more.
 */
void supervise_helper(int pid, void (*ended)(void));

/*
 * supervise_wait - wait for the end of @child and forward signals
 *
 * A signal that was sent to this process alone is forwarded to the child; a signal for
 * the process group reached the child already.  When the child stops, this process
 * stops as well; when this process is continued, so is the child.
 *
 * Returns the wait status.
 */
int supervise_wait(int child);

/* supervise_end - end as the child did: with its status or its signal */
void supervise_end(int wait_status) __attribute__((noreturn));

#endif
