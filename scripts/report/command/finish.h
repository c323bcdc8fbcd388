/* Ends a verb that has shown a recording. */
#ifndef REPORT_COMMAND_FINISH_H
#define REPORT_COMMAND_FINISH_H

struct model;

/* Returns 0 if the requested output exists, and 1 if damage left nothing of
 * it. */
int finish(const struct model *model);

#endif
