/*
 * A directory below the working directory for a program that is run only to find something
 * out.  A signal that ends profrun meanwhile ends the program and removes the directory
 * first.
 */
#ifndef RUN_TRIAL_H
#define RUN_TRIAL_H

#include <sys/types.h>

/* Makes the directory and returns its absolute name, or NULL: errno has the reason. */
const char *trial_begin(void);
/* As fork(). */
pid_t trial_fork(void);
/* Waits for the end of @child.  Does not return if a signal ends profrun. */
void trial_wait(pid_t child, int *status);
/* Removes the directory with all that is in it. */
void trial_end(void);

#endif
