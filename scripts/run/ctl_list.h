/* `profrun ctl` without a process: which there are. */
#ifndef RUN_CTL_LIST_H
#define RUN_CTL_LIST_H

/* ctl_list - print a line for each process that shim records; returns the status, which
 * is 1 with a message if there is none */
int ctl_list(void);

#endif
