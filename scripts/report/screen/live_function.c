/* One function of a process that runs: who calls it now, and whom it calls. */
#include <curses.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "base/text.h"
#include "screen/numbers.h"
#include "screen/snapshot.h"
#include "screen/terminal.h"
#include "screen/top.h"
#include "screen/view.h"

#define CALLS_WIDTH 13

struct live_function {
	struct view view;
	struct top *top;
	uint64_t key, generation;
	uint64_t outer; /* the function of the view below; 0: none */
	char *name;
	const struct snapshot_neighbour **rows; /* NULL: a title */
	uint32_t titles[2];			/* the rows of the titles */
};

static int compare_rows(const void *left, const void *right)
{
	const struct snapshot_neighbour *a = *(
		const struct snapshot_neighbour *const *)left;
	const struct snapshot_neighbour *b = *(
		const struct snapshot_neighbour *const *)right;

	if (a->total != b->total)
		return a->total > b->total ? -1 : 1;
	if (a->calls != b->calls)
		return a->calls > b->calls ? -1 : 1;
	return (a->key > b->key) - (a->key < b->key);
}

static void add_rows(struct live_function *page, bool callers)
{
	const struct snapshot *now = &page->top->now;
	uint32_t i, *count = &page->view.list.count, first;

	page->titles[!callers] = *count;
	page->rows[(*count)++] = NULL;
	first = *count;
	for (i = 0; i < now->head.neighbour_count; i++)
		if (now->neighbours[i].is_caller == callers)
			page->rows[(*count)++] = &now->neighbours[i];
	if (*count > first)
		qsort(page->rows + first, *count - first, sizeof(*page->rows),
		      compare_rows);
}

static void arrange(struct live_function *page)
{
	page->generation = page->top->generation;
	free(page->rows);
	page->rows = allocate(page->top->now.head.neighbour_count + 2,
			      sizeof(*page->rows));
	page->view.list.count = 0;
	add_rows(page, true);
	add_rows(page, false);
}

static void draw_title(struct view *view, struct row *row)
{
	struct live_function *page = (struct live_function *)view;
	const struct top *top = page->top;
	const struct snapshot_row *now, *before;
	char text[120], self[SHORT_TEXT], calls[SHORT_TEXT];

	page->top->chosen = page->key;
	if (page->generation != top->generation)
		arrange(page);
	row_text_as(row, page->name, LOOK_STRONG);
	now = snapshot_find(&top->now, page->key);
	before = snapshot_find(&top->before, page->key);
	if (!now || !top_has_rates(top))
		return;
	snprintf(text, sizeof(text), ": self %s, %s calls%s",
		 time_text(self,
			   top_rate(top, now->self, before ? before->self : 0),
			   now->is_timed),
		 human_count(
			 calls,
			 whole(top_rate(top, (double)now->calls,
					before ? (double)before->calls : 0))),
		 top->since_start ? "" : ", each second");
	row_text(row, text);
}

static void draw_columns(struct view *view, struct row *row)
{
	bool sums = ((struct live_function *)view)->top->since_start;

	row_number(row, sums ? "calls" : "calls/s", CALLS_WIDTH);
	row_number(row, sums ? "total" : "total/s", TIME_WIDTH);
	row_text(row, "function");
}

static const struct snapshot_neighbour *
find_before(const struct snapshot *before,
	    const struct snapshot_neighbour *wanted)
{
	uint32_t i;

	for (i = 0; i < before->head.neighbour_count; i++)
		if (before->neighbours[i].key == wanted->key &&
		    before->neighbours[i].is_caller == wanted->is_caller)
			return &before->neighbours[i];
	return NULL;
}

static void draw_row(struct view *view, uint32_t number, struct row *row)
{
	const struct live_function *page = (struct live_function *)view;
	const struct snapshot_neighbour *at = page->rows[number], *before;
	const struct top *top = page->top;
	bool is_known;
	char text[SHORT_TEXT];

	if (!at) {
		row_text_as(row,
			    number == page->titles[0] ? "callers" : "callees",
			    LOOK_STRONG);
		return;
	}
	before = find_before(&top->before, at);
	/* (The snapshot before may be one without this function's neighbours.) */
	is_known = top->since_start || top->before.head.neighbour_count;
	row_number(row,
		   is_known ?
			   human_count(text,
				       whole(top_rate(
					       top, (double)at->calls,
					       before ? (double)before->calls :
							0))) :
			   "-",
		   CALLS_WIDTH);
	row_number(
		row,
		time_text(text,
			  top_rate(top, at->total, before ? before->total : 0),
			  is_known && top->now.head.has_times),
		TIME_WIDTH);
	row_text(row, top->now.text + at->name);
}

static bool do_key(struct screen *screen, struct view *view, int key)
{
	struct live_function *page = (struct live_function *)view;
	const struct snapshot_neighbour *at =
		view->list.chosen < view->list.count ?
			page->rows[view->list.chosen] :
			NULL;

	if (IS_ENTER(key) || key == KEY_RIGHT) {
		if (at && at->key)
			screen_push(screen,
				    page->top->views->function(
					    page->top, at->key,
					    page->top->now.text + at->name));
		return true;
	}
	if (key == KEY_LEFT) {
		screen_pop(screen);
		return true;
	}
	return top_key(screen, page->top, key);
}

static void end(struct view *view)
{
	struct live_function *page = (struct live_function *)view;

	page->top->chosen = page->outer;
	free(page->name);
	free(page->rows);
	free(page);
}

static const struct view_kind kind = {
	.keys = " ? help  Enter open  Esc back  " TOP_KEYS,
	.help = "Enter     the caller or callee\n" TOP_HELP,
	.title = draw_title,
	.columns = draw_columns,
	.draw = draw_row,
	.key = do_key,
	.end = end,
};

struct view *live_function_view(struct top *top, uint64_t key, const char *name)
{
	struct live_function *page = allocate(1, sizeof(*page));
	size_t size = strlen(name) + 1;

	page->view.kind = &kind;
	page->top = top;
	page->key = key;
	page->outer = top->chosen;
	page->generation = UINT64_MAX;
	page->name = allocate(size, 1);
	memcpy(page->name, name, size);
	top->chosen = key;
	return &page->view;
}
