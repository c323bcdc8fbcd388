/*
 * Prints the tree of call paths.  The calls below each path are sorted, and
 * small ones are summed up in one line, so that a tree of a million paths
 * prints the few hundred that matter.
 */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "base/text.h"
#include "model/bounds.h"
#include "model/estimates.h"
#include "model/memory.h"
#include "model/guesses.h"
#include "model/model.h"
#include "model/options.h"
#include "model/paths.h"
#include "model/totals.h"
#include "text/memory.h"
#include "text/numbers.h"
#include "text/layout.h"
#include "text/table.h"
#include "text/tree.h"

/* A path whose children are being printed: they are in order[next..end). */
struct level {
	uint32_t path;
	size_t begin, next, end;
	uint32_t hidden; /* number of children too small to print */
	double hidden_weight, hidden_most, hidden_tick; /* see bounds.h */
	struct count hidden_calls;
	bool hidden_is_counted;
};

struct printing {
	const struct layout *layout;
	struct table table;
	double *weights; /* by path: the sort key */
	double smallest;
	struct level *levels;
	uint32_t level_count, level_room;
	uint32_t *order;
	size_t order_count, order_room;
	struct count_column calls;
	uint64_t cut_paths; /* paths below --depth */
	bool *is_row;	    /* by path, with --limit; otherwise NULL */
	uint64_t left_out;  /* paths beyond --limit, or too small */
};

/* qsort() passes no context. */
static const double *weights_for_sort;

static int compare_weights(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	if (weights_for_sort[a] != weights_for_sort[b])
		return weights_for_sort[a] > weights_for_sort[b] ? -1 : 1;
	return a < b ? -1 : a > b;
}

/* Weighs paths by the memory that --sort asks for, including the paths
 * below. */
static double *weigh_memory(const struct model *model,
			    const struct options *options)
{
	double *weights = allocate(model->path_count, sizeof(*weights));
	uint32_t i;

	for (i = 0; i < model->path_count; i++)
		weights[i] = (double)memory_sorted(&model->memory_below[i],
						   options);
	return weights;
}

static void add_count(struct count *sum, const struct path *path)
{
	struct count count = count_of_path(path);

	sum->calls += count.calls;
	sum->error = hypot(sum->error, count.error);
	sum->is_estimate |= count.is_estimate;
	sum->is_least |= count.is_least;
}

/* Begins to print the children of @path. */
static void push_level(struct printing *printing, uint32_t path)
{
	const struct path *paths = printing->layout->model->paths;
	struct level level = { .path = path, .begin = printing->order_count };
	uint32_t child;

	for (child = paths[path].child; child != NONE;
	     child = paths[child].sibling) {
		if ((printing->is_row && !printing->is_row[child]) ||
		    printing->weights[child] < printing->smallest ||
		    (printing->layout->options->memory &&
		     printing->weights[child] == 0)) {
			level.hidden++;
			level.hidden_weight += fmax(printing->weights[child],
						    0);
			level.hidden_most += paths[child].total_most;
			level.hidden_tick = fmax(level.hidden_tick,
						 paths[child].self_tick);
			add_count(&level.hidden_calls, &paths[child]);
			level.hidden_is_counted |= path_is_counted(
				&paths[child]);
			continue;
		}
		GROW(printing->order, printing->order_count,
		     printing->order_room);
		printing->order[printing->order_count++] = child;
	}
	level.next = level.begin;
	level.end = printing->order_count;
	weights_for_sort = printing->weights;
	if (level.end > level.begin)
		qsort(printing->order + level.begin, level.end - level.begin,
		      sizeof(*printing->order), compare_weights);
	GROW(printing->levels, printing->level_count, printing->level_room);
	printing->levels[printing->level_count++] = level;
}

static const char *memory_text(char text[SHORT_TEXT],
			       const struct printing *printing, uint64_t number)
{
	return memory_sorts_bytes(printing->layout->options) ?
		       human_bytes(text, number) :
		       human_count(text, number);
}

/* The sorted value may have fewer blocks than were allocated. */
static uint64_t blocks_of(const struct memory *memory,
			  const struct options *options)
{
	switch (options->sort_given ? options->sort : SORT_BYTES) {
	case SORT_PEAK: return memory->peak_blocks;
	case SORT_LEAKED: return memory->live_blocks;
	case SORT_LOST: return memory->lost_blocks + memory->below_blocks;
	case SORT_TEMPORARY: return memory->temporary;
	default: return memory->allocations;
	}
}

