/*
 * Writes the numbers of the page of profrun html: for each model its functions,
 * and for each view (all threads, or one) the call paths and the sums of
 * functions.
 */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <shim/format.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/names.h"
#include "base/numbers.h"
#include "model/bounds.h"
#include "model/estimates.h"
#include "model/functions.h"
#include "model/histograms.h"
#include "model/locks.h"
#include "model/memory.h"
#include "model/model.h"
#include "model/options.h"
#include "model/totals.h"
#include "page/columns.h"
#include "page/html_numbers.h"

/* --- choice of paths --- */

static int compare_doubles(const void *left, const void *right)
{
	const double *a = left, *b = right;

	return *a > *b ? -1 : *a < *b;
}

/* Weighs each path by its time or calls, including the paths below it; no path
 * weighs more than its parent. */
static double *weigh_paths(const struct model *model)
{
	double *weights = allocate(model->path_count, sizeof(*weights));
	const struct path *path;
	uint32_t i;

	for (i = model->path_count - 1; i > 0; i--) {
		path = &model->paths[i];
		if (model->has_times) {
			weights[i] = fmax(fmax(path->total, weights[i]), 0);
			weights[path->parent] = fmax(weights[path->parent],
						     weights[i]);
			continue;
		}
		weights[i] += (double)path->calls + path->open + path->older;
		if (model->has_memory)
			weights[i] += (double)model->memory[i].allocations;
		weights[path->parent] += weights[i];
	}
	return weights;
}

/*
 * If there are very many paths, keeps the heaviest; the page tells how many are
 * left out.  The sums of functions include all paths.
 */
static void choose_paths(struct source *source, uint32_t most)
{
	struct model *model = source->model;
	size_t size = model->path_count * sizeof(double);
	double *sorted;

	source->weights = weigh_paths(model);
	source->least = -1;
	if (model->path_count <= most)
		return;
	sorted = allocate(model->path_count, sizeof(*sorted));
	memcpy(sorted, source->weights, size);
	qsort(sorted, model->path_count, sizeof(*sorted), compare_doubles);
	source->least = sorted[most];
	free(sorted);
}

struct walking {
	struct source *source;
	uint32_t *order;
	uint32_t *up; /* distance from the previous path to the parent */
	uint32_t count, depth;
	uint32_t order_room, up_room;
};

static bool enter_path(void *context, uint32_t number, uint32_t depth)
{
	struct walking *walking = context;
	struct source *source = walking->source;

	if (depth == 0)
		return true;
	if (source->weights[number] <= source->least) {
		source->left_out++;
		return false;
	}
	GROW(walking->order, walking->count, walking->order_room);
	GROW(walking->up, walking->count, walking->up_room);
	walking->order[walking->count] = number;
	walking->up[walking->count++] = walking->depth + 1 - depth;
	walking->depth = depth;
	return true;
}

static void leave_path(void *context, uint32_t number, uint32_t depth)
{
	(void)context;
	(void)number;
	(void)depth;
}

/* --- columns --- */

#define COLUMN(columns, i, count, value) \
	for (i = 0; i < (count); i++) \
	columns_put(columns, value)

/* In the order of CERTAINTY in page/text.js. */
static uint64_t certainty_of(const struct count *count, bool is_counted)
{
	return !is_counted	  ? 3 :
	       count->is_least	  ? 2 :
	       count->is_estimate ? 1 :
				    0;
}

static uint64_t path_certainty(const struct path *path)
{
	struct count count = count_of_path(path);

	return certainty_of(&count, path_is_counted(path));
}

static uint64_t sums_certainty(const struct sums *sums)
{
	struct count count = count_of_sums(sums);

	return certainty_of(&count, sums_are_counted(sums));
}

static uint64_t error_of(double variance)
{
	return whole(sqrt(fmax(variance, 0)));
}

static int64_t rounded(double value)
{
	return fabs(value) < 9e15 ? llround(value) :
	       value < 0	  ? -9000000000000000 :
				    9000000000000000;
}

/* 0: unknown. */
static uint64_t known(double value, bool is_known)
{
	return is_known ? whole(value) + 1 : 0;
}

/* The bound of a duration, or 0. */
static uint64_t below(double ns, double most, bool is_known)
{
	return is_known ? whole(duration_bound(ns, most)) : 0;
}

static bool has_path_range(const struct path *path)
{
	return !path->has_no_range && path->max >= path->min;
}

/* In the order of MEMORY in page/profile.js. */
static const enum value memory_values[] = { VALUE_BYTES, VALUE_ALLOCATIONS,
					    VALUE_PEAK, VALUE_LEAKED,
					    VALUE_LOST };
#define MEMORY_VALUES (sizeof(memory_values) / sizeof(*memory_values))

