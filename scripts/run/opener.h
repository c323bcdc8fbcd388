/* The opener: opens files of the recording for processes that may not do so themselves any
 * more (shim/os/opener.h). */
#ifndef RUN_OPENER_H
#define RUN_OPENER_H

#include <stdbool.h>

/*
 * opener_begin - start the opener, a process, before the child is started
 *
 * Only root needs one: its programs can become other users.  The opener waits until another
 * process has set *@is_there, then serves the recording @directory.
 *
 * opener_secret - what the program's variable SHIM_OPENER must be; NULL: there is no opener
 *
 * opener_end - stop the opener, unless processes of the recording live: then it stops with the
 * last of them
 */
void opener_begin(const char *directory, const bool *is_there);
const char *opener_secret(void);
void opener_end(const char *directory);

#endif
