/* Prints what --hide, --only, --focus and --merge-recursion leave out. */
#include <math.h>
#include <stdio.h>

#include "base/numbers.h"
#include "base/text.h"
#include "model/model.h"
#include "model/options.h"
#include "model/shown.h"
#include "text/hidden.h"
#include "text/layout.h"

static void print_focus(const struct layout *layout)
{
	const struct model *model = layout->model;
	char part[SHORT_TEXT], all[SHORT_TEXT];

	fputs("  focus: call paths through ", layout->out);
	put_text(layout->out, model->selection->focus);
	if (model->has_times)
		fprintf(layout->out, ", %s of %s", human_ns(part, model->time),
			human_ns(all, model->hidden->time));
	fputc('\n', layout->out);
}

static void print_functions(const struct layout *layout)
{
	const struct model *model = layout->model;
	const struct hidden *hidden = model->hidden;
	char functions[SHORT_TEXT], calls[SHORT_TEXT], time[SHORT_TEXT];

	fprintf(layout->out, "  not shown: %s functions",
		human_count(functions, hidden->functions));
	if (!model->is_sampled)
		fprintf(layout->out, ", %s calls",
			human_count(calls, hidden->calls));
	if (model->selection->hide.count || model->selection->only.count)
		fputs("; the time of hidden functions is their callers'",
		      layout->out);
	if (model->has_times && hidden->outside > 0)
		fprintf(layout->out, ", %s of it has no caller that is shown",
			human_ns(time, hidden->outside));
	fputc('\n', layout->out);
}

void hidden_print(const struct layout *layout)
{
	const struct model *model = layout->model;

	if (!model->hidden)
		return;
	if (model->hidden->has_focus)
		print_focus(layout);
	if (model->hidden->functions)
		print_functions(layout);
	if (model->selection->merges_recursion)
		fputs("  calls of a function by itself are shown as one with "
		      "the call that they are in\n",
		      layout->out);
}
