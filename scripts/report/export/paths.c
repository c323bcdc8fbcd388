/*
 * Writes a call path: in JSON as a list of names, the outermost first; in CSV
 * as "name;name".
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/text.h"
#include "export/paths.h"
#include "model/model.h"
#include "model/options.h"
#include "model/paths.h"

void path_json(struct json *json, const struct model *model,
	       const struct options *options, uint32_t path)
{
	uint32_t i, count, *paths;

	if (path == NONE) {
		json_null(json);
		return;
	}
	paths = path_list(model, path, &count);
	json_array(json);
	for (i = 0; i < count; i++)
		json_text(json, path_name(model, paths[i], options));
	json_close_array(json);
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
	paths = path_list(model, path, &count);
	for (i = 0; i < count; i++)
		size += strlen(path_name(model, paths[i], options)) + 1;
	text = at = allocate(size, 1);
	for (i = 0; i < count; i++) {
		name = path_name(model, paths[i], options);
		if (i > 0)
			*at++ = ';';
		memcpy(at, name, strlen(name));
		at += strlen(name);
	}
	put_csv(out, text);
	free(text);
	free(paths);
}
