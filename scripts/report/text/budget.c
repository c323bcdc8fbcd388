/* Prints what a budget left out, and its cost. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/numbers.h"
#include "model/bounds.h"
#include "model/budget.h"
#include "model/model.h"
#include "model/shown.h"
#include "model/totals.h"
#include "text/budget.h"
#include "text/numbers.h"

/* Less than this share of the time is not worth a line. */
#define SITES_SHOWN 0.005

/* So much more than the budget, and so long, is. */
#define FAR_OVER   1.5
#define OVER_LEAST 10e6 /* ns */

/* Counts functions with hooks, which were called. */
static uint32_t recorded_functions(const struct model *model)
{
	uint32_t i, count = 0;

	for (i = 0; i < model->function_count; i++)
		count += model->functions[i].sums.calls > 0 ||
			 model->functions[i].sums.open > 0 ||
			 shown_hides(model, i);
	return count;
}

static void print_left_out(FILE *out, const struct model *model)
{
	const struct budget *budget = model->budget;
	struct count left_out = budget->calls;
	char functions[SHORT_TEXT], all[SHORT_TEXT], calls[COUNT_TEXT];

	fprintf(out, "  budget of %.4g %%: ", budget->percent);
	if (!budget->functions) {
		fputs("no function had to be switched off, every call was "
		      "counted\n",
		      out);
		return;
	}
	left_out.calls -= left_out.exact;
	left_out.is_least = false;
	fprintf(out, "%s of %s functions %s switched off on the way",
		human_count(functions, budget->functions),
		human_count(all, recorded_functions(model)),
		budget->functions == 1 ? "was" : "were");
	if (left_out.calls || left_out.error > 0)
		fprintf(out, "; %s of %s calls were not counted",
			count_text(calls, &left_out),
			budget->functions == 1 ? "its" : "their");
	fputs(budget->calls.is_least ?
		      " (~: estimates, \u00b1 95 %; >: at least)\n" :
		      " (~: estimates, \u00b1 95 %)\n",
	      out);
}

static void print_counted(FILE *out, const struct budget *budget)
{
	char functions[SHORT_TEXT], calls[SHORT_TEXT];

	if (budget->counted_functions)
		fprintf(out,
			"  %s %s counted without paths for %s of %s calls: "
			"the sum is exact, those of call paths are "
			"estimates\n",
			human_count(functions, budget->counted_functions),
			budget->counted_functions == 1 ? "function was" :
							 "functions were",
			human_count(calls, budget->counted),
			budget->counted_functions == 1 ? "its" : "their");
}

static bool is_far_over(const struct budget *budget, double cost)
{
	double allowed = budget->percent / 100 * budget->time_ns;

	return cost > FAR_OVER * allowed && cost - allowed > OVER_LEAST;
}

static void print_cost(FILE *out, const struct budget *budget)
{
	char cost[SHORT_TEXT], all[SHORT_TEXT], hooks[SHORT_TEXT];
	char own[SHORT_TEXT], failed[SHORT_TEXT], sites[SHORT_TEXT];
	char images[SHORT_TEXT];
	double sum = budget->hooks_ns + budget->own_ns;
	double bound = bound_of(budget->hooks_ns, budget->hooks_ns,
				budget->period_ns, budget->time_ns);

	if (!(budget->time_ns > 0))
		return;
	fprintf(out, "  it cost %s of %s (%s%.1f %%): %s in hooks",
		bounded_text(cost, sum, bound > 0 ? bound + budget->own_ns : 0,
			     true),
		human_ns(all, budget->time_ns), bound > 0 ? "< " : "",
		100 * (sum + bound) / budget->time_ns,
		bounded_text(hooks, budget->hooks_ns, bound, true));
	if (budget->own_ns > 0)
		fprintf(out, ", %s for samples and switching",
			human_ns(own, budget->own_ns));
	if (budget->failed)
		fprintf(out, "; %s function%s could not be switched off",
			human_count(failed, budget->failed),
			budget->failed == 1 ? "" : "s");
	fputc('\n', out);
	if (is_far_over(budget, sum))
		fputs("  this is over the budget, which spares calls, but not "
		      "jumps, signals, forks and new threads\n",
		      out);
	if (budget->sites_ns >= SITES_SHOWN * budget->time_ns)
		fprintf(out,
			"  call sites of hooks took about %s more, which are not "
			"in the times below\n",
			human_ns(sites, budget->sites_ns));
	if (budget->images_ns >= SITES_SHOWN * budget->time_ns)
		fprintf(out,
			"  looking at libraries and changing their code took %s "
			"more, which is not in the times below\n",
			human_ns(images, budget->images_ns));
}

void budget_print(FILE *out, const struct model *model)
{
	if (!model->budget)
		return;
	print_left_out(out, model);
	print_counted(out, model->budget);
	print_cost(out, model->budget);
}
