/*
 * Prints one function in detail: its callers, its callees, and the durations of
 * its calls.  Time in recursion counts once for each pair of caller and callee,
 * as it does for a function.
 */
#include <fnmatch.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <shim/format.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/messages.h"
#include "base/names.h"
#include "base/numbers.h"
#include "base/text.h"
#include "model/bounds.h"
#include "model/estimates.h"
#include "model/find_functions.h"
#include "model/guesses.h"
#include "model/model.h"
#include "model/neighbours.h"
#include "model/options.h"
#include "model/row_order.h"
#include "model/subtree.h"
#include "model/totals.h"
#include "text/callers.h"
#include "text/numbers.h"
#include "text/layout.h"
#include "text/table.h"
#include "text/tree.h"

#define BAR 50

static void print_row(struct table *table, const struct count_column *column,
		      const struct sums *sums, struct function *function,
		      const char *guess_of)
{
	char note[GUESS_NOTE];
	char text[SHORT_TEXT], calls[2 * COUNT_TEXT];
	bool known = !is_untimed(sums);
	double all = table->layout->model->time;
	struct count count = count_of_sums(sums);
	bool is_counted = sums->calls || sums->open || !sums->is_sampled;

	table_cell(table, count_column_text(calls, column,
					    is_counted ? &count : NULL));
	table_cell(table, bounded_text(text, sums->total,
				       total_bound(sums, all), known));
	table_cell(table,
		   bounded_text(text, shown_self(sums->self, sums->total),
				self_bound(sums, all), known));
	if (function)
		table_noted_name(table, function,
				 guess_note(note, guess_of, sums->guessed,
					    sums->calls, false));
	else
		table_text(table, "(nobody: first in its thread)");
}

/* For each wanted function, its number of groups; 0 if an earlier function was
 * counted for all of its groups. */
static uint32_t *count_groups(const struct model *model, const bool *wanted)
{
	uint32_t *counts = allocate(model->function_count, sizeof(*counts));
	uint32_t *first = allocate(model->function_count, sizeof(*first));
	struct names names = { 0 };
	uint32_t i;

	for (i = 0; i < model->function_count; i++) {
		const struct function *function = &model->functions[i];
		uint32_t before = names.count, number;

		if (wanted[i] && !function->group)
			counts[i] = 1;
		if (!wanted[i] || !function->group)
			continue;
		number = names_add(
			&names,
			keep_text(function->name,
				  plain_length(function, function->name)));
		if (number == before)
			first[number] = i;
		counts[first[number]]++;
	}
	names_free(&names);
	free(first);
	return counts;
}

static void print_heading(const struct layout *layout, const char *what,
			  const bool *wanted)
{
	const struct model *model = layout->model;
	uint32_t *groups = count_groups(model, wanted);
	struct function *function;
	uint32_t i;

	for (i = 0; i < model->function_count; i++) {
		function = &model->functions[i];
		if (groups[i] == 0)
			continue;
		fprintf(layout->out, "\n%s ", what);
		if (groups[i] == 1) {
			put_function_name(layout, function, SIZE_MAX);
		} else {
			put_text(layout->out,
				 keep_text(function->name,
					   plain_length(function,
							function->name)));
			fprintf(layout->out, " in its %u groups", groups[i]);
		}
		put_place(layout, function);
	}
	fputc('\n', layout->out);
	free(groups);
}

static void print_group(const struct layout *layout, const char *name,
			bool callers)
{
	struct model *model = layout->model;
	struct options options = *layout->options;
	uint32_t rows = model->function_count + 1, count, shown, i, *order;
	bool *wanted = find_functions(model, name);
	struct sums *sums = neighbours_of(model, wanted, callers);
	struct count_column calls = { .width = 15 };
	struct column columns[] = {
		{ NULL, 0 }, { "total", 9 }, { "self", 9 }, { "function", 0 }
	};
	struct table table = table_begin(layout, columns);

	for (i = 0; i < rows; i++) {
		struct count count_of = count_of_sums(&sums[i]);

		count_column_fit(&calls, &count_of);
	}
	columns[0] = count_column(&calls, counted_name(model));
	print_heading(layout, callers ? "callers of" : "called by", wanted);
	table_titles(&table, NULL);
	if (!options.sort_given)
		options.sort = SORT_TOTAL;
	order = row_order_functions(model, sums, &options, &count);
	shown = layout_rows(layout, count, count);
	for (i = 0; i < shown; i++)
		print_row(&table, &calls, &sums[order[i]],
			  &model->functions[order[i]],
			  callers ? "" : "caller ");
	layout_left_out(layout, shown, count);
	if (sums[rows - 1].calls || sums[rows - 1].open)
		print_row(&table, &calls, &sums[rows - 1], NULL, "");
	free(order);
	free(wanted);
	free(sums);
}

