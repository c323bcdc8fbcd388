/*
 * Translates options to the range of a trace.  A timeline has no call paths to
 * fold: the reader of the trace leaves out hidden calls one by one.  The focus
 * of a timeline are the calls of the functions that match, with all that they
 * call.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/messages.h"
#include "model/find_functions.h"
#include "model/model.h"
#include "model/options.h"
#include "model/shown.h"
#include "model/window.h"
#include "trace/selection.h"
#include "trace/trace.h"

/* The functions of both arrays; either may be NULL. */
static bool *both(bool *some, bool *others, uint32_t count)
{
	uint32_t i;

	if (!some || !others)
		return some ? some : others;
	for (i = 0; i < count; i++)
		some[i] &= others[i];
	free(others);
	return some;
}

static bool *find_within(struct model *model, const struct options *options,
			 bool *focus)
{
	bool *within = NULL;
	uint32_t i;

	/* any function may be in the trace */
	for (i = 0; i < model->function_count; i++)
		model->functions[i].sums.calls = 1;
	if (options->function)
		within = find_functions(model, options->function);
	return both(within, focus, model->function_count);
}

struct trace_range window_begin(struct trace *trace, struct model *model,
				const struct options *options, bool is_timeline)
{
	static const struct selection all;
	const struct selection *selection = is_timeline ? &options->selection :
							  &all;
	bool *hidden = shown_find_hidden(model, selection);
	bool *focus = shown_find_focus(model, selection);
	struct trace_range range = {
		.from_ns = options->from_ns,
		.to_ns = options->to_ns,
		.min_duration_ns = options->min_duration_ns,
		.depth = options->depth,
		.hidden = hidden,
		.merges_recursion = selection->merges_recursion,
	};

	shown_check_functions(model, selection, hidden, focus);
	range.within = find_within(model, options, focus);
	if (options->thread)
		range.threads = trace_find_threads(trace, options->thread);
	return range;
}

void window_end(struct trace_range *range)
{
	free((bool *)range->threads);
	free((bool *)range->within);
	free((bool *)range->hidden);
	*range = (struct trace_range){ 0 };
}

void window_check(const struct options *options)
{
	if (options->to_ns && options->to_ns < options->from_ns)
		die_usage("--to: before --from");
}
