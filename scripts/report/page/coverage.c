/*
 * A page without scripts: the head of the report, a bar for each source file, and under it
 * the functions and the lines that the program did not reach.  Sources are not opened: the
 * recording says where they are, and the page may be passed on.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "model/coverage.h"
#include "model/functions.h"
#include "model/options.h"
#include "page/coverage.h"

static const char head[] =
	"<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
	"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
	"'none'; style-src 'unsafe-inline'\">\n"
	"<meta name=\"viewport\" content=\"width=device-width\">\n"
	"<style>\n"
	":root { color-scheme: light dark; }\n"
	"body { font: 14px system-ui, sans-serif; margin: 2em auto; "
	"max-width: 70em; padding: 0 1em; }\n"
	"details, .none { padding: .3em 0; border-top: 1px solid #8884; }\n"
	"summary { cursor: pointer; overflow-wrap: anywhere; }\n"
	"meter { width: 9em; margin: 0 .8em; }\n"
	"li, p { overflow-wrap: anywhere; }\n"
	"</style>\n";

static void put_html(FILE *out, const char *text)
{
	char *clean = (char *)keep_text(text, SIZE_MAX);

	make_harmless(clean);
	for (; *clean; clean++)
		switch (*clean) {
		case '&': fputs("&amp;", out); break;
		case '<': fputs("&lt;", out); break;
		case '>': fputs("&gt;", out); break;
		default: putc(*clean, out);
		}
}

static size_t count_reached(const struct covered *all, size_t begin, size_t end)
{
	size_t i, count = 0;

	for (i = begin; i < end; i++)
		count += all[i].count != 0;
	return count;
}

/* Lines that follow each other in the table are one range. */
static void put_lines(FILE *out, const struct coverage *coverage, size_t begin,
		      size_t end)
{
	const struct covered *lines = coverage->lines;
	const char *comma = "";
	size_t i, last;

	if (count_reached(lines, begin, end) == end - begin)
		return;
	fputs("<p>lines not reached: ", out);
	for (i = begin; i < end; i = last + 1) {
		last = i;
		if (lines[i].count)
			continue;
		while (last + 1 < end && !lines[last + 1].count)
			last++;
		fprintf(out, "%s%" PRIu32, comma, lines[i].line);
		if (last > i)
			fprintf(out, "\342\200\223%" PRIu32, lines[last].line);
		comma = ", ";
	}
	fputs("</p>\n", out);
}

static void put_functions(FILE *out, const struct coverage *coverage,
			  size_t begin, size_t end,
			  const struct options *options)
{
	size_t i;

	if (count_reached(coverage->functions, begin, end) == end - begin)
		return;
	fputs("<p>functions not reached:</p><ul>\n", out);
	for (i = begin; i < end; i++) {
		const struct covered *function = &coverage->functions[i];

		if (function->count)
			continue;
		fputs("<li>", out);
		put_html(out, shown_linker_name(
				      coverage->names.text[function->function],
				      options));
		fprintf(out, ", line %" PRIu32 "</li>\n", function->line);
	}
	fputs("</ul>\n", out);
}

static void put_file(FILE *out, const struct coverage *coverage,
		     const size_t lines[2], const size_t functions[2],
		     const struct options *options)
{
	const char *file = coverage->files.text[coverage->lines[lines[0]].file];
	size_t all = lines[1] - lines[0];
	size_t reached = count_reached(coverage->lines, lines[0], lines[1]);

	fprintf(out,
		"<details><summary><meter max=\"%zu\" value=\"%zu\" "
		"aria-label=\"lines reached\"></meter>%.1f %%, %zu of %zu "
		"lines, %zu of %zu functions: ",
		all, reached, 100.0 * (double)reached / (double)all, reached,
		all,
		count_reached(coverage->functions, functions[0], functions[1]),
		functions[1] - functions[0]);
	put_html(out, file);
	fputs("</summary>\n", out);
	put_functions(out, coverage, functions[0], functions[1], options);
	put_lines(out, coverage, lines[0], lines[1]);
	if (reached == all)
		fputs("<p>all lines reached</p>\n", out);
	fputs("</details>\n", out);
}

/* What the head says, of the files that are not the system's. */
struct sums {
	size_t lines, reached_lines, functions, reached_functions, system;
};

/* Prints the files if @out is not NULL. */
static struct sums put_files(FILE *out, const struct coverage *coverage,
			     const struct options *options)
{
	struct sums sums = { 0 };
	size_t lines[2], functions[2] = { 0, 0 };

	for (lines[0] = 0; lines[0] < coverage->line_count;
	     lines[0] = lines[1]) {
		uint32_t file = coverage->lines[lines[0]].file;

		lines[1] = coverage_file_end(coverage->lines,
					     coverage->line_count, lines[0]);
		while (functions[0] < coverage->function_count &&
		       coverage->functions[functions[0]].file < file)
			functions[0]++;
		functions[1] = functions[0];
		while (functions[1] < coverage->function_count &&
		       coverage->functions[functions[1]].file == file)
			functions[1]++;
		if (coverage_is_system(coverage->files.text[file])) {
			sums.system++;
		} else {
			sums.lines += lines[1] - lines[0];
			sums.reached_lines += count_reached(coverage->lines,
							    lines[0], lines[1]);
			sums.functions += functions[1] - functions[0];
			sums.reached_functions += count_reached(
				coverage->functions, functions[0],
				functions[1]);
			if (out)
				put_file(out, coverage, lines, functions,
					 options);
		}
		functions[0] = functions[1];
	}
	return sums;
}

void coverage_page_print(FILE *out, const char *title,
			 const struct coverage *coverage,
			 const struct options *options)
{
	struct sums sums = put_files(NULL, coverage, options);

	fputs(head, out);
	fputs("<title>", out);
	put_html(out, title);
	fputs("</title></head><body><main>\n<h1>", out);
	put_html(out, title);
	fprintf(out,
		"</h1>\n<p>reached: %zu of %zu lines, %zu of %zu functions</p>\n",
		sums.reached_lines, sums.lines, sums.reached_functions,
		sums.functions);
	if (sums.system)
		fprintf(out,
			"<p>not counted here: %zu file%s of /usr/include and "
			"/usr/lib</p>\n",
			sums.system, sums.system == 1 ? "" : "s");
	if (!coverage->line_count)
		fputs("<p class=\"none\">No line is known: the program has no "
		      "debug information (-g), see profrun report.</p>\n",
		      out);
	put_files(out, coverage, options);
	fputs("</main></body></html>\n", out);
}
