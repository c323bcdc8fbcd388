/*
 * Prints report --ranks: the table of functions, or the tree of paths, with the
 * differences between ranks.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "base/text.h"
#include "model/bounds.h"
#include "model/model.h"
#include "model/rank_groups.h"
#include "model/ranks.h"
#include "text/layout.h"
#include "text/numbers.h"
#include "text/ranks.h"
#include "text/table.h"

#define ROWS	     30
#define RANK_COLUMNS 8

/* --- text --- */

static const char *figure_text(const struct ranks *ranks, char text[SHORT_TEXT],
			       const struct rank_row *row, double figure)
{
	return ranks->is_timed ?
		       bounded_text(text, figure,
				    bound_of(figure, 0, row->tick, 0), true) :
		       human_count(text, whole(figure));
}

/* "-": no hook counts them. */
static const char *calls_text(char text[SHORT_TEXT], const struct rank_row *row)
{
	char count[SHORT_TEXT];

	if (row->calls == 0 && row->most > 0)
		return "-";
	snprintf(text, SHORT_TEXT, "%s%.24s",
		 row->has_unknown  ? "> " :
		 row->has_estimate ? "~" :
				     "",
		 human_count(count, row->calls));
	return text;
}

/* qsort() passes no context. */
static const struct rank_row *rows_to_sort;

/* Sorts by the time by which the slowest rank exceeds an even distribution. */
static int compare_excess(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	double x = rows_to_sort[a].most - rows_to_sort[a].mean;
	double y = rows_to_sort[b].most - rows_to_sort[b].mean;

	if (x != y)
		return x > y ? -1 : 1;
	if (rows_to_sort[a].calls != rows_to_sort[b].calls)
		return rows_to_sort[a].calls > rows_to_sort[b].calls ? -1 : 1;
	return a < b ? -1 : a > b;
}

static struct table begin_table(const struct layout *layout,
				const struct ranks *ranks, const char *what,
				struct column columns[RANK_COLUMNS])
{
	const struct column all[RANK_COLUMNS] = {
		{ ranks->is_timed ? "mean" : "mean calls", 10 },
		{ "min", 10 },
		{ "of", -12 },
		{ "max", 10 },
		{ "of", -12 },
		{ "imbalance", 9 },
		{ "calls", 15 },
		{ what, 0 },
	};
	struct table table;

	memcpy(columns, all, sizeof(all));
	table = table_begin(layout, columns);
	fputc('\n', layout->out);
	table_titles(&table, NULL);
	return table;
}

static void print_row(struct table *table, const struct ranks *ranks,
		      const struct rank_row *row, uint32_t function,
		      uint32_t depth)
{
	char text[SHORT_TEXT];

	table_cell(table, figure_text(ranks, text, row, row->mean));
	table_cell(table, figure_text(ranks, text, row, row->least));
	table_cell_cut(table, ranks->names[row->least_rank]);
	table_cell(table, figure_text(ranks, text, row, row->most));
	table_cell_cut(table, ranks->names[row->most_rank]);
	snprintf(text, sizeof(text), "%.1f %%", ranks_imbalance(row));
	table_cell(table, text);
	table_cell(table, calls_text(text, row));
	table_rest(table, 2 * (size_t)depth);
	table_name(table, &ranks->model->functions[function]);
}

static void print_functions(const struct layout *layout,
			    const struct ranks *ranks)
{
	struct column columns[RANK_COLUMNS];
	struct table table;
	const struct model *model = ranks->model;
	uint32_t *order = allocate(model->function_count, sizeof(*order));
	uint32_t i, rows, count = 0;

	for (i = 0; i < model->function_count; i++)
		if (ranks->functions[i].calls || ranks->functions[i].most > 0)
			order[count++] = i;
	rows_to_sort = ranks->functions;
	qsort(order, count, sizeof(*order), compare_excess);
	table = begin_table(layout, ranks, "function", columns);
	rows = layout_rows(layout, ROWS, count);
	for (i = 0; i < rows; i++)
		print_row(&table, ranks, &ranks->functions[order[i]], order[i],
			  0);
	layout_left_out(layout, rows, count);
	free(order);
}