static void put_path_memory(struct columns *columns, const struct model *model,
			    const uint32_t *order, uint32_t count)
{
	uint32_t i, n;

	for (n = 0; n < MEMORY_VALUES; n++)
		COLUMN(columns, i, count,
		       memory_value(&model->memory[order[i]],
				    memory_values[n]));
}

static void put_paths(struct source *source, const struct walking *walking)
{
	struct columns *columns = &source->columns;
	const struct model *model = source->model;
	const uint32_t *order = walking->order;
	const struct path *paths = model->paths;
	uint32_t i, count = walking->count;

	COLUMN(columns, i, count, walking->up[i]);
	COLUMN(columns, i, count, source->places[paths[order[i]].function]);
	COLUMN(columns, i, count, paths[order[i]].calls);
	COLUMN(columns, i, count, paths[order[i]].open);
	COLUMN(columns, i, count, paths[order[i]].older);
	COLUMN(columns, i, count, paths[order[i]].untimed);
	if (model->budget)
		COLUMN(columns, i, count, path_certainty(&paths[order[i]]));
	if (model->is_sampled)
		COLUMN(columns, i, count, paths[order[i]].own);
	if (model->is_sampled && model->guessed)
		COLUMN(columns, i, count, paths[order[i]].guessed);
	if (model->has_times) {
		for (i = 0; i < count; i++)
			columns_put_signed(columns,
					   rounded(paths[order[i]].self));
		COLUMN(columns, i, count, whole(paths[order[i]].total));
		COLUMN(columns, i, count,
		       whole(path_self_bound(&paths[order[i]])));
		COLUMN(columns, i, count,
		       whole(path_total_bound(&paths[order[i]])));
	}
	if (model->has_errors) {
		COLUMN(columns, i, count,
		       error_of(paths[order[i]].self_variance));
		COLUMN(columns, i, count, error_of(paths[order[i]].variance));
	}
	if (model->has_ranges) {
		COLUMN(columns, i, count,
		       known(paths[order[i]].min,
			     has_path_range(&paths[order[i]])));
		COLUMN(columns, i, count,
		       known(paths[order[i]].max,
			     has_path_range(&paths[order[i]])));
		COLUMN(columns, i, count,
		       below(paths[order[i]].min, paths[order[i]].min_most,
			     has_path_range(&paths[order[i]])));
		COLUMN(columns, i, count,
		       below(paths[order[i]].max, paths[order[i]].max_most,
			     has_path_range(&paths[order[i]])));
	}
	if (model->has_memory)
		put_path_memory(columns, model, order, count);
	if (model->locks)
		COLUMN(columns, i, count, whole(locks_waited(model, order[i])));
}

/* @histogram: or NULL */
static void put_histogram(struct columns *columns, const uint64_t *histogram)
{
	uint32_t i, used = 0;

	for (i = 0; i < SHIM_BUCKETS && histogram; i++)
		used += histogram[i] > 0;
	columns_put(columns, used);
	for (i = 0; i < SHIM_BUCKETS && used; i++) {
		if (!histogram[i])
			continue;
		columns_put(columns, i);
		columns_put(columns, histogram[i]);
	}
}

/* The shortest and longest call of each function, and how long they all took.
 */
static void put_durations(struct source *source, const struct sums *sums,
			  const uint32_t *rows, uint32_t count, uint32_t thread)
{
	struct columns *columns = &source->columns;
	struct model *model = source->model;
	uint32_t i;

	COLUMN(columns, i, count,
	       known(sums[rows[i]].min, sums[rows[i]].has_range));
	COLUMN(columns, i, count,
	       known(sums[rows[i]].max, sums[rows[i]].has_range));
	COLUMN(columns, i, count,
	       below(sums[rows[i]].min, sums[rows[i]].min_most,
		     sums[rows[i]].has_range));
	COLUMN(columns, i, count,
	       below(sums[rows[i]].max, sums[rows[i]].max_most,
		     sums[rows[i]].has_range));
	for (i = 0; i < count; i++)
		put_histogram(
			columns,
			thread == NONE ?
				model->functions[rows[i]].histogram :
				histogram_of_thread(model, thread, rows[i]));
}

