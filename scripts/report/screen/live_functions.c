/* The functions of a process that runs, by what they did in the last interval. */
#include <curses.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "base/text.h"
#include "model/options.h"
#include "screen/filter.h"
#include "screen/numbers.h"
#include "screen/snapshot.h"
#include "screen/terminal.h"
#include "screen/top.h"
#include "screen/view.h"

#define CALLS_WIDTH 13
/* The sum of calls is shown where there is room for names beside it. */
#define COLUMNS_WIDE 110

enum live_sort { BY_SELF, BY_TOTAL, BY_CALLS, BY_BYTES, BY_WAITED };

struct live_row {
	const struct snapshot_row *row;
	double rates[BY_WAITED + 1];
};

struct live_functions {
	struct view view;
	struct top *top;
	struct live_row *rows;
	uint64_t generation; /* of the snapshot that the rows are of */
	enum live_sort sort;
	bool is_sort_chosen;
	double all; /* self time of all functions, or their calls */
	struct filter filter;
	uint64_t chosen; /* the row with the cursor */
};

static enum live_sort sort_by;

static int compare_rows(const void *left, const void *right)
{
	const struct live_row *a = left, *b = right;

	if (a->rates[sort_by] != b->rates[sort_by])
		return a->rates[sort_by] > b->rates[sort_by] ? -1 : 1;
	if (a->row->calls != b->row->calls)
		return a->row->calls > b->row->calls ? -1 : 1;
	return (a->row->key > b->row->key) - (a->row->key < b->row->key);
}

static struct live_row row_of(const struct top *top,
			      const struct snapshot_row *row)
{
	static const struct snapshot_row none;
	const struct snapshot_row *before = top->before.memory ?
						    snapshot_find(&top->before,
								  row->key) :
						    NULL;

	if (!before)
		before = &none;
	return (struct live_row){
		.row = row,
		.rates = {
			[BY_SELF] = top_rate(top, row->self, before->self),
			[BY_TOTAL] = top_rate(top, row->total, before->total),
			[BY_CALLS] = top_rate(top, (double)row->calls,
					      (double)before->calls),
			[BY_BYTES] = top_rate(top, (double)row->bytes,
					      (double)before->bytes),
			[BY_WAITED] = top_rate(top, row->waited,
					       before->waited),
		},
	};
}

static bool is_shown(const struct live_functions *functions,
		     const struct snapshot_row *row)
{
	const char *text = functions->top->now.text;

	return filter_has(&functions->filter, text + row->name) ||
	       filter_has(&functions->filter, text + row->object);
}

static enum live_sort usual_sort(const struct snapshot_head *head)
{
	return head->has_times || head->is_sampled ? BY_SELF :
	       head->calls			   ? BY_CALLS :
	       head->has_memory			   ? BY_BYTES :
	       head->has_waits			   ? BY_WAITED :
						     BY_CALLS;
}

/* Keeps the cursor on its function, wherever that is now; on the first row it stays
 * there. */
static void follow(struct live_functions *functions)
{
	struct list *list = &functions->view.list;
	uint32_t i;

	for (i = 0; i < list->count && list->chosen > 0; i++)
		if (functions->rows[i].row->key == functions->chosen)
			list->chosen = i;
}

static void arrange(struct live_functions *functions)
{
	const struct top *top = functions->top;
	const struct snapshot *now = &top->now;
	uint32_t i, count = 0;

	functions->generation = top->generation;
	free(functions->rows);
	functions->rows = allocate(now->head.row_count,
				   sizeof(*functions->rows));
	functions->all = 0;
	if (!functions->is_sort_chosen)
		functions->sort = usual_sort(&now->head);
	for (i = 0; i < now->head.row_count; i++) {
		struct live_row row = row_of(top, &now->rows[i]);

		functions->all +=
			row.rates[now->head.has_times ? BY_SELF : BY_CALLS];
		if (is_shown(functions, row.row))
			functions->rows[count++] = row;
	}
	sort_by = functions->sort;
	if (count)
		qsort(functions->rows, count, sizeof(*functions->rows),
		      compare_rows);
	functions->view.list.count = count;
	follow(functions);
}

static void draw_title(struct view *view, struct row *row)
{
	struct live_functions *functions = (struct live_functions *)view;

	if (functions->generation != functions->top->generation)
		arrange(functions);
	top_draw_title(functions->top, "functions", row);
	if (functions->filter.text[0]) {
		row_text(row, "; with ");
		row_text(row, functions->filter.text);
	}
}

static void draw_columns(struct view *view, struct row *row)
{
	const struct top *top = ((struct live_functions *)view)->top;
	const struct snapshot_head *head = &top->now.head;
	bool sums = top->since_start;

	row_number(row, head->has_times ? "self%" : "calls%", PERCENT_WIDTH);
	if (head->has_times) {
		row_number(row, sums ? "self" : "self/s", TIME_WIDTH);
		row_number(row, sums ? "total" : "total/s", TIME_WIDTH);
	}
	row_number(row,
		   head->is_sampled ? (sums ? "samples" : "samples/s") :
		   sums		    ? "calls" :
				      "calls/s",
		   CALLS_WIDTH);
	if (head->has_memory)
		row_number(row, sums ? "bytes" : "bytes/s", TIME_WIDTH);
	if (head->has_waits)
		row_number(row, sums ? "waits" : "waits/s", TIME_WIDTH);
	if (!sums && terminal_columns() >= COLUMNS_WIDE)
		row_number(row, head->is_sampled ? "all samples" : "all calls",
			   CALLS_WIDTH + 3);
	row_text(row, "function");
}

