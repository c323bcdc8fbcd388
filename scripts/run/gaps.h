/* Times when threads of the program had no processor, by the kernel's scheduling
 * events. */
#ifndef RUN_GAPS_H
#define RUN_GAPS_H

#include <stdbool.h>

/*
 * gaps_prepare - before the child is started
 *
 * After it, gaps_wait() in the child returns when gaps_begin() has been called.
 */
void gaps_prepare(void);
void gaps_wait(void);

/*
 * gaps_begin - watch @child, and all threads and processes that it will start
 *
 * The gaps are written to @directory once another process has set *@is_there.  If the
 * kernel does not allow this, a message says so, and no gaps are recorded.
 */
void gaps_begin(int child, const char *directory, const bool *is_there);

/* gaps_end - write the rest and report lost events; if @is_wanted (a program was
 * started), also report that the gaps could not be written */
void gaps_end(bool is_wanted);

/* gaps_remove - remove the gaps from the recording */
void gaps_remove(void);

#endif