static void put_sums(struct source *source, const struct part_sums *part,
		     uint32_t thread)
{
	struct columns *columns = &source->columns;
	const struct sums *sums = part->sums;
	uint32_t *rows = allocate(part->count, sizeof(*rows));
	uint32_t i, count = 0;

	for (i = 0; i < part->count; i++) {
		const struct sums *some = &sums[part->functions[i]];

		if (sums_are_there(some))
			rows[count++] = part->functions[i];
	}
	columns_put(columns, count);
	COLUMN(columns, i, count, source->places[rows[i]]);
	COLUMN(columns, i, count, sums[rows[i]].calls);
	COLUMN(columns, i, count, sums[rows[i]].open);
	COLUMN(columns, i, count, sums[rows[i]].older);
	COLUMN(columns, i, count, sums[rows[i]].untimed);
	if (source->model->budget) {
		COLUMN(columns, i, count, sums_certainty(&sums[rows[i]]));
		COLUMN(columns, i, count,
		       whole(count_of_sums(&sums[rows[i]]).error));
	}
	COLUMN(columns, i, count, whole(sums[rows[i]].self));
	COLUMN(columns, i, count, whole(sums[rows[i]].total));
	COLUMN(columns, i, count, error_of(sums[rows[i]].self_variance));
	COLUMN(columns, i, count, error_of(sums[rows[i]].total_variance));
	COLUMN(columns, i, count,
	       whole(self_bound(&sums[rows[i]], source->model->time)));
	COLUMN(columns, i, count,
	       whole(total_bound(&sums[rows[i]], source->model->time)));
	if (source->model->has_waited) {
		COLUMN(columns, i, count,
		       known(sums[rows[i]].waited, sums[rows[i]].has_waited));
		COLUMN(columns, i, count, whole(waited_bound(&sums[rows[i]])));
	}
	if (source->model->has_ranges)
		put_durations(source, sums, rows, count, thread);
	free(rows);
}

static void add_view(struct source *source, struct part_sums *part,
		     uint32_t thread, uint32_t root)
{
	struct model *model = source->model;
	struct walking walking = { .source = source };
	struct walk walk = { enter_path, leave_path, &walking };
	size_t before = source->columns.size;
	struct view *view;

	model_walk(model, root, &walk);
	put_paths(source, &walking);
	part_sums_of(part, model, root);
	put_sums(source, part, thread);
	GROW(source->views, source->view_count, source->view_room);
	view = &source->views[source->view_count++];
	*view = (struct view){ thread, walking.count,
			       source->columns.size - before };
	free(walking.order);
	free(walking.up);
}

/* 0: no string */
static uint32_t string_of(struct html *html, const char *text)
{
	return text ? names_add(&html->strings, text) + 1 : 0;
}

static void put_function_memory(struct columns *columns,
				const struct memory *memory)
{
	uint32_t n;

	for (n = 0; n < MEMORY_VALUES; n++)
		columns_put(columns, memory_value(memory, memory_values[n]));
}

/* The short form of a name that does not fit; 0: none. */
static uint32_t short_name_of(struct html *html,
			      const struct function *function)
{
	return html->options->names == NAMES_MANGLED ||
			       !strcmp(function->short_name,
				       shown_name(function, html->options)) ?
		       0 :
		       string_of(html, function->short_name);
}

static void put_names(struct html *html, struct columns *columns,
		      struct function *function)
{
	function_line(function);
	columns_put(columns,
		    string_of(html, shown_name(function, html->options)));
	columns_put(columns, short_name_of(html, function));
	columns_put(columns,
		    string_of(html, function->object ? function->object->path :
				    function->is_python ?
						       object_name(function) :
						       NULL));
	columns_put(columns, string_of(html, function->file));
	columns_put(columns, function->file ? (uint64_t)function->line : 0);
}

static void put_function(struct html *html, struct source *source, uint32_t n)
{
	struct function *function = &source->model->functions[n];
	struct columns *columns = &source->columns;

	put_names(html, columns, function);
	if (!source->model->has_memory)
		return;
	put_function_memory(columns, &source->model->function_memory[n]);
	put_function_memory(columns, &source->model->function_memory_below[n]);
}

/* Writes the functions that are on a path. */
static void put_functions(struct html *html, struct source *source)
{
	struct model *model = source->model;
	uint32_t i;

	source->places = allocate(model->function_count, sizeof(uint32_t));
	for (i = 0; i < model->function_count; i++)
		source->places[i] = NONE;
	for (i = 0; i < model->path_count; i++) {
		uint32_t function = model->paths[i].function;

		if (function == NONE || source->places[function] != NONE)
			continue;
		source->places[function] = source->function_count++;
		put_function(html, source, function);
	}
	source->functions_size = source->columns.size;
}

void html_fill_source(struct html *html, struct source *source)
{
	struct model *model = source->model;
	struct part_sums part;
	uint32_t i;

	part_sums_begin(&part, model);
	choose_paths(source, html->options->max_paths);
	put_functions(html, source);
	if (!model->by_thread)
		add_view(source, &part, NONE, 0);
	for (i = 0; i < model->thread_count && model->by_thread; i++)
		if (model->threads[i].calls || model->threads[i].open ||
		    model->threads[i].older)
			add_view(source, &part, i, model->threads[i].path);
	part_sums_end(&part);
}

void html_name_timeline(struct html *html)
{
	struct model *model = &html->timeline->model;
	uint32_t i;

	columns_put(&html->timeline_functions, model->function_count);
	for (i = 0; i < model->function_count; i++)
		put_names(html, &html->timeline_functions,
			  &model->functions[i]);
}
