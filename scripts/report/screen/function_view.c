/* One function: its numbers, who calls it and whom it calls. */
#include <curses.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "base/text.h"
#include "model/bounds.h"
#include "model/functions.h"
#include "model/guesses.h"
#include "model/model.h"
#include "model/neighbours.h"
#include "model/options.h"
#include "model/row_order.h"
#include "model/totals.h"
#include "screen/numbers.h"
#include "screen/terminal.h"
#include "screen/tui.h"
#include "screen/view.h"
#include "screen/views.h"
#include "text/numbers.h"

enum kind_of_row { ROW_TEXT, ROW_CALLER, ROW_CALLEE };

struct line {
	enum kind_of_row kind;
	const char *text;  /* of ROW_TEXT */
	uint32_t function; /* the other one; NONE: no caller */
};

struct page {
	struct view view;
	struct tui *tui;
	uint32_t function;
	struct sums *callers, *callees; /* by function */
	struct line *lines;
	uint32_t room;
};

static void add_line(struct page *page, struct line line)
{
	GROW(page->lines, page->view.list.count, page->room);
	page->lines[page->view.list.count++] = line;
}

static void add_text(struct page *page, const char *text)
{
	add_line(page, (struct line){ .kind = ROW_TEXT, .text = text });
}

static void add_neighbours(struct page *page, const struct sums *sums,
			   enum kind_of_row row_kind, const char *title)
{
	const struct model *model = page->tui->model;
	const struct sums *outside = &sums[model->function_count];
	struct options options = *page->tui->options;
	uint32_t i, count, *order;

	options.sort = SORT_TOTAL;
	options.sort_given = model->has_times;
	order = row_order_functions(model, sums, &options, &count);
	add_text(page, "");
	add_text(page, count || outside->calls || outside->open ?
			       title :
			       keep_format("%s: none", title));
	for (i = 0; i < count; i++)
		add_line(page, (struct line){ row_kind, NULL, order[i] });
	if (outside->calls || outside->open)
		add_line(page, (struct line){ row_kind, NULL, NONE });
	free(order);
}

static void add_numbers(struct page *page)
{
	const struct model *model = page->tui->model;
	const struct sums *sums = &model->functions[page->function].sums;
	char text[SHORT_TEXT], other[SHORT_TEXT];

	if (sums->has_range && model->has_ranges)
		add_text(
			page,
			keep_format("calls took %s to %s",
				    bounded_text(text, sums->min,
						 duration_bound(sums->min,
								sums->min_most),
						 true),
				    bounded_text(other, sums->max,
						 duration_bound(sums->max,
								sums->max_most),
						 true)));
	if (sums->open)
		add_text(page, keep_format("%s %s open at the end",
					   human_count(text, sums->open),
					   sums->open == 1 ? "call was" :
							     "calls were"));
	if (sums->older)
		add_text(page, keep_format("%s %s open before the attach",
					   human_count(text, sums->older),
					   sums->older == 1 ? "call was" :
							      "calls were"));
	if (model->has_memory &&
	    model->function_memory[page->function].allocations)
		add_text(page,
			 keep_format(
				 "%s allocated in %s blocks",
				 human_bytes(
					 text,
					 model->function_memory[page->function]
						 .allocated),
				 human_count(
					 other,
					 model->function_memory[page->function]
						 .allocations)));
}

static void draw_title(struct view *view, struct row *row)
{
	struct page *page = (struct page *)view;
	struct function *function =
		&page->tui->model->functions[page->function];

	row_text_as(row, shown_name(function, page->tui->options), LOOK_STRONG);
	function_line(function);
	row_text(row, function->file ?
			      keep_format(" [%s %s:%d]", object_name(function),
					  base_name(function->file),
					  function->line) :
			      keep_format(" [%s]", object_name(function)));
}

static void draw_columns(struct view *view, struct row *row)
{
	const struct model *model = ((struct page *)view)->tui->model;

	row_number(row, counted_name(model), calls_width(model));
	row_number(row, "total", TIME_WIDTH);
	row_number(row, "self", TIME_WIDTH);
	row_text(row, "function");
}

static void draw_sums(const struct page *page, const struct sums *sums,
		      struct row *row)
{
	const struct model *model = page->tui->model;

	cell_calls(row, model, sums);
	cell_total(row, sums, model->time);
	cell_self(row, sums, model->time);
}

static void draw_row(struct view *view, uint32_t number, struct row *row)
{
	const struct page *page = (struct page *)view;
	const struct line *line = &page->lines[number];
	struct model *model = page->tui->model;
	const struct sums *sums = line->kind == ROW_CALLER ? page->callers :
							     page->callees;
	char note[GUESS_NOTE];

	if (line->kind == ROW_TEXT && !line->text) {
		draw_sums(page, &model->functions[page->function].sums, row);
		row_text(row, "all calls");
	} else if (line->kind == ROW_TEXT) {
		row_text_as(row, line->text, LOOK_STRONG);
	} else {
		sums += line->function == NONE ? model->function_count :
						 line->function;
		draw_sums(page, sums, row);
		if (line->function == NONE)
			row_text(row, "(none: first in its thread)");
		else
			draw_noted_function(
				row, &model->functions[line->function],
				page->tui,
				guess_note(note,
					   line->kind == ROW_CALLER ? "" :
								      "caller ",
					   sums->guessed, sums->calls, false));
	}
}

static bool matches(struct view *view, uint32_t number, const char *text)
{
	const struct page *page = (struct page *)view;
	const struct line *line = &page->lines[number];

	return line->kind != ROW_TEXT && line->function != NONE &&
	       strcasestr(page->tui->model->functions[line->function].name,
			  text);
}

static void show_source(struct screen *screen, struct page *page)
{
	struct view *source = page->tui->views->source(page->tui,
						       page->function, screen);

	if (source)
		screen_push(screen, source);
}

static bool do_key(struct screen *screen, struct view *view, int key)
{
	struct page *page = (struct page *)view;
	const struct line *line = &page->lines[view->list.chosen];

	if (IS_ENTER(key) || key == KEY_RIGHT) {
		if (line->kind != ROW_TEXT && line->function != NONE)
			screen_push(screen, page->tui->views->function(
						    page->tui, line->function));
	} else if (key == 's') {
		show_source(screen, page);
	} else if (key == KEY_LEFT) {
		screen_pop(screen);
	} else {
		return tui_key(screen, page->tui, key);
	}
	return true;
}

static void end(struct view *view)
{
	struct page *page = (struct page *)view;

	free(page->callers);
	free(page->callees);
	free(page->lines);
	free(page);
}

static const struct view_kind kind = {
	.keys = " ? help  Enter open  s source  Esc back  " TUI_KEYS,
	.help = "Enter     the caller or callee\n"
		"s         the source, with the samples of each line\n" TUI_HELP,
	.title = draw_title,
	.columns = draw_columns,
	.draw = draw_row,
	.key = do_key,
	.matches = matches,
	.end = end,
};

struct view *function_view(struct tui *tui, uint32_t function)
{
	struct page *page = allocate(1, sizeof(*page));
	const struct model *model = tui->model;
	bool *wanted = allocate(model->function_count, sizeof(*wanted));

	wanted[function] = true;
	page->view.kind = &kind;
	page->tui = tui;
	page->function = function;
	page->callers = neighbours_of(model, wanted, true);
	page->callees = neighbours_of(model, wanted, false);
	free(wanted);
	add_text(page, NULL);
	add_numbers(page);
	add_neighbours(page, page->callers, ROW_CALLER, "callers");
	add_neighbours(page, page->callees, ROW_CALLEE, "callees");
	return &page->view;
}
