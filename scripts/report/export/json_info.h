/* profrun info --json. */
#ifndef REPORT_EXPORT_JSON_INFO_H
#define REPORT_EXPORT_JSON_INFO_H

#include <stdio.h>

struct model;

/* What was recorded, and how: processes, threads, objects, losses, logs. */
void json_info_print(FILE *out, const struct model *model);
/* How much was recorded, and what it cost. */
void json_info_print_sums(FILE *out, const struct model *model);

#endif
