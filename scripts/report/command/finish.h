/* The end of a verb that has shown a recording. */
#ifndef REPORT_COMMAND_FINISH_H
#define REPORT_COMMAND_FINISH_H

struct model;

/* Returns 0: what was asked for is there; 1: damage has left nothing of it. */
int finish(const struct model *model);

#endif
