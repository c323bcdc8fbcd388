/*
 * Paths of calls in tables that are about something else: who waited, who threw.
 */
#include <stdlib.h>
#include <string.h>

#include "report.h"

#define FUNCTIONS    8		/* shown of a path, from the inside */
#define NAME_COLUMNS 48		/* and of their names */

static const char *name_at(const struct model *model, uint32_t path,
			   const struct options *options)
{
	return shown_name(&model->functions[model->paths[path].function],
			  options);
}

static uint32_t parent_of(const struct model *model, uint32_t path)
{
	return model->paths[path].parent;
}

static bool is_root(const struct model *model, uint32_t path)
{
	return model->paths[path].function == NONE;
}

void path_print(const struct page *page, uint32_t path)
{
	const struct model *model = page->model;
	uint32_t shown = 0;

	if (path == NONE || is_root(model, path)) {
		fputs(path == NONE ? "(unknown)" : MEMORY_OUTSIDE, page->out);
		return;
	}
	for (; !is_root(model, path); path = parent_of(model, path)) {
		if (shown > 0)
			fputs(" < ", page->out);
		if (shown++ == FUNCTIONS) {
			fputs("...", page->out);
			return;
		}
		put_text_cut(page->out, name_at(model, path, page->options),
			     NAME_COLUMNS);
	}
}

/* The paths from the outermost call to @path, without the root. */
static uint32_t *list(const struct model *model, uint32_t path, uint32_t *count)
{
	uint32_t depth = 0, at, *paths;

	for (at = path; !is_root(model, at); at = parent_of(model, at))
		depth++;
	*count = depth;
	paths = allocate(depth, sizeof(*paths));
	for (at = path; depth > 0; at = parent_of(model, at))
		paths[--depth] = at;
	return paths;
}

void path_json(FILE *out, const struct model *model,
	       const struct options *options, uint32_t path)
{
	uint32_t i, count, *paths;

	if (path == NONE) {
		fputs("null", out);
		return;
	}
	paths = list(model, path, &count);
	fputc('[', out);
	for (i = 0; i < count; i++) {
		if (i > 0)
			fputc(',', out);
		put_json(out, name_at(model, paths[i], options));
	}
	fputc(']', out);
	free(paths);
}

void path_csv(FILE *out, const struct model *model,
	      const struct options *options, uint32_t path)
{
	uint32_t i, count, *paths;
	const char *name;
	size_t size = 1;
	char *text, *at;

	if (path == NONE)
		return;
	paths = list(model, path, &count);
	for (i = 0; i < count; i++)
		size += strlen(name_at(model, paths[i], options)) + 1;
	text = at = allocate(size, 1);
	for (i = 0; i < count; i++) {
		name = name_at(model, paths[i], options);
		if (i > 0)
			*at++ = ';';
		memcpy(at, name, strlen(name));
		at += strlen(name);
	}
	put_csv(out, text);
	free(text);
	free(paths);
}
