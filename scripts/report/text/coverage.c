/* Prints the table of coverage: the lines and functions of each source file. */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <shim/format.h>

#include "base/text.h"
#include "model/coverage.h"
#include "model/options.h"
#include "text/coverage.h"
#include "text/layout.h"
#include "text/table.h"

struct sum {
	uint64_t reached, all;
};

static struct sum count_reached(const struct covered *all, size_t begin,
				size_t end)
{
	struct sum sum = { 0, end - begin };

	for (size_t i = begin; i < end; i++)
		sum.reached += all[i].count != 0;
	return sum;
}

static void add_sum(struct sum *to, struct sum sum)
{
	to->reached += sum.reached;
	to->all += sum.all;
}

/* Rounds down, so that only full coverage is 100 %. */
static double percent(struct sum sum)
{
	double part = sum.all ? 100.0 * (double)sum.reached / (double)sum.all :
				0;

	return part > 99.9 && sum.reached < sum.all ? 99.9 : part;
}

static void put_sum(struct table *table, struct sum sum)
{
	char text[64] = "     -";

	if (sum.all)
		snprintf(text, sizeof(text), "%5.1f%%  %" PRIu64 "/%" PRIu64,
			 percent(sum), sum.reached, sum.all);
	table_cell(table, text);
}

struct listing {
	struct table table;
	const struct coverage *coverage;
	uint64_t limit; /* remaining rows */
	struct sum lines, functions;
	uint32_t system, left_out;
	bool is_printing;
};

static void put_file(struct listing *listing, uint32_t file, struct sum lines,
		     struct sum functions)
{
	add_sum(&listing->lines, lines);
	add_sum(&listing->functions, functions);
	if (!listing->is_printing)
		return;
	if (listing->limit == 0) {
		listing->left_out++;
		return;
	}
	listing->limit--;
	put_sum(&listing->table, lines);
	put_sum(&listing->table, functions);
	table_rest(&listing->table, 0);
	put_text(listing->table.layout->out,
		 listing->coverage->files.text[file]);
	table_end_row(&listing->table);
}

static void each_file(struct listing *listing)
{
	const struct coverage *coverage = listing->coverage;
	size_t at, end, from = 0, to;

	listing->lines = listing->functions = (struct sum){ 0, 0 };
	listing->system = 0;
	for (at = 0; at < coverage->line_count; at = end) {
		uint32_t file = coverage->lines[at].file;

		end = coverage_file_end(coverage->lines, coverage->line_count,
					at);
		while (from < coverage->function_count &&
		       coverage->functions[from].file < file)
			from++;
		to = from;
		while (to < coverage->function_count &&
		       coverage->functions[to].file == file)
			to++;
		if (coverage_is_system(coverage->files.text[file]))
			listing->system++;
		else
			put_file(listing, file,
				 count_reached(coverage->lines, at, end),
				 count_reached(coverage->functions, from, to));
		from = to;
	}
}

static void put_objects(FILE *out, const struct coverage *coverage)
{
	static const char *const reasons[] = {
		[SHIM_COVERAGE_LINES] = "",
		[SHIM_COVERAGE_NO_LINES] =
			": no line table (compile with -g; do not strip)",
		[SHIM_COVERAGE_UNWRITABLE] = ": its code cannot be changed",
		[SHIM_COVERAGE_UNSUPPORTED] = ": no lines on this processor",
	};
	uint32_t i;

	for (i = 0; i < coverage->object_count; i++) {
		const struct uncovered *object = &coverage->objects[i];

		/* Libraries of the system usually have no lines: no remark. */
		if (object->state == SHIM_COVERAGE_LINES ||
		    object->state >= sizeof(reasons) / sizeof(*reasons) ||
		    (!object->functions && coverage_is_system(object->path)))
			continue;
		put_text(out, object->path);
		fputs(reasons[object->state], out);
		if (object->functions)
			fprintf(out, "; %u function%s of it %s reached",
				object->functions,
				object->functions == 1 ? "" : "s",
				object->functions == 1 ? "was" : "were");
		fputc('\n', out);
	}
}

static void put_reached(FILE *out, const struct listing *listing)
{
	if (listing->lines.all == 0) {
		fputs("reached: unknown, since no line of the program is "
		      "known\n",
		      out);
		return;
	}
	fprintf(out,
		"reached: %" PRIu64 " of %" PRIu64 " lines (%.1f%%), %" PRIu64
		" of %" PRIu64 " functions (%.1f%%)\n",
		listing->lines.reached, listing->lines.all,
		percent(listing->lines), listing->functions.reached,
		listing->functions.all, percent(listing->functions));
}

void coverage_print(FILE *out, const struct coverage *coverage,
		    const struct options *options)
{
	static const struct column columns[] = { { "lines", -22 },
						 { "functions", -21 },
						 { "file", 0 } };
	const struct layout layout = layout_on(out, options, NULL);
	struct listing listing = { .table = table_begin(&layout, columns),
				   .coverage = coverage };

	each_file(&listing);
	put_reached(out, &listing);
	if (listing.system)
		fprintf(out,
			"not counted here: %u file%s of /usr/include and "
			"/usr/lib\n",
			listing.system, listing.system == 1 ? "" : "s");
	if (coverage->dropped)
		fprintf(out,
			"not looked at: %" PRIu64 " places of lines that "
			"the line tables contradict each other about, or "
			"where shim changes the code\n",
			coverage->dropped);
	put_objects(out, coverage);
	if (listing.lines.all == 0)
		return;
	if (coverage->is_counted)
		fprintf(out,
			"counted: where the program was compiled for it\n");
	fputc('\n', out);
	table_titles(&listing.table, NULL);
	listing.is_printing = true;
	listing.limit = options->limit < 0  ? 30 :
			options->limit == 0 ? UINT64_MAX :
					      (uint64_t)options->limit;
	each_file(&listing);
	if (listing.left_out)
		fprintf(out, "... %u more (--limit 0 shows all)\n",
			listing.left_out);
}
