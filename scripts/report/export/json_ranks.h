/* report --ranks for programs. */
#ifndef REPORT_EXPORT_JSON_RANKS_H
#define REPORT_EXPORT_JSON_RANKS_H

#include <stdio.h>

struct model;

void ranks_json(FILE *out, struct model *model);

#endif
