/*
 * The functions of a call path, for tables of waits, throws and memory.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/memory.h"
#include "model/functions.h"
#include "model/model.h"
#include "model/options.h"
#include "model/paths.h"

const char *path_name(const struct model *model, uint32_t path,
		      const struct options *options)
{
	return shown_name(&model->functions[model->paths[path].function],
			  options);
}

bool path_is_root(const struct model *model, uint32_t path)
{
	return model->paths[path].function == NONE;
}

/* The paths from the outermost call to @path, without the root. */
uint32_t *path_list(const struct model *model, uint32_t path, uint32_t *count)
{
	uint32_t depth = 0, at, *paths;

	for (at = path; !path_is_root(model, at); at = model->paths[at].parent)
		depth++;
	*count = depth;
	paths = allocate(depth, sizeof(*paths));
	for (at = path; depth > 0; at = model->paths[at].parent)
		paths[--depth] = at;
	return paths;
}
