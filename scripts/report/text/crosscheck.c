/*
 * Compares calls with samples of the same run.  A sample counts for the
 * innermost function on its stack that has hooks, like the time of a call.  A
 * sample in libshim.so itself is our own cost: hooks, and the start of a
 * process.
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <shim/format.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/names.h"
#include "base/numbers.h"
#include "base/text.h"
#include "model/model.h"
#include "text/crosscheck.h"
#include "text/layout.h"
#include "text/table.h"

/* standard errors: a smaller difference counts as agreement */
#define ERRORS	      3
#define LEAST_PERCENT 0.5
#define ROWS	      20

struct check {
	const struct model *calls;
	struct model *samples;
	/* by sampled function: its innermost function with hooks, or NONE */
	uint32_t *hooked;
	double *found; /* by function: samples */
	double all, ours, nobody;
};

/* What mcount does, it does without shim, too. */
static bool is_ours(const struct function *function)
{
	return function->object &&
	       !strncmp(base_name(function->object->path), "libshim.so", 10) &&
	       strcmp(function->mangled, "mcount") &&
	       strcmp(function->mangled, "_mcount") &&
	       strcmp(function->mangled, "__fentry__");
}

static bool has_calls(const struct check *check, uint32_t function)
{
	const struct sums *sums = &check->calls->functions[function].sums;

	return sums->calls || sums->open;
}

/* A key such as "3/parse": a function of the third object. */
static const char *key_of(const struct function *function, size_t length)
{
	return keep_format("%u/%s", function->object_number,
			   keep_text(function->mangled, length));
}

/* Code that the compiler split off belongs to the whole function: f.cold to
 * f. */
static uint32_t find_whole(const struct names *names, const uint32_t *first,
			   const struct function *part)
{
	const char *cut = strstr(part->mangled, ".cold");
	uint32_t number =
		cut ? names_find(names,
				 key_of(part, (size_t)(cut - part->mangled))) :
		      NONE;

	return number == NONE ? NONE : first[number];
}

static void find_hooked(struct check *check)
{
	uint32_t count = check->calls->function_count, i;
	uint32_t *first = allocate(count, sizeof(*first));
	struct names names = { 0 };

	for (i = 0; i < count; i++) {
		uint32_t before = names.count;
		const struct function *function = &check->calls->functions[i];

		if (names_add(&names, key_of(function, SIZE_MAX)) == before)
			first[before] = i;
	}
	for (i = 0; i < check->samples->function_count; i++) {
		uint32_t function = i;

		if (!has_calls(check, i))
			function = find_whole(&names, first,
					      &check->samples->functions[i]);
		check->hooked[i] = function != NONE &&
						   has_calls(check, function) ?
					   function :
					   NONE;
	}
	names_free(&names);
	free(first);
}

static void add_path(struct check *check, const struct path *path)
{
	const struct model *samples = check->samples;
	double weight = (double)path->own;

	if (weight <= 0 || path->function == NONE)
		return;
	if (is_ours(&samples->functions[path->function])) {
		check->ours += weight;
		return;
	}
	while (path->function != NONE && check->hooked[path->function] == NONE)
		path = &samples->paths[path->parent];
	if (path->function == NONE) {
		check->nobody += weight;
		return;
	}
	check->found[check->hooked[path->function]] += weight;
	check->all += weight;
}

struct row {
	uint32_t function;
	double by_calls, by_samples, error; /* percent */
};

static int compare_rows(const void *left, const void *right)
{
	double a = fabs(((const struct row *)left)->by_calls -
			((const struct row *)left)->by_samples);
	double b = fabs(((const struct row *)right)->by_calls -
			((const struct row *)right)->by_samples);

	return a < b ? 1 : a > b ? -1 : 0;
}

/* The error of a share, if both are counts. */
static struct row compare_function(const struct check *check, uint32_t number)
{
	const struct sums *sums = &check->calls->functions[number].sums;
	double time = check->calls->time, found = check->found[number];
	double part = check->all > 0 ? found / check->all : 0;
	double variance = check->all > 0 ?
				  fmax(part * (1 - part), 1 / check->all) /
					  check->all :
				  1;

