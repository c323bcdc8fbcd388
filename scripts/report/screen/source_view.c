/*
 * The source of a function.  If samples found its lines, each line has its time; otherwise
 * the file is shown from the function on.
 */
#include <curses.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "base/text.h"
#include "model/functions.h"
#include "model/hits.h"
#include "model/listing.h"
#include "model/model.h"
#include "model/options.h"
#include "names/source.h"
#include "screen/numbers.h"
#include "screen/terminal.h"
#include "screen/tui.h"
#include "screen/view.h"
#include "screen/views.h"

#define LINE_WIDTH 6

struct source_row {
	const char *text;
	int line;    /* 0: a title, or a gap */
	double self; /* samples, by weight */
};

struct source {
	struct view view;
	struct tui *tui;
	uint32_t function;
	struct source_row *rows;
	uint32_t room;
	double all, period_ns; /* of all samples; 0: no samples */
};

static void add_row(struct source *source, struct source_row row)
{
	GROW(source->rows, source->view.list.count, source->room);
	source->rows[source->view.list.count++] = row;
}

static void add_listing(struct source *source, const struct listing *listing,
			double *hottest)
{
	struct listing_row at = listing_begin(listing);

	add_row(source, (struct source_row){ .text = listing->file });
	while (listing_next(&at)) {
		double self = at.hit ? at.hit->self : 0;

		if (at.is_after_gap)
			add_row(source, (struct source_row){ .text = "..." });
		if (self > *hottest) {
			*hottest = self;
			source->view.list.chosen = source->view.list.count;
		}
		add_row(source,
			(struct source_row){
				.text = at.text ? listing_text(at.text) : "",
				.line = at.line,
				.self = self });
	}
}

/* The lines that samples found; false: none did. */
static bool add_hits(struct source *source)
{
	struct tui *tui = source->tui;
	struct model *model = tui->samples ? tui->samples : tui->model;
	struct listing *listings;
	uint32_t i, count = 0;
	struct hits hits = { .self = 0 };
	double hottest = 0;

	if (!tui->has_hits)
		return false;
	source->all = hits_all(model);
	source->period_ns = hits_period_ns(model);
	hits_find(&hits, model, source->function);
	if (hits.line_count)
		count = listing_find(
			&listings, &hits, &model->functions[source->function],
			&tui->options->places, tui->options->context);
	for (i = 0; i < count; i++)
		add_listing(source, &listings[i], &hottest);
	if (count)
		listing_free(listings, count);
	hits_free(&hits);
	return count > 0;
}

/* The whole file, with the cursor at the function. */
static const char *add_file(struct source *source)
{
	struct function *function =
		&source->tui->model->functions[source->function];
	const struct source_file *file;
	uint32_t i;

	function_line(function);
	if (!function->file)
		return "its line is not known: compile with -g";
	file = source_find(function->file, &source->tui->options->places,
			   function->object);
	if (!file->path)
		return keep_format("%s is not there (--source-dir)",
				   function->file);
	add_row(source, (struct source_row){ .text = file->path });
	for (i = 1; i <= file->line_count; i++)
		add_row(source,
			(struct source_row){
				.text = listing_text(source_line(file, (int)i)),
				.line = (int)i });
	source->view.list.chosen = (uint32_t)function->line;
	/* A few lines before it are seen. */
	source->view.list.first = function->line > 3 ?
					  (uint32_t)function->line - 3 :
					  0;
	return NULL;
}

static void draw_title(struct view *view, struct row *row)
{
	const struct source *source = (struct source *)view;

	row_text_as(row, "source of ", LOOK_PLAIN);
	row_text_as(row,
		    shown_name(&source->tui->model->functions[source->function],
			       source->tui->options),
		    LOOK_STRONG);
	if (source->all <= 0)
		row_text(row, ": no samples of its lines (-p sampling, "
			      "--budget)");
}

static void draw_columns(struct view *view, struct row *row)
{
	const struct source *source = (struct source *)view;

	if (source->all > 0) {
		row_number(row, "self%", PERCENT_WIDTH);
		row_number(row, "self", TIME_WIDTH);
	}
	row_number(row, "line", LINE_WIDTH);
	row_text(row, "source");
}

static void draw_row(struct view *view, uint32_t number, struct row *row)
{
	const struct source *source = (struct source *)view;
	const struct source_row *line = &source->rows[number];
	char text[SHORT_TEXT];

	if (line->line == 0) {
		row_text_as(row, line->text, LOOK_FAINT);
		return;
	}
	if (source->all > 0 && line->self > 0) {
		cell_percent(row, line->self, source->all, true);
		row_number(row,
			   time_text(text, line->self * source->period_ns,
				     source->period_ns > 0),
			   TIME_WIDTH);
	} else if (source->all > 0) {
		row_skip(row, PERCENT_WIDTH + 1 + TIME_WIDTH + 1);
	}
	snprintf(text, sizeof(text), "%d", line->line);
	row_number(row, text, LINE_WIDTH);
	row_text_as(row, line->text, line->self > 0 ? LOOK_STRONG : LOOK_PLAIN);
}

static bool matches(struct view *view, uint32_t number, const char *text)
{
	return strcasestr(((struct source *)view)->rows[number].text, text);
}

static bool do_key(struct screen *screen, struct view *view, int key)
{
	if (key != KEY_LEFT)
		return tui_key(screen, ((struct source *)view)->tui, key);
	screen_pop(screen);
	return true;
}

static void end(struct view *view)
{
	free(((struct source *)view)->rows);
	free(view);
}

static const struct view_kind kind = {
	.keys = " ? help  / search  Esc back  " TUI_KEYS,
	.help = TUI_HELP,
	.title = draw_title,
	.columns = draw_columns,
	.draw = draw_row,
	.key = do_key,
	.matches = matches,
	.end = end,
};

struct view *source_view(struct tui *tui, uint32_t function,
			 struct screen *screen)
{
	struct source *source = allocate(1, sizeof(*source));
	const char *missing;

	source->view.kind = &kind;
	source->tui = tui;
	source->function = function;
	if (add_hits(source))
		return &source->view;
	missing = add_file(source);
	if (!missing)
		return &source->view;
	screen_say(screen, "%s", missing);
	end(&source->view);
	return NULL;
}