static void print_memory(struct printing *printing, uint32_t number)
{
	const struct model *model = printing->layout->model;
	const struct options *options = printing->layout->options;
	const struct memory *memory = &model->memory[number];
	const struct memory *below = &model->memory_below[number];
	struct table *table = &printing->table;
	char text[SHORT_TEXT];

	table_cell(table,
		   memory_text(text, printing, memory_sorted(below, options)));
	table_cell(table,
		   memory_text(text, printing, memory_sorted(memory, options)));
	table_cell(table, human_count(text, blocks_of(memory, options)));
}

/* Prints the share of the whole. */
static void print_percent(struct printing *printing, double weight)
{
	double all = printing->weights[0];
	char text[SHORT_TEXT];

	snprintf(text, sizeof(text), "%.2f", all > 0 ? 100 * weight / all : 0);
	table_cell(&printing->table, text);
}

/* Prints memory that belongs to no path. */
static void print_outside(struct printing *printing)
{
	const struct layout *layout = printing->layout;
	const struct memory *memory = &layout->model->memory_outside;
	uint64_t number = memory_sorted(memory, layout->options);
	struct table *table = &printing->table;
	char text[SHORT_TEXT];

	if (number == 0 || (double)number < printing->smallest)
		return;
	print_percent(printing, (double)number);
	table_cell(table, memory_text(text, printing, number));
	table_cell(table, memory_text(text, printing, number));
	table_cell(table,
		   human_count(text, blocks_of(memory, layout->options)));
	table_text(table, MEMORY_OUTSIDE);
}

static void print_columns(struct printing *printing, uint32_t number)
{
	const struct model *model = printing->layout->model;
	struct table *table = &printing->table;
	const struct path *path = &model->paths[number];
	bool known = model->has_times &&
		     (path->function == NONE || path->is_timed);
	char text[SHORT_TEXT], calls[2 * COUNT_TEXT];
	struct count count = count_of_path(path);

	print_percent(printing, fmax(printing->weights[number], 0));
	if (printing->layout->options->memory) {
		print_memory(printing, number);
		return;
	}
	table_cell(table, bounded_text(text, path_total(path),
				       path_total_bound(path), known));
	table_cell(table, bounded_text(text, path_self(path),
				       path_self_bound(path), known));
	table_cell(table,
		   count_column_text(calls, &printing->calls,
				     path_is_counted(path) ? &count : NULL));
}

static size_t indent(const struct printing *printing)
{
	return 2 * (size_t)(printing->level_count - 1);
}

/* What is said of calls that were open before an attach, which no column counts, and of
 * samples whose caller is a guess. */
static const char *path_note(char note[GUESS_NOTE], const struct model *model,
			     const struct path *path)
{
	char count[SHORT_TEXT];

	guess_note(note, "caller ", path->guessed, path->calls,
		   model->guesses_are_most);
	if (path->older > 1 || (path->older && path->calls))
		snprintf(note, GUESS_NOTE, " (+%s open before)",
			 human_count(count, path->older));
	else if (path->older)
		strcpy(note, " (open before)");
	return note;
}

static void print_path(struct printing *printing, uint32_t number)
{
	const struct layout *layout = printing->layout;
	struct model *model = layout->model;
	const struct path *path = &model->paths[number];
	char note[GUESS_NOTE];

	print_columns(printing, number);
	if (path->function != NONE) {
		table_rest(&printing->table, indent(printing));
		table_noted_name(&printing->table,
				 &model->functions[path->function],
				 path_note(note, model, path));
		return;
	}
	table_rest(&printing->table, 0);
	fprintf(layout->out, "thread %u ", model->threads[path->thread].tid);
	put_text(layout->out, model->threads[path->thread].name);
	table_end_row(&printing->table);
}

static double hidden_bound(const struct model *model, const struct level *level)
{
	const struct path *caller = &model->paths[level->path];
	double above = caller->function == NONE ? model->time :
						  path_total(caller);

	return bound_of(level->hidden_weight, level->hidden_most,
			level->hidden_tick, above);
}

static void print_hidden(struct printing *printing, const struct level *level)
{
	const struct layout *layout = printing->layout;
	struct table *table = &printing->table;
	bool is_memory = layout->options->memory;
	char text[SHORT_TEXT], calls[2 * COUNT_TEXT];

	print_percent(printing, level->hidden_weight);
	table_cell(table,
		   is_memory ? memory_text(text, printing,
					   whole(level->hidden_weight)) :
			       bounded_text(text, level->hidden_weight,
					    hidden_bound(layout->model, level),
					    layout->model->has_times));
	table_cell(table, "");
	table_cell(table,
		   is_memory ? "" :
			       count_column_text(calls, &printing->calls,
						 level->hidden_is_counted ?
							 &level->hidden_calls :
							 NULL));
	table_rest(table, indent(printing));
	fprintf(layout->out, "(%u more)", level->hidden);
	table_end_row(table);
}

