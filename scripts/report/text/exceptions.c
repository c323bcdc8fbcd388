/*
 * Prints the table of exceptions: by type, the paths that throw, and the paths
 * that catch.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/numbers.h"
#include "base/text.h"
#include "model/exceptions.h"
#include "text/exceptions.h"
#include "text/layout.h"
#include "text/path.h"
#include "text/table.h"

#define UNKNOWN_TYPE "(unknown type)"

static void print_counts(struct table *table, uint64_t throws, uint64_t catches,
			 size_t indent)
{
	char text[SHORT_TEXT];

	table_cell(table, throws ? human_count(text, throws) : "");
	table_cell(table, catches ? human_count(text, catches) : "");
	table_rest(table, indent);
}

static void print_thrower(struct table *table, const struct thrown *thrower)
{
	const struct layout *layout = table->layout;
	const struct throw_part *part =
		&layout->model->exceptions->parts[thrower->first];
	uint32_t i;

	print_counts(table, thrower->throws, thrower->catches, 2);
	fputs("thrown in ", layout->out);
	path_print(layout, thrower->path, table->used + strlen("thrown in "));
	table_end_row(table);
	for (i = 0; i < thrower->count; i++, part++) {
		if (part->is_throw)
			continue;
		print_counts(table, 0, part->count, 4);
		fputs("caught in ", layout->out);
		path_print(layout, part->catcher,
			   table->used + strlen("caught in "));
		table_end_row(table);
	}
}

static void print_head(const struct layout *layout)
{
	const struct exceptions *exceptions = layout->model->exceptions;
	char throws[SHORT_TEXT], catches[SHORT_TEXT];

	fprintf(layout->out, "  %s exceptions were thrown, %s caught\n",
		human_count(throws, exceptions->throws),
		human_count(catches, exceptions->catches));
}

void exceptions_print(const struct layout *layout)
{
	static const struct column columns[] = { { "thrown", 10 },
						 { "caught", 10 },
						 { "type", 0 } };
	struct table table = table_begin(layout, columns);
	const struct exceptions *exceptions = layout->model->exceptions;
	uint32_t i, n, rows = layout_rows(layout, 30, exceptions->type_count);
	const char *name;

	print_head(layout);
	if (!exceptions->type_count)
		return;
	fputc('\n', layout->out);
	table_titles(&table, "  (by thrown)");
	for (i = 0; i < rows; i++) {
		const struct thrown *type = &exceptions->of_types[i];

		print_counts(&table, type->throws, type->catches, 0);
		name = exceptions_type_name(exceptions, type->type,
					    layout->options);
		put_text(layout->out, name ? name : UNKNOWN_TYPE);
		table_end_row(&table);
		for (n = 0; n < type->count; n++)
			print_thrower(&table,
				      &exceptions->throwers[type->first + n]);
	}
	layout_left_out(layout, rows, exceptions->type_count);
}
