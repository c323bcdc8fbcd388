/* What is not exact, in JSON and CSV, and in a message for formats without room for it. */
#ifndef REPORT_EXPORT_ESTIMATES_H
#define REPORT_EXPORT_ESTIMATES_H

#include <stdbool.h>
#include <stdio.h>

#include "model/estimates.h"

struct json;
struct model;

/* "calls" and what of them is exact, estimated and how far off.  Without @is_counted no
 * hook counts them: all are null. */
void json_calls(struct json *json, const struct count *count, bool is_counted);
/* What times are below that cannot be told from 0, see model/bounds.h. */
void json_bounds(struct json *json, double self, double total);
/* The budget of the recording; nothing without one. */
void json_budget(struct json *json, const struct model *model);

/* The last columns of a row; @count NULL: their names. */
void csv_calls(FILE *out, const struct count *count);

/* Which functions' calls are estimates, as a warning; nothing if none are. */
void estimates_tell(const struct model *model);

#endif
