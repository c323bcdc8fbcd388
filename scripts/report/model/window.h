/* The part of a trace that the options ask for. */
#ifndef REPORT_MODEL_WINDOW_H
#define REPORT_MODEL_WINDOW_H

#include "trace/trace.h"

struct model;
struct options;

/*
 * window_begin - the range of @trace that the options ask for: --from, --to,
 * --min-duration, --thread, --depth, --function and, for a timeline, --hide,
 * --only, --focus and --merge-recursion
 *
 * @model needs its functions (model_find_functions()).  @is_timeline: false if
 * the model of these calls is folded later (model/shown.h).  Dies if there is no
 * such thread or function.
 */
struct trace_range window_begin(struct trace *trace, struct model *model,
				const struct options *options,
				bool is_timeline);
void window_end(struct trace_range *range);

/* Dies if the options are no window. */
void window_check(const struct options *options);

#endif