/* Prints the next child of the innermost level, or ends the level. */
static void print_next(struct printing *printing)
{
	struct level *level = &printing->levels[printing->level_count - 1];
	const struct path *paths = printing->layout->model->paths;
	uint32_t path;

	if (level->next == level->end) {
		if (level->hidden && !printing->is_row)
			print_hidden(printing, level);
		printing->order_count = level->begin;
		printing->level_count--;
		return;
	}
	path = printing->order[level->next++];
	print_path(printing, path);
	if (paths[path].child == NONE)
		return;
	if (printing->level_count < printing->layout->options->depth)
		push_level(printing, path);
	else
		printing->cut_paths++;
}

struct weighed {
	double weight;
	uint32_t path;
};

static int compare_weighed(const void *left, const void *right)
{
	const struct weighed *a = left, *b = right;

	if (a->weight != b->weight)
		return a->weight > b->weight ? -1 : 1;
	return a->path < b->path ? -1 : a->path > b->path;
}

/*
 * Chooses the @limit heaviest paths.  These are connected, because no path
 * weighs more than its caller, and callers have lower numbers.
 */
static void choose_rows(struct printing *printing, uint32_t limit)
{
	const struct model *model = printing->layout->model;
	struct weighed *order = allocate(model->path_count, sizeof(*order));
	uint32_t i, count = model->path_count - 1;

	printing->is_row = allocate(model->path_count, sizeof(bool));
	order[0].weight = INFINITY;
	for (i = 1; i < model->path_count; i++)
		order[i] = (struct weighed){
			.weight = fmin(printing->weights[i],
				       order[model->paths[i].parent].weight),
			.path = i,
		};
	if (count)
		qsort(order + 1, count, sizeof(*order), compare_weighed);
	for (i = 1; i <= limit && i <= count; i++)
		printing->is_row[order[i].path] = true;
	printing->left_out = count > limit ? count - limit : 0;
	free(order);
}

/* Finds the width of the calls; exact counts never need more. */
static void fit_calls(struct printing *printing)
{
	const struct model *model = printing->layout->model;
	uint32_t i;

	for (i = 1; i < model->path_count && model->budget; i++) {
		struct count count = count_of_path(&model->paths[i]);

		if (count.is_estimate)
			count_column_fit(&printing->calls, &count);
	}
}

/* What --min-percent is of: with --callers or --callees of the function's own weight, so
 * that a chosen function that is small has a tree, too. */
static double weight_of_all(const struct printing *printing)
{
	const struct options *options = printing->layout->options;
	const struct path *paths = printing->layout->model->paths;
	double sum = 0;
	uint32_t child;

	if (!options->callers && !options->callees)
		return printing->weights[0];
	for (child = paths[0].child; child != NONE;
	     child = paths[child].sibling)
		sum += fmax(printing->weights[child], 0);
	return sum;
}

void tree_print(const struct layout *layout)
{
	bool is_memory = layout->options->memory;
	struct printing printing = { .layout = layout,
				     .calls = { .width = 15 } };
	struct column columns[] = {
		{ layout->model->has_times || is_memory ? "total%" : "calls%",
		  6 },
		{ "total", 9 },
		{ "self", 9 },
		{ is_memory ? "blocks" : counted_name(layout->model), 15 },
		{ "call path", 0 }
	};
	char text[SHORT_TEXT];

	if (!is_memory) {
		fit_calls(&printing);
		columns[3] = count_column(&printing.calls,
					  counted_name(layout->model));
	}
	printing.table = table_begin(layout, columns);
	printing.weights = layout->options->memory ?
				   weigh_memory(layout->model,
						layout->options) :
				   paths_weigh(layout->model);
	/* Noise may be negative. */
	printing.smallest = layout->options->min_percent > 0 ?
				    weight_of_all(&printing) *
					    layout->options->min_percent / 100 :
				    -INFINITY;
	if (layout->options->limit > 0)
		choose_rows(&printing, (uint32_t)layout->options->limit);
	fputc('\n', layout->out);
	table_titles(&printing.table,
		     is_memory && layout->options->sort_given ?
			     keep_format("  (by %s)",
					 memory_sorted_name(layout->options)) :
			     NULL);
	push_level(&printing, 0);
	while (printing.level_count)
		print_next(&printing);
	if (layout->options->memory && !layout->options->callers &&
	    !layout->options->callees)
		print_outside(&printing);
	if (printing.left_out)
		fprintf(layout->out,
			"... %s more call paths (--limit 0, --min-percent 0)\n",
			human_count(text, printing.left_out));
	if (printing.cut_paths)
		fprintf(layout->out,
			"... paths below %s of the deepest paths "
			"are not shown (--depth %u)\n",
			human_count(text, printing.cut_paths),
			layout->options->depth);
	free(printing.weights);
	free(printing.levels);
	free(printing.is_row);
	free(printing.order);
}