	return (struct row){
		.function = number,
		.by_calls = time > 0 ? 100 * sums->self / time : 0,
		.by_samples = 100 * part,
		.error = 100 *
			 sqrt(variance +
			      (time > 0 ? sums->self_variance / (time * time) :
					  0)),
	};
}

static const char *percent_text(char text[SHORT_TEXT], double percent,
				const char *sign)
{
	snprintf(text, SHORT_TEXT, "%.2f%s", percent, sign);
	return text;
}

static void print_rows(const struct layout *layout, const struct row *rows,
		       uint32_t count)
{
	static const struct column columns[] = { { "by calls", 9 },
						 { "by samples", 10 },
						 { "\u00b1", 7 },
						 { "function", 0 } };
	struct table table = table_begin(layout, columns);
	char text[SHORT_TEXT];
	uint32_t i;

	table_titles(&table, NULL);
	for (i = 0; i < count && i < ROWS; i++) {
		table_cell(&table, percent_text(text, rows[i].by_calls, "%"));
		table_cell(&table, percent_text(text, rows[i].by_samples, "%"));
		table_cell(&table, percent_text(text, rows[i].error, ""));
		table_name(&table, &layout->model->functions[rows[i].function]);
	}
	if (count > ROWS)
		fprintf(layout->out, "  and %u more\n", count - ROWS);
}

static void print_summary(const struct layout *layout,
			  const struct check *check)
{
	double all = check->all + check->ours + check->nobody;
	char text[SHORT_TEXT];

	fprintf(layout->out,
		"\nagainst %s samples: shim itself took %.1f %% of "
		"the run",
		human_count(text, check->samples->calls),
		100 * check->ours / all);
	if (check->nobody > 0)
		fprintf(layout->out, ", code outside of all calls %.1f %%",
			100 * check->nobody / all);
	fputc('\n', layout->out);
	if (check->samples->sample_mode != SHIM_SAMPLED_REAL)
		fputs("  calls are measured in time, these samples in processor "
		      "time: who waits has more of the former\n",
		      layout->out);
}

static void compare(const struct layout *layout, struct check *check)
{
	struct row *rows = allocate(check->calls->function_count,
				    sizeof(*rows)),
		   row;
	uint32_t i, count = 0;

	for (i = 0; i < check->calls->function_count; i++) {
		double difference;

		if (!has_calls(check, i))
			continue;
		row = compare_function(check, i);
		difference = fabs(row.by_calls - row.by_samples);
		if (difference > LEAST_PERCENT &&
		    difference > ERRORS * row.error)
			rows[count++] = row;
	}
	qsort(rows, count, sizeof(*rows), compare_rows);
	if (count == 0) {
		fputs("  self times agree within their errors\n", layout->out);
	} else {
		fprintf(layout->out,
			"  self times of %u function%s differ by "
			"more than their errors (in samples, inlined functions "
			"count for their caller):\n",
			count, count == 1 ? "" : "s");
		print_rows(layout, rows, count);
	}
	free(rows);
}

/* Samples without callers tell neither whose call they were in nor which were our own cost. */
static bool have_callers(const struct recording *recording)
{
	uint32_t i, n;

	for (i = 0; i < recording->process_count; i++)
		for (n = 0; n < recording->processes[i].file_count; n++)
			if (recording->processes[i].files[n].is_flat)
				return false;
	return true;
}

void crosscheck_print(const struct layout *layout, struct model *samples)
{
	struct check check = { .calls = layout->model, .samples = samples };
	uint32_t i;

	if (!have_callers(samples->recording))
		return;
	check.hooked = allocate(samples->function_count, sizeof(uint32_t));
	check.found = allocate(samples->function_count, sizeof(double));
	find_hooked(&check);
	for (i = 0; i < samples->path_count; i++)
		add_path(&check, &samples->paths[i]);
	if (check.all + check.ours + check.nobody > 0) {
		print_summary(layout, &check);
		if (layout->model->has_times && check.all > 0)
			compare(layout, &check);
	}
	free(check.hooked);
	free(check.found);
}
