/* A call path in a table that is about something else, from the inside. */
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/text.h"
#include "model/functions.h"
#include "model/model.h"
#include "model/paths.h"
#include "text/layout.h"
#include "text/path.h"

#define FUNCTIONS    8	/* shown of a path, from the inside */
#define NAME_COLUMNS 48 /* and of their names */

static uint32_t parent_of(const struct model *model, uint32_t path)
{
	return model->paths[path].parent;
}

void path_print(const struct layout *layout, uint32_t path)
{
	const struct model *model = layout->model;
	uint32_t shown = 0;

	if (path == NONE || path_is_root(model, path)) {
		fputs(path == NONE ? "(unknown)" : MEMORY_OUTSIDE, layout->out);
		return;
	}
	for (; !path_is_root(model, path); path = parent_of(model, path)) {
		if (shown > 0)
			fputs(" < ", layout->out);
		if (shown++ == FUNCTIONS) {
			fputs("...", layout->out);
			return;
		}
		put_function_name(
			layout, &model->functions[model->paths[path].function],
			NAME_COLUMNS);
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
