/*
 * Prints a function's source with the samples of each line: a head with the hottest
 * lines, then the lines of each file, from the declaration on, or around the lines that
 * have samples.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/messages.h"
#include "base/numbers.h"
#include "base/text.h"
#include "model/annotation.h"
#include "model/functions.h"
#include "model/hits.h"
#include "model/listing.h"
#include "model/model.h"
#include "model/options.h"
#include "names/source.h"
#include "names/symbols.h"
#include "text/annotate.h"
#include "text/annotate_code.h"
#include "text/layout.h"
#include "text/table.h"

#define HOTTEST 10
/* A share from which a line is hot, and from which it is warm. */
#define HOT  20.0
#define WARM 5.0

struct printing {
	const struct annotation *annotation;
	const struct annotated *annotated;
	struct layout layout;
};

static const struct column with_counts[] = {
	{ "share", 6 },	 { "samples", 8 }, { "self", 9 }, { "total", 9 },
	{ "count", 11 }, { "line", 6 },	   { NULL, 0 },
};
static const struct column columns[] = {
	{ "share", 6 }, { "samples", 8 }, { "self", 9 },
	{ "total", 9 }, { "line", 6 },	  { NULL, 0 },
};

static struct table begin_table(const struct printing *printing)
{
	return table_begin(&printing->layout, printing->annotation->coverage ?
						      with_counts :
						      columns);
}

static double share_of(const struct printing *printing, double self)
{
	double all = printing->annotated->hits.self;

	return all > 0 ? 100 * self / all : 0;
}

static const char *color_of(double share)
{
	return share >= HOT ? "\033[1;31m" : share >= WARM ? "\033[33m" : NULL;
}

static const char *time_of(const struct printing *printing,
			   char text[SHORT_TEXT], double samples)
{
	double period = printing->annotation->period_ns;

	return samples <= 0 ? "" :
	       period > 0   ? human_ns(text, samples * period) :
			      "-";
}

/* The cells of a line; @hit is NULL if it has no samples. */
static void put_cells(struct printing *printing, struct table *table,
		      const struct line_hit *hit, const char *file, int line)
{
	const struct annotation *annotation = printing->annotation;
	double self = hit ? hit->self : 0, share = share_of(printing, self);
	char text[SHORT_TEXT];
	uint64_t count;

	if (printing->layout.color && color_of(share))
		table_color(table, color_of(share));
	snprintf(text, sizeof(text), "%.2f", share);
	table_cell(table, self > 0 ? text : "");
	table_cell(table, self > 0 ? human_count(text, whole(self)) : "");
	table_cell(table, time_of(printing, text, self));
	table_cell(table, time_of(printing, text, hit ? hit->total : 0));
	if (annotation->coverage)
		table_cell(table,
			   annotation_count(annotation, file, line, &count) ?
				   human_count(text, count) :
				   "");
	snprintf(text, sizeof(text), "%d", line);
	table_cell(table, line > 0 ? text : "?");
	if (printing->layout.color && color_of(share))
		table_no_color(table);
}

static const struct source_file *find_source(const struct printing *printing,
					     const char *file)
{
	return file ? source_find(file, printing->annotation->places,
				  printing->annotated->function->object) :
		      NULL;
}

/* --- the head --- */

static void put_head(struct printing *printing)
{
	const struct annotation *annotation = printing->annotation;
	const struct hits *hits = &printing->annotated->hits;
	double period = annotation->period_ns, all = annotation->all;
	char text[SHORT_TEXT], other[SHORT_TEXT];
	FILE *out = printing->layout.out;

	fputs(printing->layout.color ? "\033[1m" : "", out);
	put_function_name(&printing->layout, printing->annotated->function,
			  SIZE_MAX);
	fputs(printing->layout.color ? "\033[m" : "", out);
	put_place(&printing->layout, printing->annotated->function);
	fprintf(out, "\n  %s of %s samples in the function itself (%.2f %%",
		human_count(text, whole(hits->self)),
		human_count(other, whole(all)),
		all > 0 ? 100 * hits->self / all : 0);
	if (period > 0)
		fprintf(out, ", %s", human_ns(text, hits->self * period));
	fprintf(out, "), %s with its callees (%.2f %%",
		human_count(text, whole(hits->total)),
		all > 0 ? 100 * hits->total / all : 0);
	if (period > 0)
		fprintf(out, ", %s", human_ns(text, hits->total * period));
	fputs(")\n", out);
}

