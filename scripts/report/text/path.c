/* Prints a call path in a table, the innermost function first. */
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/messages.h"
#include "base/text.h"
#include "model/functions.h"
#include "model/model.h"
#include "model/paths.h"
#include "text/layout.h"
#include "text/path.h"

#define FUNCTIONS    8	 /* limit of functions shown, from the innermost */
#define NAME_COLUMNS 48	 /* limit for each name */
#define PIPE_COLUMNS 140 /* width of a line that goes to no terminal */

static uint32_t parent_of(const struct model *model, uint32_t path)
{
	return model->paths[path].parent;
}

/* The number of columns that the line has for paths. */
static size_t room_of(const struct layout *layout, size_t used)
{
	size_t columns = layout->columns == SIZE_MAX ? PIPE_COLUMNS :
						       layout->columns;

	if (layout->options->names == NAMES_FULL ||
	    layout->options->names == NAMES_MANGLED)
		return SIZE_MAX;
	return columns > used + NAME_COLUMNS ? columns - used : NAME_COLUMNS;
}

/* The part of a name that a path shows; the caller frees it. */
static char *name_text(const struct layout *layout, uint32_t path)
{
	struct layout into = *layout;
	char *text;
	size_t size;

	into.out = open_memstream(&text, &size);
	if (!into.out)
		die("out of memory");
	put_function_name(
		&into,
		&layout->model->functions[layout->model->paths[path].function],
		NAME_COLUMNS);
	fclose(into.out);
	return text;
}

void path_print(const struct layout *layout, uint32_t path, size_t used)
{
	const struct model *model = layout->model;
	size_t room = room_of(layout, used), needed;
	uint32_t shown = 0;
	char *name;

	if (path == NONE || path_is_root(model, path)) {
		fputs(path == NONE ? "(unknown)" : MEMORY_OUTSIDE, layout->out);
		return;
	}
	for (; !path_is_root(model, path); path = parent_of(model, path)) {
		name = name_text(layout, path);
		needed = text_columns(name) + strlen(" < ");
		if (shown == FUNCTIONS || (shown && needed + 6 > room)) {
			fputs(" < ...", layout->out);
			free(name);
			return;
		}
		fputs(shown++ ? " < " : "", layout->out);
		fputs(name, layout->out);
		room -= needed < room ? needed : room;
		free(name);
	}
}

void memory_put_path(const struct layout *layout, uint32_t path)
{
	const struct path *at = &layout->model->paths[path];

	if (at->function == NONE) {
		fputs(MEMORY_OUTSIDE, layout->out);
		return;
	}
	if (layout->model->paths[at->parent].function != NONE) {
		memory_put_path(layout, at->parent);
		fputs(" > ", layout->out);
	}
	put_function_name(layout, &layout->model->functions[at->function],
			  SIZE_MAX);
}
