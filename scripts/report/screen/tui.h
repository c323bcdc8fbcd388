/* profrun tui: a finished recording on the screen. */
#ifndef REPORT_SCREEN_TUI_H
#define REPORT_SCREEN_TUI_H

#include <stdbool.h>
#include <stdint.h>

struct model;
struct options;
struct screen;
struct tui;
struct view;

/* The views lead to each other through this table. */
struct tui_views {
	struct view *(*functions)(struct tui *tui);
	/* The call tree below path @root of @model; or, with @callers, all functions with
	 * their callers below them. */
	struct view *(*tree)(struct tui *tui, struct model *model,
			     uint32_t root, bool callers);
	/* One function: its numbers, callers and callees. */
	struct view *(*function)(struct tui *tui, uint32_t function);
	struct view *(*threads)(struct tui *tui);
	/* The source of a function with the samples of its lines; NULL with a message: it
	 * cannot be shown. */
	struct view *(*source)(struct tui *tui, uint32_t function,
			       struct screen *screen);
};

/* What the views of one recording share. */
struct tui {
	struct model *model;
	struct model *samples; /* NULL: not beside calls */
	const struct options *options;
	const struct tui_views *views;
	bool has_hits; /* there are samples with lines */
	struct model
		*threaded; /* the same with threads apart, made when needed */
};

/* Shows the recording until the user leaves.  The recording must have kept its entries
 * (is_read_again). */
void tui_run(struct tui *tui);

#endif