static int compare_most(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	if (rows_to_sort[a].most != rows_to_sort[b].most)
		return rows_to_sort[a].most > rows_to_sort[b].most ? -1 : 1;
	return a < b ? -1 : a > b;
}

/* Links the children of every path, the longest first: sorted once, linked
 * backwards. */
static void link_children(const struct ranks *ranks, uint32_t *child,
			  uint32_t *sibling)
{
	uint32_t *order = allocate(ranks->path_count, sizeof(*order));
	uint32_t i;

	for (i = 0; i < ranks->path_count; i++) {
		order[i] = i;
		child[i] = sibling[i] = NONE;
	}
	rows_to_sort = ranks->paths;
	qsort(order + 1, ranks->path_count - 1, sizeof(*order), compare_most);
	for (i = ranks->path_count - 1; i > 0; i--) {
		sibling[order[i]] = child[ranks->parent[order[i]]];
		child[ranks->parent[order[i]]] = order[i];
	}
	free(order);
}

static void print_paths(const struct layout *layout, struct ranks *ranks)
{
	struct column columns[RANK_COLUMNS];
	struct table table;
	uint32_t *child, *sibling, at = 0, depth = 0, hidden = 0;
	double smallest;

	ranks_add_paths(ranks);
	child = allocate(ranks->path_count, sizeof(*child));
	sibling = allocate(ranks->path_count, sizeof(*sibling));
	link_children(ranks, child, sibling);
	smallest = ranks->all.most * layout->options->min_percent / 100;
	table = begin_table(layout, ranks,
			    ranks->is_timed ? "call path (total)" : "call path",
			    columns);
	for (;;) {
		bool is_shown = at == 0 || (ranks->paths[at].most >= smallest &&
					    depth <= layout->options->depth);

		if (at != 0 && is_shown)
			print_row(&table, ranks, &ranks->paths[at],
				  ranks->function[at], depth - 1);
		hidden += !is_shown;
		if (is_shown && child[at] != NONE) {
			at = child[at];
			depth++;
			continue;
		}
		while (at != 0 && sibling[at] == NONE) {
			at = ranks->parent[at];
			depth--;
		}
		if (at == 0)
			break;
		at = sibling[at];
	}
	if (hidden)
		fprintf(layout->out,
			"... and %u smaller or deeper ones "
			"(--min-percent, --depth)\n",
			hidden);
	free(child);
	free(sibling);
}

/* --- outliers and groups --- */

#define OUTLIERS_SHOWN 5
#define NAMES_SHOWN    4

/* The function in which @rank differs most from the median of the ranks. */
static uint32_t find_cause(const struct ranks *ranks, const double *medians,
			   uint32_t rank)
{
	uint32_t f, i, cause = NONE;
	double value, most = 0;

	for (f = 0; f < ranks->model->function_count; f++) {
		value = 0;
		for (i = ranks->functions[f].first; i != NONE;
		     i = ranks->figures[i].next)
			if (ranks->figures[i].rank == rank)
				value += ranks->figures[i].value;
		value = value > medians[f] ? value - medians[f] :
					     medians[f] - value;
		if (value > most) {
			most = value;
			cause = f;
		}
	}
	return cause;
}

static double *find_medians(const struct ranks *ranks)
{
	uint32_t count = ranks->model->function_count, f;
	double *medians = allocate(count, sizeof(*medians));
	struct rank_center center;

	for (f = 0; f < count; f++) {
		rank_center_find(&center, ranks, &ranks->functions[f]);
		medians[f] = center.median;
		free(center.outliers);
	}
	return medians;
}

/* What each rank has in all; free() it. */
static double *list_totals(const struct ranks *ranks)
{
	double *totals = allocate(ranks->count, sizeof(*totals));
	uint32_t i;

	for (i = ranks->all.first; i != NONE; i = ranks->figures[i].next)
		totals[ranks->figures[i].rank] += ranks->figures[i].value;
	return totals;
}

