/* profrun tui and top. */
#ifndef REPORT_COMMAND_SCREEN_H
#define REPORT_COMMAND_SCREEN_H

struct options;

int tui(const struct options *options, const char *path);
/* @pid: the words of the process; NULL: the only one that shim records. */
int top(struct options *options, const char *pid);

#endif
