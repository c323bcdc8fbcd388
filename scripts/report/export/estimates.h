/* Writes estimates and bounds in JSON and CSV, and as a warning for formats
 * without fields for them. */
#ifndef REPORT_EXPORT_ESTIMATES_H
#define REPORT_EXPORT_ESTIMATES_H

#include <stdbool.h>
#include <stdio.h>

#include "model/estimates.h"

struct json;
struct model;

/* Writes "calls", its exact and its estimated part, and the error.  Without
 * @is_counted, no hook counts these calls: all fields are null. */
void json_calls(struct json *json, const struct count *count, bool is_counted);
/* Writes upper bounds of times that cannot be distinguished from 0, see
 * model/bounds.h. */
void json_bounds(struct json *json, double self, double total);
/* Writes the recording's budget; nothing if there is none. */
void json_budget(struct json *json, const struct model *model);

/* Writes the last columns of a row; with @count NULL, their titles. */
void csv_calls(FILE *out, const struct count *count);

/* Warns of functions whose calls are estimates; prints nothing if there are
 * none. */
void estimates_tell(const struct model *model);

#endif