static void print_outliers(const struct layout *layout,
			   const struct ranks *ranks, const double *totals)
{
	const struct rank_row *all = &ranks->all;
	struct rank_center center;
	char text[SHORT_TEXT];
	double *medians;
	uint32_t i, cause;

	rank_center_find(&center, ranks, all);
	medians = center.count ? find_medians(ranks) : NULL;
	for (i = 0; i < center.count && i < OUTLIERS_SHOWN; i++) {
		uint32_t rank = center.outliers[i];

		fputs("  outlier: ", layout->out);
		put_text(layout->out, ranks->names[rank]);
		fprintf(layout->out, " has %s",
			figure_text(ranks, text, all, totals[rank]));
		fprintf(layout->out, ", the median is %s",
			figure_text(ranks, text, all, center.median));
		cause = find_cause(ranks, medians, rank);
		if (cause != NONE) {
			fputs("; most of the difference is in ", layout->out);
			put_function_name(layout,
					  &ranks->model->functions[cause],
					  SIZE_MAX);
		}
		fputc('\n', layout->out);
	}
	if (center.count > OUTLIERS_SHOWN)
		fprintf(layout->out, "  and %u more outliers\n",
			center.count - OUTLIERS_SHOWN);
	free(center.outliers);
	free(medians);
}

static void print_group(const struct layout *layout, const struct ranks *ranks,
			const struct rank_groups *groups, uint32_t group,
			const double *totals)
{
	uint32_t rank, count = 0;
	char text[SHORT_TEXT];
	double sum = 0;

	fputs("  alike: ", layout->out);
	for (rank = 0; rank < ranks->count; rank++) {
		if (groups->of_rank[rank] != group)
			continue;
		if (count++ < NAMES_SHOWN) {
			fputs(count > 1 ? ", " : "", layout->out);
			put_text(layout->out, ranks->names[rank]);
		}
		sum += totals[rank];
	}
	if (count > NAMES_SHOWN)
		fprintf(layout->out, " and %u more", count - NAMES_SHOWN);
	fprintf(layout->out, ": %s%s each\n",
		figure_text(ranks, text, &ranks->all, sum / count),
		ranks->is_timed ? "" : " calls");
}

/* Groups say something only if they are fewer than the ranks. */
static void print_groups(const struct layout *layout, const struct ranks *ranks,
			 const double *totals)
{
	struct rank_groups groups;
	uint32_t i;

	rank_groups_find(&groups, ranks);
	if (groups.count > 1 && groups.count <= ranks->count / 2)
		for (i = 0; i < groups.count; i++)
			print_group(layout, ranks, &groups, i, totals);
	free(groups.of_rank);
}

void ranks_print(const struct layout *layout)
{
	struct ranks ranks;
	char mean[SHORT_TEXT], text[SHORT_TEXT];
	double *totals;

	ranks_collect(&ranks, layout->model);
	if (ranks.count == 0) {
		fputs("  0 ranks: no thread is in the recording\n",
		      layout->out);
		return;
	}
	fprintf(layout->out, "  %u ranks: %s%s each, ", ranks.count,
		figure_text(&ranks, mean, &ranks.all, ranks.all.mean),
		ranks.is_timed ? "" : " calls");
	fprintf(layout->out, "%s in ",
		figure_text(&ranks, text, &ranks.all, ranks.all.least));
	put_text(layout->out, ranks.names[ranks.all.least_rank]);
	fprintf(layout->out, " to %s in ",
		figure_text(&ranks, text, &ranks.all, ranks.all.most));
	put_text(layout->out, ranks.names[ranks.all.most_rank]);
	fprintf(layout->out, ": imbalance %.1f %%\n",
		ranks_imbalance(&ranks.all));
	totals = list_totals(&ranks);
	print_outliers(layout, &ranks, totals);
	print_groups(layout, &ranks, totals);
	free(totals);
	if (layout->options->tree)
		print_paths(layout, &ranks);
	else
		print_functions(layout, &ranks);
}
