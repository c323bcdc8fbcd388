/*
 * Calls that were open when shim was attached (open_before.c).  Profilers get them by
 * <shim/builtin.h>.
 */
#ifndef SHIM_OPEN_BEFORE_H
#define SHIM_OPEN_BEFORE_H

/* Notes the time of an attach and the threads that run then.  Called before the hooks lead
 * to shim. */
void open_before_note(void);

/* Called before a fork, and in its child: the calls of the thread that forks are open in the
 * child, too.  State lock held, or the fork's child. */
void open_before_forks(void);
void open_before_forked(void);

#endif
