/* What is removed if the program ends early, by die() or by a signal. */
#ifndef REPORT_BASE_UNFINISHED_H
#define REPORT_BASE_UNFINISHED_H

#include <signal.h>

/*
 * Calls @remove before the program ends early; a second call with the same function does
 * nothing.  Signal handlers call it, so it may allocate nothing.  A signal that is ignored
 * (nohup, background jobs) stays so.
 */
void unfinished_add(void (*remove)(void));

/* The signals that do so, for a caller that blocks them. */
void unfinished_signals(sigset_t *set);

#endif
