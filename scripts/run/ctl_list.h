/* `profrun ctl` without a process: which there are. */
#ifndef RUN_CTL_LIST_H
#define RUN_CTL_LIST_H

#include <stdbool.h>

/* ctl_list - print a line for each process that shim records, or an object with all of
 * them; returns the status, which is 1 with a message if there is none to print a line of */
int ctl_list(bool is_json);

#endif
