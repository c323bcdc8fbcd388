/* What the views of profrun tui have in common: names, and the keys of the first views. */
#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/text.h"
#include "model/functions.h"
#include "model/model.h"
#include "model/options.h"
#include "screen/terminal.h"
#include "screen/tui.h"
#include "screen/view.h"
#include "screen/views.h"

void draw_noted_function(struct row *row, struct function *function,
			 const struct tui *tui, const char *note)
{
	const char *name = shown_name(function, tui->options);

	if (tui->options->names == NAMES_FITTED &&
	    (int)text_columns(name) > row_left(row))
		name = function->short_name;
	row_text(row, name);
	row_text(row, note);
	if (row_left(row) < 20 || function->is_inlined || !function->is_named)
		return;
	function_line(function);
	row_text_as(row,
		    function->file ?
			    keep_format(" [%s %s:%d]", object_name(function),
					base_name(function->file),
					function->line) :
			    keep_format(" [%s]", object_name(function)),
		    LOOK_FAINT);
}

void draw_function(struct row *row, struct function *function,
		   const struct tui *tui)
{
	draw_noted_function(row, function, tui, "");
}

bool tui_key(struct screen *screen, struct tui *tui, int key)
{
	struct view *view;

	switch (key) {
	case '1': view = tui->views->functions(tui); break;
	case '2': view = tui->views->tree(tui, tui->model, 0, false); break;
	case '3': view = tui->views->tree(tui, tui->model, 0, true); break;
	case '4': view = tui->views->threads(tui); break;
	default: return false;
	}
	screen_clear(screen);
	screen_push(screen, view);
	return true;
}
