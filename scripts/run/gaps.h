/* When threads of the program had no processor, as the kernel sees it. */
#ifndef RUN_GAPS_H
#define RUN_GAPS_H

#include <stdbool.h>

/*
 * gaps_prepare - before the child is started
 *
 * From then on gaps_wait() in the child returns when gaps_begin() has been called.
 */
void gaps_prepare(void);
void gaps_wait(void);

/*
 * gaps_begin - look at @child and at all threads and processes it will start
 *
 * They are noted in @directory once *@is_there, which another process sets.  If the
 * kernel does not allow that, says so, and nothing is noted.
 */
void gaps_begin(int child, const char *directory, const bool *is_there);

/* gaps_end - what is left is written; if anything was lost, it is said; that it cannot
 * be written only if it @is_wanted: a program was started */
void gaps_end(bool is_wanted);

/* gaps_remove - as if nothing had been noted */
void gaps_remove(void);

#endif
