/* profrun tui. */
#ifndef REPORT_COMMAND_SCREEN_H
#define REPORT_COMMAND_SCREEN_H

struct options;

int tui(const struct options *options, const char *path);

#endif