static void print_bar(struct table *table, uint64_t count, double from,
		      uint64_t largest)
{
	static const char bar[BAR + 1] =
		"##################################################";
	char begin[SHORT_TEXT], text[SHORT_TEXT];
	int length = (int)ceil((double)count * BAR / (double)largest);

	table_cell(table, human_ns(begin, from));
	table_cell(table, human_count(text, count));
	table_rest(table, 0);
	fputs(bar + BAR - length, table->layout->out);
	table_end_row(table);
}

/* With a coarse clock, only some calls are timed one by one. */
static void print_share(const struct layout *layout,
			const uint64_t sums[SHIM_BUCKETS], const bool *wanted)
{
	const struct model *model = layout->model;
	char some_text[SHORT_TEXT], all_text[SHORT_TEXT];
	uint64_t some = 0, all = 0;
	uint32_t i;

	for (i = 0; i < SHIM_BUCKETS; i++)
		some += sums[i];
	for (i = 0; i < model->function_count; i++)
		if (wanted[i])
			all += model->functions[i].sums.calls -
			       model->functions[i].sums.open;
	if (some < all)
		fprintf(layout->out,
			"%s of %s finished calls (%.2g %%): the others were "
			"not timed one by one (profile calltree:exact)\n",
			human_count(some_text, some),
			human_count(all_text, all),
			100 * (double)some / (double)all);
}

static void print_histogram(const struct layout *layout, const char *name)
{
	static const struct column columns[] = { { "from", 9 },
						 { "calls", 15 },
						 { NULL, 0 } };
	struct table table = table_begin(layout, columns);
	struct model *model = layout->model;
	bool *wanted = find_functions(model, name);
	uint64_t sums[SHIM_BUCKETS] = { 0 }, largest = 0;
	int bucket, first = SHIM_BUCKETS, last = -1;
	uint32_t i;

	for (i = 0; i < model->function_count; i++)
		for (bucket = 0; wanted[i] && model->functions[i].histogram &&
				 bucket < SHIM_BUCKETS;
		     bucket++)
			sums[bucket] += model->functions[i].histogram[bucket];
	for (bucket = 0; bucket < SHIM_BUCKETS; bucket++) {
		if (!sums[bucket])
			continue;
		if (first > bucket)
			first = bucket;
		last = bucket;
		if (sums[bucket] > largest)
			largest = sums[bucket];
	}
	if (last >= 0) {
		print_heading(layout, "how long calls took:", wanted);
		print_share(layout, sums, wanted);
		table_titles(&table, NULL);
	}
	for (bucket = first; bucket <= last; bucket++)
		print_bar(&table, sums[bucket],
			  bucket ? ldexp(model->bucket_ns, bucket) : 0,
			  largest);
	free(wanted);
}

static void check_histogram(const struct model *model, const char *name)
{
	bool *wanted = find_functions(model, name), found = false;
	uint32_t i;

	for (i = 0; i < model->function_count; i++)
		found |= wanted[i] && model->functions[i].histogram;
	if (!found)
		die("%s: no histogram: its calls were not timed one by one "
		    "(profile calltree:exact)",
		    name);
	free(wanted);
}

void callers_check(const struct layout *layout)
{
	const struct options *options = layout->options;

	if (options->callers)
		free(find_functions(layout->model, options->callers));
	if (options->callees)
		free(find_functions(layout->model, options->callees));
	if (options->histogram)
		check_histogram(layout->model, options->histogram);
}

static void print_tree(const struct layout *layout, const char *name,
		       bool callers)
{
	bool *wanted = find_functions(layout->model, name);
	struct model tree = subtree_of(layout->model, wanted, callers,
				       layout->options->depth);
	struct layout of_tree = *layout;

	of_tree.model = &tree;
	print_heading(layout, callers ? "paths to" : "paths from", wanted);
	tree_print(&of_tree);
	subtree_free(&tree);
	free(wanted);
}

static void print_trees(const struct layout *layout)
{
	const struct options *options = layout->options;

	if (options->callers)
		print_tree(layout, options->callers, true);
	if (options->callees)
		print_tree(layout, options->callees, false);
	if (options->histogram)
		print_histogram(layout, options->histogram);
}

void callers_print(const struct layout *layout)
{
	const struct options *options = layout->options;

	if (options->tree) {
		print_trees(layout);
		return;
	}

	if (options->callers)
		print_group(layout, options->callers, true);
	if (options->callees)
		print_group(layout, options->callees, false);
	if (options->callers)
		print_histogram(layout, options->callers);
	if (options->callees)
		print_histogram(layout, options->callees);
	if (options->histogram)
		print_histogram(layout, options->histogram);
}