static void draw_numbers(const struct live_functions *functions,
			 const struct live_row *at, struct row *row)
{
	const struct top *top = functions->top;
	const struct snapshot_head *head = &top->now.head;
	bool is_known = top_has_rates(top);
	bool is_counted = is_known && at->row->is_counted;
	char text[SHORT_TEXT];

	cell_percent(row, at->rates[head->has_times ? BY_SELF : BY_CALLS],
		     functions->all, is_known);
	if (head->has_times) {
		row_number(row,
			   time_text(text, at->rates[BY_SELF],
				     is_known && at->row->is_timed),
			   TIME_WIDTH);
		row_number(row,
			   time_text(text, at->rates[BY_TOTAL],
				     is_known && at->row->is_timed),
			   TIME_WIDTH);
	}
	row_number(row,
		   is_counted ? human_count(text, whole(at->rates[BY_CALLS])) :
				"-",
		   CALLS_WIDTH);
	if (head->has_memory)
		row_number(row, human_bytes(text, whole(at->rates[BY_BYTES])),
			   TIME_WIDTH);
	if (head->has_waits)
		row_number(row, time_text(text, at->rates[BY_WAITED], is_known),
			   TIME_WIDTH);
}

static void draw_row(struct view *view, uint32_t number, struct row *row)
{
	const struct live_functions *functions = (struct live_functions *)view;
	const struct live_row *at = &functions->rows[number];
	const char *names = functions->top->now.text;
	char text[SHORT_TEXT + 2];

	draw_numbers(functions, at, row);
	if (!functions->top->since_start &&
	    terminal_columns() >= COLUMNS_WIDE) {
		char count[SHORT_TEXT];

		snprintf(text, sizeof(text), "%s%s",
			 at->row->is_estimate ? "~" : "",
			 human_count(count, at->row->calls));
		row_number(row, at->row->is_counted ? text : "-",
			   CALLS_WIDTH + 3);
	}
	row_text(row, (int)text_columns(names + at->row->name) > row_left(row) ?
			      names + at->row->short_name :
			      names + at->row->name);
	row_text_as(row, " [", LOOK_FAINT);
	row_text_as(row, names + at->row->object, LOOK_FAINT);
	row_text_as(row, "]", LOOK_FAINT);
}

static void choose_sort(struct screen *screen, struct live_functions *functions,
			enum live_sort sort)
{
	const struct snapshot_head *head = &functions->top->now.head;

	if (sort == BY_BYTES && !head->has_memory)
		screen_say(screen, "no allocations are recorded (-p memory)");
	else if (sort == BY_WAITED && !head->has_waits)
		screen_say(screen, "no waits are recorded (-p locks)");
	else if (sort <= BY_TOTAL && !head->has_times)
		screen_say(screen, "calls are counted, not timed");
	else {
		functions->sort = sort;
		functions->is_sort_chosen = true;
		functions->view.list.chosen = 0;
		arrange(functions);
	}
}

static void open_row(struct screen *screen, struct live_functions *functions)
{
	const struct snapshot_row *row;
	struct top *top = functions->top;

	if (functions->view.list.count == 0)
		return;
	row = functions->rows[functions->view.list.chosen].row;
	screen_push(screen, top->views->function(top, row->key,
						 top->now.text + row->name));
}

static bool do_own_key(struct screen *screen, struct live_functions *functions,
		       int key)
{
	switch (key) {
	case 's': choose_sort(screen, functions, BY_SELF); break;
	case 't': choose_sort(screen, functions, BY_TOTAL); break;
	case 'c': choose_sort(screen, functions, BY_CALLS); break;
	case 'b': choose_sort(screen, functions, BY_BYTES); break;
	case 'w': choose_sort(screen, functions, BY_WAITED); break;
	case '/':
		if (filter_ask(&functions->filter, screen))
			arrange(functions);
		break;
	default: return false;
	}
	return true;
}

static bool do_key(struct screen *screen, struct view *view, int key)
{
	struct live_functions *functions = (struct live_functions *)view;
	bool is_done;

	if (IS_ENTER(key) || key == KEY_RIGHT) {
		open_row(screen, functions);
		return true;
	}
	is_done = do_own_key(screen, functions, key);
	return is_done || top_key(screen, functions->top, key);
}

static void moved(struct view *view)
{
	struct live_functions *functions = (struct live_functions *)view;

	if (view->list.chosen < view->list.count)
		functions->chosen = functions->rows[view->list.chosen].row->key;
}

static void end(struct view *view)
{
	struct live_functions *functions = (struct live_functions *)view;

	filter_end(&functions->filter);
	free(functions->rows);
	free(functions);
}

static const struct view_kind kind = {
	.keys = " ? help  Enter open  / filter  s t c b w sort  " TOP_KEYS,
	.help = "Enter     the function: its callers and callees\n"
		"/         only functions whose name, or object, matches a regular expression\n"
		"s t c b w sort by self time, total, calls, bytes, waits\n" TOP_HELP,
	.title = draw_title,
	.columns = draw_columns,
	.draw = draw_row,
	.key = do_key,
	.moved = moved,
	.end = end,
};

struct view *live_functions_view(struct top *top)
{
	struct live_functions *functions = allocate(1, sizeof(*functions));

	functions->view.kind = &kind;
	functions->top = top;
	functions->generation = UINT64_MAX;
	top->chosen = 0;
	return &functions->view;
}