static void put_hottest(struct printing *printing)
{
	const struct hits *hits = &printing->annotated->hits;
	struct table table = begin_table(printing);
	uint32_t i, rows, shown;

	for (rows = 0; rows < hits->line_count; rows++)
		if (hits->lines[rows].self <= 0)
			break;
	if (rows == 0 || (rows == 1 && !hits->lines[0].file))
		return;
	fputc('\n', printing->layout.out);
	shown = layout_rows(&printing->layout, HOTTEST, rows);
	table_titles(&table, "  hottest lines");
	for (i = 0; i < shown; i++) {
		const struct line_hit *hit = &hits->lines[i];
		const struct source_file *source = find_source(printing,
							       hit->file);
		const char *text = source ? source_line(source, hit->line) :
					    NULL;

		put_cells(printing, &table, hit, hit->file, hit->line);
		while (text && (*text == ' ' || *text == '\t'))
			text++;
		table_text(&table,
			   keep_format("%s: %s",
				       hit->file ? base_name(hit->file) :
						   "(no line is known)",
				       text ? listing_text(text) : ""));
	}
	layout_left_out(&printing->layout, shown, rows);
}

/* --- the source --- */

static void put_missing(FILE *out, const struct source_file *source)
{
	if (!source->sought) {
		fputs(": no source; the debug information has no full path: "
		      "--source-dir DIR tells where it is",
		      out);
		return;
	}
	fputs(": not found (sought: ", out);
	put_text(out, source->sought);
	fputs("); --source-dir tells where sources are", out);
}

static void put_file(struct printing *printing,
		     const struct source_file *source)
{
	FILE *out = printing->layout.out;

	fputc('\n', out);
	if (source->path) {
		put_text(out, source->path);
		if (source->is_newer)
			fputs(" (changed after the program was built: lines "
			      "may have moved)",
			      out);
	} else {
		put_text(out, source->name);
		put_missing(out, source);
	}
	fputc('\n', out);
}

static void put_listing(struct printing *printing,
			const struct listing *listing)
{
	struct listing_row row = listing_begin(listing);
	struct table table = begin_table(printing);

	put_file(printing, listing->source);
	table_titles(&table, NULL);
	while (listing_next(&row)) {
		if (row.is_after_gap)
			fputs("...\n", printing->layout.out);
		put_cells(printing, &table, row.hit, listing->file, row.line);
		table_text(&table, row.text ? listing_text(row.text) : "");
	}
}

/* Returns whether a line of the function is known. */
static bool put_lines(struct printing *printing)
{
	struct listing *listings;
	uint32_t i, count = listing_find(&listings, &printing->annotated->hits,
					 printing->annotated->function,
					 printing->annotation->places,
					 printing->layout.options->context);

	for (i = 0; i < count; i++)
		put_listing(printing, &listings[i]);
	listing_free(listings, count);
	return count > 0;
}

static void say_no_lines(const struct printing *printing)
{
	struct object *object = printing->annotated->function->object;
	FILE *out = printing->layout.out;

	fputs("\nno line is known: ", out);
	if (!object) {
		fputs("its code is in no file\n", out);
		return;
	}
	if (!object->files) {
		fputs("the file of its code cannot be read\n", out);
		return;
	}
	put_text(out, object->path);
	fputs(symbols_have_zstd(object) ?
		      " has debug information that zstd has compressed, which "
		      "this libdw cannot read (compile with -gz=zlib, or objcopy "
		      "--decompress-debug-sections)\n" :
	      !symbols_have_lines(object) ?
		      " has no debug information (compile with -g; do not "
		      "strip)\n" :
		      " has no debug information for it\n",
	      out);
}

static void put_function(struct printing *printing)
{
	put_head(printing);
	put_hottest(printing);
	if (printing->annotation->asks_code) {
		annotate_code_print(&printing->layout, printing->annotation,
				    printing->annotated);
	} else if (!put_lines(printing)) {
		say_no_lines(printing);
		annotate_code_print(&printing->layout, printing->annotation,
				    printing->annotated);
	}
}

void annotate_print(FILE *out, const struct annotation *annotation,
		    const struct options *options)
{
	struct printing printing = {
		.annotation = annotation,
		.layout = layout_on(out, options, annotation->model),
	};
	uint32_t i;

	for (i = 0; i < annotation->count; i++) {
		if (i)
			fputc('\n', out);
		printing.annotated = &annotation->functions[i];
		put_function(&printing);
	}
	if (annotation->left_out)
		fprintf(out, "\n... %u more functions match; %u are shown\n",
			annotation->left_out, annotation->count);
}
