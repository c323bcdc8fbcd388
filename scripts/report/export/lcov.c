/*
 * Exports coverage as lcov's tracefile: one record for each test and source
 * file, with functions (FN, FNDA) and lines (DA). genhtml turns it into web
 * pages.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "export/format.h"
#include "model/coverage.h"
#include "model/functions.h"
#include "model/options.h"

/* A newline in a name would begin a new record. */
static void put_line(FILE *out, const char *prefix, const char *text)
{
	fputs(prefix, out);
	for (; *text; text++)
		fputc(*text == '\n' || *text == '\r' ? '?' : *text, out);
	fputc('\n', out);
}

static void put_functions(FILE *out, const struct coverage *coverage,
			  const struct covered *all, size_t count,
			  const struct options *options)
{
	size_t reached = 0, i;

	for (i = 0; i < count; i++) {
		const char *name = coverage->names.text[all[i].function];

		fprintf(out, "FN:%u,", all[i].line);
		put_line(out, "", shown_linker_name(name, options));
	}
	for (i = 0; i < count; i++) {
		const char *name = coverage->names.text[all[i].function];

		fprintf(out, "FNDA:%" PRIu64 ",", all[i].count);
		put_line(out, "", shown_linker_name(name, options));
		reached += all[i].count != 0;
	}
	fprintf(out, "FNF:%zu\nFNH:%zu\n", count, reached);
}

static void put_lines(FILE *out, const struct covered *all, size_t count)
{
	size_t reached = 0, i;

	for (i = 0; i < count; i++) {
		fprintf(out, "DA:%u,%" PRIu64 "\n", all[i].line, all[i].count);
		reached += all[i].count != 0;
	}
	fprintf(out, "LF:%zu\nLH:%zu\n", count, reached);
}

static void lcov_print(FILE *out, const struct coverage *coverage,
		       const struct options *options)
{
	const struct covered *functions = coverage->functions;
	size_t at, end, from = 0, to;

	for (at = 0; at < coverage->line_count; at = end) {
		const struct covered *first = &coverage->lines[at];

		end = coverage_file_end(coverage->lines, coverage->line_count,
					at);
		while (from < coverage->function_count &&
		       (functions[from].test < first->test ||
			(functions[from].test == first->test &&
			 functions[from].file < first->file)))
			from++;
		to = from;
		while (to < coverage->function_count &&
		       functions[to].test == first->test &&
		       functions[to].file == first->file)
			to++;
		put_line(out, "TN:", coverage->tests.text[first->test]);
		put_line(out, "SF:", coverage->files.text[first->file]);
		put_functions(out, coverage, functions + from, to - from,
			      options);
		put_lines(out, first, end - at);
		fputs("end_of_record\n", out);
		from = to;
	}
}

EXPORT_FORMAT(lcov) = {
	.name = "lcov",
	.extension = "info",
	.description = "the lines reached in all DIRs, for genhtml",
	.has_no_threads = true,
	.keeps_tests = true,
	.print_coverage = lcov_print,
};
