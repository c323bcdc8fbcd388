/* All functions with their times: what the report's table has, to be sorted and searched. */
#include <curses.h>
#include <math.h>
#include <regex.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "base/text.h"
#include "model/functions.h"
#include "model/model.h"
#include "model/options.h"
#include "model/row_order.h"
#include "model/totals.h"
#include "screen/filter.h"
#include "screen/numbers.h"
#include "screen/terminal.h"
#include "screen/tui.h"
#include "screen/view.h"
#include "screen/views.h"

struct functions {
	struct view view;
	struct tui *tui;
	struct options options; /* how the rows are sorted */
	struct sums *sums;
	uint32_t *order;
	double all; /* ns of self time */
	struct filter filter;
	bool has_memory; /* memory is shown, not times */
};

static const char *const sorted_by[] = {
	[SORT_SELF] = "self time",
	[SORT_TOTAL] = "total time",
	[SORT_CALLS] = "calls",
	[SORT_MEAN] = "mean time",
	[SORT_MAX] = "longest call",
	[SORT_BYTES] = "bytes",
	[SORT_ALLOCATIONS] = "allocations",
};

static double memory_key(const struct model *model, enum sort sort,
			 uint32_t function)
{
	const struct memory *memory = &model->function_memory[function];

	return (double)(sort == SORT_BYTES ? memory->allocated :
					     memory->allocations);
}

static const struct functions *sorted;

static int compare_memory(const void *left, const void *right)
{
	const struct model *model = sorted->tui->model;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	double first = memory_key(model, sorted->options.sort, a);
	double second = memory_key(model, sorted->options.sort, b);

	if (first != second)
		return first > second ? -1 : 1;
	return a < b ? -1 : a > b;
}

static void sort_by_memory(struct functions *functions)
{
	uint32_t i, count = functions->tui->model->function_count;

	functions->order = allocate(count, sizeof(*functions->order));
	for (i = 0; i < count; i++)
		functions->order[i] = i;
	sorted = functions;
	if (count)
		qsort(functions->order, count, sizeof(*functions->order),
		      compare_memory);
	functions->view.list.count = count;
}

static bool is_shown(const struct functions *functions, uint32_t number)
{
	const struct model *model = functions->tui->model;
	const struct function *function = &model->functions[number];

	if (functions->has_memory &&
	    model->function_memory[number].allocations == 0)
		return false;
	return filter_has(&functions->filter, function->name) ||
	       filter_has(&functions->filter, object_name(function));
}

static void arrange(struct functions *functions)
{
	uint32_t i, count = 0;

	free(functions->order);
	if (functions->has_memory)
		sort_by_memory(functions);
	else
		functions->order = row_order_functions(
			functions->tui->model, functions->sums,
			&functions->options, &functions->view.list.count);
	for (i = 0; i < functions->view.list.count; i++)
		if (is_shown(functions, functions->order[i]))
			functions->order[count++] = functions->order[i];
	functions->view.list.count = count;
	functions->view.list.chosen = 0;
}

static void draw_title(struct view *view, struct row *row)
{
	struct functions *functions = (struct functions *)view;
	const struct model *model = functions->tui->model;
	char time[SHORT_TEXT], calls[SHORT_TEXT];
	enum sort sort = functions->has_memory ?
				 functions->options.sort :
				 effective_sort(model, &functions->options);

	row_text_as(row, "functions", LOOK_STRONG);
	row_text(row, keep_format(" by %s", sort == SORT_CALLS ?
						    counted_name(model) :
						    sorted_by[sort]));
	if (functions->filter.text[0])
		row_text(row, keep_format(", with %s", functions->filter.text));
	row_text(row, keep_format("; %s %s", human_count(calls, model->calls),
				  counted_name(model)));
	if (model->has_times)
		row_text(row,
			 keep_format(" in %s", human_ns(time, model->time)));
}

static void draw_columns(struct view *view, struct row *row)
{
	struct functions *functions = (struct functions *)view;
	const struct model *model = functions->tui->model;

	if (functions->has_memory) {
		row_number(row, "bytes", TIME_WIDTH);
		row_number(row, "blocks", TIME_WIDTH + 2);
		row_number(row, "at peak", TIME_WIDTH);
		row_number(row, "left", TIME_WIDTH);
	} else {
		row_number(row, "self%", PERCENT_WIDTH);
		row_number(row, "self", TIME_WIDTH);
		row_number(row, "total", TIME_WIDTH);
		row_number(row, counted_name(model), calls_width(model));
		row_number(row, model->is_sampled ? "" : "mean", TIME_WIDTH);
	}
	row_text(row, "function");
}

