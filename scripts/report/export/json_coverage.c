/* Prints coverage as JSON: the table of profrun report. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/json.h"
#include "export/json_coverage.h"
#include "model/coverage.h"

struct sum {
	uint64_t all, reached;
};

/* The rows of @all from @at to @end, added to @sum, unless it is NULL. */
static struct sum count(const struct covered *all, size_t at, size_t end,
			struct sum *sum)
{
	struct sum own = { end - at, 0 };

	for (; at < end; at++)
		own.reached += all[at].count != 0;
	if (sum) {
		sum->all += own.all;
		sum->reached += own.reached;
	}
	return own;
}

static void put_sums(struct json *json, struct sum lines, struct sum functions)
{
	json_key_count(json, "lines", lines.all);
	json_key_count(json, "lines_reached", lines.reached);
	json_key_count(json, "functions", functions.all);
	json_key_count(json, "functions_reached", functions.reached);
}

void coverage_json(FILE *out, const struct coverage *coverage)
{
	struct json json = json_begin(out);
	struct sum lines = { 0, 0 }, functions = { 0, 0 };
	size_t at, end, from = 0, to;

	json_object(&json);
	json_key_array(&json, "files");
	for (at = 0; at < coverage->line_count; at = end, from = to) {
		uint32_t file = coverage->lines[at].file;
		bool is_system = coverage_is_system(coverage->files.text[file]);

		end = coverage_file_end(coverage->lines, coverage->line_count,
					at);
		while (from < coverage->function_count &&
		       coverage->functions[from].file < file)
			from++;
		for (to = from; to < coverage->function_count &&
				coverage->functions[to].file == file;)
			to++;
		json_line(&json, 1);
		json_object(&json);
		json_key_text(&json, "file", coverage->files.text[file]);
		put_sums(&json,
			 count(coverage->lines, at, end,
			       is_system ? NULL : &lines),
			 count(coverage->functions, from, to,
			       is_system ? NULL : &functions));
		json_key_flag(&json, "system", is_system);
		json_close_object(&json);
	}
	json_close_array(&json);
	put_sums(&json, lines, functions);
	json_close_object(&json);
	json_end(&json);
}
