/* The same numbers as the report's, by the same functions. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/numbers.h"
#include "model/bounds.h"
#include "model/estimates.h"
#include "model/model.h"
#include "model/row_order.h"
#include "model/totals.h"
#include "screen/numbers.h"
#include "screen/terminal.h"
#include "text/numbers.h"

int calls_width(const struct model *model)
{
	return model->budget ? 19 : 13;
}

void cell_percent(struct row *row, double part, double all, bool is_known)
{
	char text[SHORT_TEXT] = "-";

	if (is_known && all > 0)
		snprintf(text, sizeof(text), "%.2f", 100 * fmax(part, 0) / all);
	row_number(row, text, PERCENT_WIDTH);
}

void cell_self(struct row *row, const struct sums *sums, double above)
{
	char text[SHORT_TEXT];

	row_number(row,
		   bounded_text(text, shown_self(sums->self, sums->total),
				self_bound(sums, above), !is_untimed(sums)),
		   TIME_WIDTH);
}

void cell_total(struct row *row, const struct sums *sums, double above)
{
	char text[SHORT_TEXT];

	row_number(row,
		   bounded_text(text, sums->total, total_bound(sums, above),
				!is_untimed(sums)),
		   TIME_WIDTH);
}

void cell_mean(struct row *row, const struct model *model,
	       const struct sums *sums)
{
	char text[SHORT_TEXT];

	row_number(row,
		   model->is_sampled ?
			   "" :
			   time_text(text, mean_ns(sums),
				     !is_untimed(sums) && mean_is_known(sums)),
		   TIME_WIDTH);
}

static void cell_count(struct row *row, const struct model *model,
		       const struct count *count)
{
	char text[COUNT_TEXT];

	row_number(row, count ? count_text(text, count) : "-",
		   calls_width(model));
}

void cell_calls(struct row *row, const struct model *model,
		const struct sums *sums)
{
	struct count count = count_of_sums(sums);

	cell_count(row, model, sums_are_counted(sums) ? &count : NULL);
}

void cell_path_calls(struct row *row, const struct model *model,
		     const struct path *path)
{
	struct count count = count_of_path(path);

	cell_count(row, model, path_is_counted(path) ? &count : NULL);
}
