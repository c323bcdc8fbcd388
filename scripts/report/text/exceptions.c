/*
 * The table of exceptions: by type, where they are thrown, and where those are caught.
 */
#include <stdint.h>
#include <stdio.h>

#include "base/numbers.h"
#include "base/text.h"
#include "model/exceptions.h"
#include "text/exceptions.h"
#include "text/page.h"
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
	const struct page *page = table->page;
	const struct throw_part *part =
		&page->model->exceptions->parts[thrower->first];
	uint32_t i;

	print_counts(table, thrower->throws, thrower->catches, 2);
	fputs("thrown in ", page->out);
	path_print(page, thrower->path);
	table_end_row(table);
	for (i = 0; i < thrower->count; i++, part++) {
		if (part->is_throw)
			continue;
		print_counts(table, 0, part->count, 4);
		fputs("caught in ", page->out);
		path_print(page, part->catcher);
		table_end_row(table);
	}
}

static void print_head(const struct page *page)
{
	const struct exceptions *exceptions = page->model->exceptions;
	char throws[SHORT_TEXT], catches[SHORT_TEXT];

	fprintf(page->out, "  %s exceptions were thrown, %s caught\n",
		human_count(throws, exceptions->throws),
		human_count(catches, exceptions->catches));
}

void exceptions_print(const struct page *page)
{
	static const struct column columns[] = { { "thrown", 10 },
						 { "caught", 10 },
						 { "type", 0 } };
	struct table table = table_begin(page, columns);
	const struct exceptions *exceptions = page->model->exceptions;
	uint32_t i, n, rows = page_rows(page, 30, exceptions->type_count);
	const char *name;

	print_head(page);
	if (!exceptions->type_count)
		return;
	fputc('\n', page->out);
	table_titles(&table, "  (by thrown)");
	for (i = 0; i < rows; i++) {
		const struct thrown *type = &exceptions->of_types[i];

		print_counts(&table, type->throws, type->catches, 0);
		name = exceptions_type_name(exceptions, type->type,
					    page->options);
		put_text(page->out, name ? name : UNKNOWN_TYPE);
		table_end_row(&table);
		for (n = 0; n < type->count; n++)
			print_thrower(&table,
				      &exceptions->throwers[type->first + n]);
	}
	page_left_out(page, rows, exceptions->type_count);
}
