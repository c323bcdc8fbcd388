/*
 * A view is what the screen shows: a title, titles of columns, and a list of rows.  Views
 * lie on each other, and Escape leads back to the one below.
 */
#ifndef REPORT_SCREEN_VIEW_H
#define REPORT_SCREEN_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "screen/list.h"
#include "screen/terminal.h"

struct screen;
struct view;

struct view_kind {
	const char *keys; /* the most useful ones, for the last line */
	const char *help; /* all, a line each */
	/* Draws the view's title; and the titles of its columns. */
	void (*title)(struct view *view, struct row *row);
	void (*columns)(struct view *view, struct row *row);
	void (*draw)(struct view *view, uint32_t number, struct row *row);
	/* False: the key is none of the view's. */
	bool (*key)(struct screen *screen, struct view *view, int key);
	/* The cursor may have moved; NULL: that does not matter. */
	void (*moved)(struct view *view);
	/* Whether the row matches a search; NULL: there is no search. */
	bool (*matches)(struct view *view, uint32_t number, const char *text);
	void (*end)(struct view *view); /* frees it */
};

struct view {
	const struct view_kind *kind;
	struct list list;
	struct view *below;
};

struct screen {
	struct view *view; /* the topmost */
	const char *name;  /* on the first line */
	bool is_over;
	char search[128];
	char message[512]; /* for the last line, until the next key */
};

/* Puts a view on top; the screen owns it from then on. */
void screen_push(struct screen *screen, struct view *view);
/* Goes back; the last view ends the screen. */
void screen_pop(struct screen *screen);
/* Goes back to the first view, which is ended. */
void screen_clear(struct screen *screen);
void screen_say(struct screen *screen, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

void screen_draw(struct screen *screen);
/* Does what @key asks for; ERR is no key. */
void screen_do(struct screen *screen, int key);

#define KEY_ESCAPE    27
#define IS_ENTER(key) ((key) == '\r' || (key) == '\n' || (key) == KEY_ENTER)

#endif
