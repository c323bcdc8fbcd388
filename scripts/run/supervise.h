/* Waiting for a child so that nobody can tell it from running it directly. */
#ifndef RUN_SUPERVISE_H
#define RUN_SUPERVISE_H

/* supervise_begin - from here on signals are kept for supervise_wait() */
void supervise_begin(void);

/*
 * supervise_start - run @run in a child that is as this process was before
 *
 * That is: with its signal mask, its ignored signals and its timers.  @run
 * returns the status to exit with if it does not exec.
 *
 * Returns the child's pid or -errno.
 */
int supervise_start(int (*run)(void *data), void *data);

/*
 * supervise_wait - wait for the end of @child and pass on what we are sent
 *
 * A signal that a process sent to us alone goes on to the child; one that was
 * meant for the process group reached the child by itself.  When the child
 * stops we stop as well, and when we are continued so is it.
 *
 * Returns the wait status.
 */
int supervise_wait(int child);

/* supervise_end - end the way the child did: its status or its signal */
void supervise_end(int wait_status) __attribute__((noreturn));

#endif
