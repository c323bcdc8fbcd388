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

#define UNKNOWN_TYPE "(unknown type)"

static void print_counts(const struct page *page, uint64_t throws,
			 uint64_t catches)
{
	char text[SHORT_TEXT];

	fprintf(page->out, "%10s ", throws ? human_count(text, throws) : "");
	fprintf(page->out, "%10s  ", catches ? human_count(text, catches) : "");
}

static void print_thrower(const struct page *page, const struct thrown *thrower)
{
	const struct throw_part *part =
		&page->model->exceptions->parts[thrower->first];
	uint32_t i;

	print_counts(page, thrower->throws, thrower->catches);
	fputs("  thrown in ", page->out);
	path_print(page, thrower->path);
	fputc('\n', page->out);
	for (i = 0; i < thrower->count; i++, part++) {
		if (part->is_throw)
			continue;
		print_counts(page, 0, part->count);
		fputs("    caught in ", page->out);
		path_print(page, part->catcher);
		fputc('\n', page->out);
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
	const struct exceptions *exceptions = page->model->exceptions;
	uint32_t i, n, rows = page_rows(page, 30, exceptions->type_count);
	const char *name;

	print_head(page);
	if (!exceptions->type_count)
		return;
	fprintf(page->out, "\n%s%10s %10s  type%s  (by thrown)\n",
		page->color ? "\033[1m" : "", "thrown", "caught",
		page->color ? "\033[m" : "");
	for (i = 0; i < rows; i++) {
		const struct thrown *type = &exceptions->of_types[i];

		print_counts(page, type->throws, type->catches);
		name = exceptions_type_name(exceptions, type->type,
					    page->options);
		put_text(page->out, name ? name : UNKNOWN_TYPE);
		fputc('\n', page->out);
		for (n = 0; n < type->count; n++)
			print_thrower(page,
				      &exceptions->throwers[type->first + n]);
	}
	page_left_out(page, rows, exceptions->type_count);
}