static void draw_memory(const struct memory *memory, struct row *row)
{
	char text[SHORT_TEXT];

	row_number(row, human_bytes(text, memory->allocated), TIME_WIDTH);
	row_number(row, human_count(text, memory->allocations), TIME_WIDTH + 2);
	row_number(row, human_bytes(text, memory->peak), TIME_WIDTH);
	row_number(row, human_bytes(text, memory->live), TIME_WIDTH);
}

static void draw_row(struct view *view, uint32_t number, struct row *row)
{
	struct functions *functions = (struct functions *)view;
	struct model *model = functions->tui->model;
	uint32_t function = functions->order[number];
	const struct sums *sums = &functions->sums[function];

	if (functions->has_memory) {
		draw_memory(&model->function_memory[function], row);
	} else {
		cell_percent(row, sums->self, functions->all, model->has_times);
		cell_self(row, sums, model->time);
		cell_total(row, sums, model->time);
		cell_calls(row, model, sums);
		cell_mean(row, model, sums);
	}
	draw_function(row, &model->functions[function], functions->tui);
}

static void sort_by(struct screen *screen, struct functions *functions,
		    enum sort sort)
{
	const struct model *model = functions->tui->model;

	if (sort >= SORT_BYTES && !model->has_memory) {
		screen_say(screen, "no allocations were recorded "
				   "(profrun -p memory)");
		return;
	}
	if (sort != SORT_CALLS && sort < SORT_BYTES && !model->has_times) {
		screen_say(screen, "calls were counted, not timed");
		return;
	}
	if (sort == SORT_MAX && !model->has_ranges) {
		screen_say(screen, "the longest calls are not known: record "
				   "with -p calltree:exact");
		return;
	}
	functions->has_memory = sort >= SORT_BYTES;
	functions->options.sort = sort;
	functions->options.sort_given = true;
	arrange(functions);
}

static bool do_key(struct screen *screen, struct view *view, int key)
{
	struct functions *functions = (struct functions *)view;

	if (IS_ENTER(key) || key == KEY_RIGHT) {
		if (view->list.count)
			screen_push(
				screen,
				functions->tui->views->function(
					functions->tui,
					functions->order[view->list.chosen]));
		return true;
	}
	switch (key) {
	case 's': sort_by(screen, functions, SORT_SELF); break;
	case 't': sort_by(screen, functions, SORT_TOTAL); break;
	case 'c': sort_by(screen, functions, SORT_CALLS); break;
	case 'm': sort_by(screen, functions, SORT_MEAN); break;
	case 'x': sort_by(screen, functions, SORT_MAX); break;
	case 'b': sort_by(screen, functions, SORT_BYTES); break;
	case 'a': sort_by(screen, functions, SORT_ALLOCATIONS); break;
	case '/':
		if (filter_ask(&functions->filter, screen))
			arrange(functions);
		break;
	default: return tui_key(screen, functions->tui, key);
	}
	return true;
}

static void end(struct view *view)
{
	struct functions *functions = (struct functions *)view;

	filter_end(&functions->filter);
	free(functions->sums);
	free(functions->order);
	free(functions);
}

static const struct view_kind kind = {
	.keys = " ? help  Enter open  / filter  " TUI_KEYS "  s t c m x b sort",
	.help = "Enter     the function: its numbers, callers and callees\n"
		"/         only functions whose name, or object, matches a regular expression\n"
		"s t c m x sort by self time, total, calls, mean, longest call\n"
		"b a       sort by allocated bytes, by allocations\n" TUI_HELP,
	.title = draw_title,
	.columns = draw_columns,
	.draw = draw_row,
	.key = do_key,
	.end = end,
};

struct view *functions_view(struct tui *tui)
{
	struct functions *functions = allocate(1, sizeof(*functions));
	const struct model *model = tui->model;
	uint32_t i;

	functions->view.kind = &kind;
	functions->tui = tui;
	functions->options = *tui->options;
	functions->sums = sums_of_functions(model);
	for (i = 0; i < model->function_count; i++)
		functions->all += fmax(functions->sums[i].self, 0);
	if (model->has_memory && !model->memory_has_calls)
		functions->options.sort = SORT_BYTES;
	if (functions->options.sort >= SORT_BYTES && !model->has_memory)
		functions->options.sort = SORT_SELF;
	functions->has_memory = functions->options.sort >= SORT_BYTES;
	arrange(functions);
	return &functions->view;
}
