/*
 * profrun export order: lists the linker names of one object's functions, one
 * per line, the most expensive function first. lld reads the list with
 * --symbol-ordering-file.  Functions that run then lie together on few pages.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/messages.h"
#include "base/names.h"
#include "base/text.h"
#include "export/format.h"
#include "model/functions.h"
#include "model/model.h"
#include "model/options.h"
#include "model/row_order.h"
#include "model/totals.h"
#include "names/symbols.h"
#include "read/process.h"
#include "read/recording.h"

/* Whether the object is the program of one of the processes, or the one of
 * --object. */
static bool is_chosen(const struct model *model, const struct options *options,
		      const struct object *object)
{
	const struct recording *recording = model->recording;
	const char *program;
	uint32_t i;

	if (options->object)
		return !strcmp(options->object, object->path) ||
		       !strcmp(options->object, base_name(object->path));
	for (i = 0; i < recording->process_count; i++) {
		program = process_string(&recording->processes[i], "program");
		if (program && !strcmp(program, object->path))
			return true;
	}
	return false;
}

static enum sort sort_of(enum value value)
{
	return value == VALUE_SELF  ? SORT_SELF :
	       value == VALUE_TOTAL ? SORT_TOTAL :
				      SORT_CALLS;
}

/* Functions with the same name, and groups of one function's calls, are listed
 * once. */
static void linker_order_print(FILE *out, struct model *model,
			       const struct options *options)
{
	struct options by = *options;
	struct sums *sums = sums_of_functions(model);
	struct names names = { .count = 0 };
	uint32_t *order, count, before, i;

	by.sort = sort_of(options->value);
	order = row_order_functions(model, sums, &by, &count);
	for (i = 0; i < count; i++) {
		const struct function *function = &model->functions[order[i]];

		before = names.count;
		if (!function->is_named || !function->object ||
		    !is_chosen(model, options, function->object) ||
		    names_add(&names, linker_name(function)) < before)
			continue;
		put_text(out, linker_name(function));
		fputc('\n', out);
	}
	if (names.count == 0)
		warn("%s: no function of %s was called", model->recording->path,
		     options->object ? options->object : "the program");
	free(order);
	free(sums);
}

EXPORT_FORMAT(order) = {
	.name = "order",
	.extension = "txt",
	.description = "functions for the linker, hot ones first",
	.values = VALUES_OF_CALLS,
	.has_no_threads = true,
	.has_object = true,
	.print = linker_order_print,
};
