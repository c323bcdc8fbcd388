/* Runs the screen of a recording. */
#include <curses.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "model/functions.h"
#include "model/model.h"
#include "model/options.h"
#include "read/process.h"
#include "read/recording.h"
#include "screen/terminal.h"
#include "screen/tui.h"
#include "screen/view.h"
#include "screen/views.h"

static const struct tui_views views = {
	.functions = functions_view,
	.tree = tree_view,
	.function = function_view,
	.threads = threads_view,
	.source = source_view,
};

static const char *name_of(const struct model *model)
{
	const struct recording *recording = model->recording;
	const char *command = process_string(recording->processes, "command");

	return keep_format("%s: %s", recording->path, command ? command : "?");
}

void tui_run(struct tui *tui)
{
	struct screen screen = { .name = name_of(tui->model) };

	tui->views = &views;
	terminal_begin("tui", strcmp(tui->options->color, "never") != 0);
	screen_push(&screen, functions_view(tui));
	while (!screen.is_over) {
		screen_draw(&screen);
		screen_do(&screen, terminal_key(-1, -1));
	}
	screen_clear(&screen);
	terminal_end();
}
