/*
 * Exports coverage as Cobertura's XML (coverage-04.dtd): a package for each
 * directory, a class for each file.  Branches are unknown: the output counts 0
 * of 0.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <shim/format.h>

#include "base/memory.h"
#include "base/text.h"
#include "export/format.h"
#include "model/coverage.h"
#include "model/functions.h"
#include "model/options.h"

/* Prints an attribute; a character that XML does not allow becomes '?'. */
static void put_xml(FILE *out, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '&': fputs("&amp;", out); break;
		case '<': fputs("&lt;", out); break;
		case '>': fputs("&gt;", out); break;
		case '"': fputs("&quot;", out); break;
		default: fputc((unsigned char)*text < 0x20 ? '?' : *text, out);
		}
	}
}

/* Paths and names may be any bytes; XML must be UTF-8. */
static void put_clean(FILE *out, const char *text)
{
	char *clean = (char *)keep_text(text, SIZE_MAX);

	make_harmless(clean);
	put_xml(out, clean);
}

struct rates {
	uint64_t reached, all;
};

static struct rates rates_of(const struct covered *all, size_t count)
{
	struct rates rates = { 0, count };

	for (size_t i = 0; i < count; i++)
		rates.reached += all[i].count != 0;
	return rates;
}

static void put_rates(FILE *out, struct rates rates)
{
	fprintf(out, " line-rate=\"%.4f\" branch-rate=\"0\"",
		rates.all ? (double)rates.reached / (double)rates.all : 0);
}

static void put_line(FILE *out, const struct covered *line)
{
	fprintf(out,
		"            <line number=\"%u\" hits=\"%" PRIu64
		"\" branch=\"false\"/>\n",
		line->line, line->count);
}

/* The length of a path's directory: up to its last slash. */
static size_t directory_length(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (size_t)(slash - path) : 0;
}

static bool is_same_directory(const char *a, const char *b)
{
	size_t length = directory_length(a);

	return length == directory_length(b) && !memcmp(a, b, length);
}

static void put_methods(FILE *out, const struct coverage *coverage,
			const struct covered *all, size_t count,
			const struct options *options)
{
	fputs("          <methods>\n", out);
	for (size_t i = 0; i < count; i++) {
		const char *name = coverage->names.text[all[i].function];

		fputs("            <method name=\"", out);
		put_clean(out, shown_linker_name(name, options));
		fputs("\" signature=\"\"", out);
		put_rates(out, rates_of(&all[i], 1));
		fputs("><lines>\n", out);
		put_line(out, &all[i]);
		fputs("            </lines></method>\n", out);
	}
	fputs("          </methods>\n", out);
}

struct file {
	const char *path;
	const struct covered *lines, *functions;
	size_t line_count, function_count;
};

static void put_class(FILE *out, const struct coverage *coverage,
		      const struct file *file, const struct options *options)
{
	fputs("        <class name=\"", out);
	put_clean(out, base_name(file->path));
	fputs("\" filename=\"", out);
	put_clean(out, file->path[0] == '/' ? file->path + 1 : file->path);
	fputc('"', out);
	put_rates(out, rates_of(file->lines, file->line_count));
	fputs(" complexity=\"0\">\n", out);
	put_methods(out, coverage, file->functions, file->function_count,
		    options);
	fputs("          <lines>\n", out);
	for (size_t i = 0; i < file->line_count; i++)
		put_line(out, &file->lines[i]);
	fputs("          </lines>\n        </class>\n", out);
}

static struct file *list_files(const struct coverage *coverage, size_t *count)
{
	const struct covered *functions = coverage->functions;
	size_t at, end, from = 0, to, room = 0;
	struct file *files = NULL;

	*count = 0;
	for (at = 0; at < coverage->line_count; at = end) {
		uint32_t number = coverage->lines[at].file;

		end = coverage_file_end(coverage->lines, coverage->line_count,
					at);
		while (from < coverage->function_count &&
		       functions[from].file < number)
			from++;
		to = from;
		while (to < coverage->function_count &&
		       functions[to].file == number)
			to++;
		GROW(files, *count, room);
		files[(*count)++] = (struct file){
			.path = coverage->files.text[number],
			.lines = &coverage->lines[at],
			.line_count = end - at,
			.functions = functions + from,
			.function_count = to - from,
		};
		from = to;
	}
	return files;
}

/* Files of a subdirectory may stand between files of one directory. */
static void put_package(FILE *out, const struct coverage *coverage,
			struct file *files, size_t count, size_t first,
			const struct options *options)
{
	const char *path = files[first].path;
	struct rates rates = { 0, 0 };
	size_t i;

	for (i = first; i < count; i++)
		if (files[i].path && is_same_directory(files[i].path, path)) {
			struct rates own = rates_of(files[i].lines,
						    files[i].line_count);

			rates.reached += own.reached;
			rates.all += own.all;
		}
	fputs("    <package name=\"", out);
	put_clean(out, keep_text(path, directory_length(path)));
	fputc('"', out);
	put_rates(out, rates);
	fputs(" complexity=\"0\">\n      <classes>\n", out);
	for (i = first; i < count; i++)
		if (files[i].path && is_same_directory(files[i].path, path)) {
			put_class(out, coverage, &files[i], options);
			if (i != first)
				files[i].path = NULL;
		}
	files[first].path = NULL;
	fputs("      </classes>\n    </package>\n", out);
}

static void cobertura_print(FILE *out, const struct coverage *coverage,
			    const struct options *options)
{
	struct rates all = rates_of(coverage->lines, coverage->line_count);
	size_t count, i;
	struct file *files = list_files(coverage, &count);

	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
	      "<!DOCTYPE coverage SYSTEM "
	      "\"http://cobertura.sourceforge.net/xml/coverage-04.dtd\">\n"
	      "<coverage",
	      out);
	put_rates(out, all);
	fprintf(out,
		" lines-covered=\"%" PRIu64 "\" lines-valid=\"%" PRIu64
		"\" branches-covered=\"0\" branches-valid=\"0\" "
		"complexity=\"0\" version=\"shim " SHIM_VERSION
		"\" timestamp=\"%lld\">\n",
		all.reached, all.all, (long long)time(NULL));
	fputs("  <sources>\n    <source>/</source>\n  </sources>\n"
	      "  <packages>\n",
	      out);
	for (i = 0; i < count; i++)
		if (files[i].path)
			put_package(out, coverage, files, count, i, options);
	fputs("  </packages>\n</coverage>\n", out);
}

EXPORT_FORMAT(cobertura) = {
	.name = "cobertura",
	.extension = "xml",
	.description = "the same as XML, as Cobertura has it",
	.has_no_threads = true,
	.print_coverage = cobertura_print,
};
