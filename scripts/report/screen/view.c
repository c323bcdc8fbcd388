/*
 * Draws the topmost view and does what keys ask for: those of the view first, then those
 * of its list, then those that all views have.
 */
#include <curses.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "screen/list.h"
#include "screen/terminal.h"
#include "screen/view.h"

/* Rows above and below the list. */
#define ROWS_ABOVE 3
#define ROWS_BELOW 1

void screen_push(struct screen *screen, struct view *view)
{
	view->below = screen->view;
	screen->view = view;
}

static void drop(struct screen *screen)
{
	struct view *view = screen->view;

	screen->view = view->below;
	view->kind->end(view);
}

void screen_pop(struct screen *screen)
{
	drop(screen);
	screen->is_over = !screen->view;
}

void screen_clear(struct screen *screen)
{
	while (screen->view)
		drop(screen);
}

void screen_say(struct screen *screen, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(screen->message, sizeof(screen->message), format, arguments);
	va_end(arguments);
}

static uint32_t list_rows(void)
{
	int rows = terminal_rows() - ROWS_ABOVE - ROWS_BELOW;

	return rows > 1 ? (uint32_t)rows : 1;
}

static void draw_line(int y, enum look look, const char *text)
{
	struct row row = row_begin(y, look);

	row_text(&row, text);
	row_end(&row);
}

static void draw_list(struct view *view)
{
	uint32_t rows = list_rows(), i, number;
	struct row row;

	list_fit(&view->list, rows);
	for (i = 0; i < rows; i++) {
		number = view->list.first + i;
		row = row_begin(ROWS_ABOVE + (int)i,
				number < view->list.count &&
						number == view->list.chosen ?
					LOOK_CHOSEN :
					LOOK_PLAIN);
		if (number < view->list.count)
			view->kind->draw(view, number, &row);
		row_end(&row);
	}
}

/* The keys, or the message, and where the cursor is in the list. */
static void draw_status(const struct screen *screen)
{
	const struct view *view = screen->view;
	struct row row = row_begin(terminal_rows() - 1, LOOK_STATUS);
	char place[32];
	int length = snprintf(place, sizeof(place), " %u/%u ",
			      view->list.count ? view->list.chosen + 1 : 0,
			      view->list.count);

	/* What failed is at a message's end, after a path that may be long. */
	if (screen->message[0])
		row_ends(&row, screen->message,
			 terminal_columns() - length - 1);
	else
		row_cell(&row, view->kind->keys,
			 length + 1 - terminal_columns());
	row_text(&row, place);
	row_end(&row);
}

void screen_draw(struct screen *screen)
{
	struct view *view = screen->view;
	struct row row = row_begin(1, LOOK_PLAIN);

	draw_line(0, LOOK_NAME, screen->name);
	view->kind->title(view, &row);
	row_end(&row);
	row = row_begin(2, LOOK_HEADING);
	if (view->kind->columns)
		view->kind->columns(view, &row);
	row_end(&row);
	draw_list(view);
	draw_status(screen);
	terminal_show();
}

/* --- search --- */

static void search(struct screen *screen, int step)
{
	struct view *view = screen->view;
	uint32_t i, at = view->list.chosen, count = view->list.count;

	if (!view->kind->matches || !screen->search[0])
		return;
	for (i = 0; i < count; i++) {
		at = (at + count + (uint32_t)step) % count;
		if (view->kind->matches(view, at, screen->search)) {
			view->list.chosen = at;
			return;
		}
	}
	screen_say(screen, "not found: %s", screen->search);
}

static void ask_search(struct screen *screen)
{
	if (!screen->view->kind->matches)
		return;
	screen->search[0] = '\0';
	if (terminal_ask(" search: ", screen->search, sizeof(screen->search)))
		search(screen, 1);
}

/* --- help --- */

struct help {
	struct view view;
	const char **all;
};

static void draw_help_title(struct view *view, struct row *row)
{
	(void)view;
	row_text_as(row, "keys", LOOK_STRONG);
}

static void draw_help(struct view *view, uint32_t number, struct row *row)
{
	row_skip(row, 2);
	row_text(row, ((struct help *)view)->all[number]);
}

static bool help_key(struct screen *screen, struct view *view, int key)
{
	(void)view;
	if (key != '?')
		return false;
	screen_pop(screen);
	return true;
}

static void end_help(struct view *view)
{
	free(((struct help *)view)->all);
	free(view);
}

static const struct view_kind help_kind = {
	.keys = " Esc back",
	.title = draw_help_title,
	.draw = draw_help,
	.key = help_key,
	.end = end_help,
};

static const char common_help[] = "up, down, PgUp, PgDn, Home, End   move\n"
				  "/         search, n the next, N the last\n"
				  "Esc, q    back\n"
				  "Q         quit\n"
				  "?         this list";

static void add_lines(struct help *help, uint32_t *room, const char *text)
{
	size_t length;

	for (; text && *text; text += length + (text[length] == '\n')) {
		length = strcspn(text, "\n");
		GROW(help->all, help->view.list.count, *room);
		help->all[help->view.list.count++] = keep_text(text, length);
	}
}

static void push_help(struct screen *screen)
{
	struct help *help = allocate(1, sizeof(*help));
	uint32_t room = 0;

	help->view.kind = &help_kind;
	add_lines(help, &room, screen->view->kind->help);
	add_lines(help, &room, common_help);
	screen_push(screen, &help->view);
}

void screen_do(struct screen *screen, int key)
{
	struct view *view = screen->view;

	if (key == ERR || key == KEY_RESIZE)
		return;
	screen->message[0] = '\0';
	if (view->kind->key(screen, view, key))
		return;
	if (list_key(&view->list, key, list_rows())) {
		if (view->kind->moved)
			view->kind->moved(view);
		return;
	}
	switch (key) {
	case 'Q': screen->is_over = true; break;
	case 'q':
	case KEY_ESCAPE:
	case KEY_BACKSPACE:
	case 127: screen_pop(screen); break;
	case '?':
	case 'h':
	case KEY_F(1): push_help(screen); break;
	case '/': ask_search(screen); break;
	case 'n': search(screen, 1); break;
	case 'N': search(screen, -1); break;
	default: break;
	}
}
