/*
 * Exports the call graph for graphviz: a box for each function, its colour from
 * blue to red by its share of the total, and an arrow for each pair of caller
 * and callee.  Recursion counts once, as in the report: an arrow has the value of
 * the calls that are not below another call of the same arrow.  Small functions
 * and arrows are left out, because nobody can read a graph of thousands.
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/messages.h"
#include "base/numbers.h"
#include "base/text.h"
#include "export/format.h"
#include "model/functions.h"
#include "model/memory.h"
#include "model/model.h"
#include "model/options.h"
#include "model/totals.h"
#include "read/process.h"

struct arrow {
	uint32_t caller, callee;
	uint64_t calls;
	double value;
	uint32_t active; /* how often it is on the current path */
};

struct node {
	double own, total;
	uint64_t calls;
	uint32_t active;
};

struct dot {
	FILE *out;
	const struct model *model;
	const struct options *options;
	double *totals; /* by path: its value and that of the paths below */
	double all, all_own; /* what shares are of */
	struct node *nodes;  /* by function */
	struct map by_ends;
	struct arrow *arrows;
	uint32_t arrow_count, arrow_room;
	uint32_t *arrow_of; /* by path: its arrow, or NONE */
};

static bool is_time(const struct dot *dot)
{
	return dot->options->value < VALUE_CALLS;
}

static double own_value(const struct dot *dot, uint32_t number)
{
	const struct model *model = dot->model;
	const struct path *path = &model->paths[number];
	enum value value = dot->options->value;

	if (value >= VALUE_BYTES)
		return (double)memory_value(&model->memory[number], value);
	return (double)(model->is_sampled ? path->own : path->calls);
}

/* Times are those of the report. */
static void take_times(struct dot *dot)
{
	const struct model *model = dot->model;
	uint32_t i;

	for (i = 0; i < model->path_count; i++)
		dot->totals[i] = model->paths[i].total;
	for (i = 0; i < model->function_count; i++) {
		const struct sums *sums = &model->functions[i].sums;

		dot->nodes[i].calls = sums->calls;
		dot->nodes[i].total = sums->total;
		dot->nodes[i].own = fmax(sums->self, 0);
		dot->all_own += dot->nodes[i].own;
	}
	dot->all = model->time;
}

/* Children have higher numbers than their parents. */
static void add_values(struct dot *dot)
{
	const struct model *model = dot->model;
	uint32_t i;

	for (i = model->path_count; i-- > 0;) {
		uint32_t function = model->paths[i].function;
		double own = own_value(dot, i);

		dot->totals[i] += own;
		if (function != NONE) {
			dot->nodes[function].own += own;
			dot->nodes[function].calls += model->paths[i].calls;
		}
		if (i)
			dot->totals[model->paths[i].parent] += dot->totals[i];
	}
	dot->all = dot->all_own = dot->totals[0];
}

static uint32_t find_arrow(struct dot *dot, uint32_t caller, uint32_t callee)
{
	uint32_t arrow = map_add(&dot->by_ends, (uint64_t)caller << 32 | callee,
				 dot->arrow_count);

	if (arrow < dot->arrow_count)
		return arrow;
	GROW(dot->arrows, dot->arrow_count, dot->arrow_room);
	dot->arrows[dot->arrow_count] = (struct arrow){ .caller = caller,
							.callee = callee };
	return dot->arrow_count++;
}

static bool enter_path(void *context, uint32_t number, uint32_t depth)
{
	struct dot *dot = context;
	const struct path *path = &dot->model->paths[number];
	struct arrow *arrow;
	struct node *node;
	uint32_t caller;

	(void)depth;
	dot->arrow_of[number] = NONE;
	if (path->function == NONE)
		return true;
	node = &dot->nodes[path->function];
	if (node->active++ == 0 && !is_time(dot))
		node->total += dot->totals[number];
	caller = dot->model->paths[path->parent].function;
	if (caller == NONE)
		return true;
	dot->arrow_of[number] = find_arrow(dot, caller, path->function);
	arrow = &dot->arrows[dot->arrow_of[number]];
	arrow->calls += path->calls;
	if (arrow->active++ == 0)
		arrow->value += dot->totals[number];
	return true;
}

static void leave_path(void *context, uint32_t number, uint32_t depth)
{
	struct dot *dot = context;
	uint32_t function = dot->model->paths[number].function;

	(void)depth;
	if (function == NONE)
		return;
	dot->nodes[function].active--;
	if (dot->arrow_of[number] != NONE)
		dot->arrows[dot->arrow_of[number]].active--;
}

/* --- output --- */

static double part_of(double value, double all)
{
	return all > 0 ? fmin(fmax(value / all, 0), 1) : 0;
}

static double share(const struct dot *dot, double value)
{
	return part_of(value, dot->all);
}

static bool is_large(const struct dot *dot, double value)
{
	return 100 * share(dot, value) >= dot->options->min_percent;
}

static bool has_box(const struct dot *dot, uint32_t function)
{
	const struct node *node = &dot->nodes[function];

	return (node->calls || node->total > 0) && is_large(dot, node->total);
}

/* Prints text inside a string: graphviz gives backslashes a meaning. */
static void put_escaped(FILE *out, const char *text)
{
	char *copy = (char *)keep_text(text, SIZE_MAX);

	make_harmless(copy);
	for (; *copy; copy++) {
		if (*copy == '"' || *copy == '\\')
			fputc('\\', out);
		fputc(*copy, out);
	}
}

static void put_value(const struct dot *dot, double value)
{
	char text[SHORT_TEXT];

	if (dot->options->value >= VALUE_BYTES &&
	    dot->options->value != VALUE_ALLOCATIONS)
		fprintf(dot->out, "%s", human_bytes(text, whole(value)));
	else if (dot->options->value >= VALUE_CALLS)
		fprintf(dot->out, "%" PRIu64, whole(value));
	else
		fprintf(dot->out, "%s", human_ns(text, value));
}

/* From blue, of hue 0.6, to red. */
static void put_colors(const struct dot *dot, double value, const char *which)
{
	double part = sqrt(share(dot, value));

	fprintf(dot->out, "%s=\"%.3f %.3f %.3f\"", which, 0.6 * (1 - part),
		0.15 + 0.65 * part, 0.95 - 0.1 * part);
}

static void put_box(const struct dot *dot, uint32_t number)
{
	struct function *function = &dot->model->functions[number];
	const struct node *node = &dot->nodes[number];
	FILE *out = dot->out;

	function_line(function);
	fprintf(out, "\tf%u [label=\"", number);
	put_escaped(out, shown_name(function, dot->options));
	fprintf(out, "\\n%.2f %% (self %.2f %%)\\n",
		100 * share(dot, node->total),
		100 * part_of(node->own, dot->all_own));
	put_value(dot, node->total);
	if (dot->options->value != VALUE_CALLS || dot->model->is_sampled)
		fprintf(out, "\\n%s: %" PRIu64, counted_name(dot->model),
			node->calls);
	fputs("\", tooltip=\"", out);
	put_escaped(out, object_name(function));
	if (function->file) {
		fputc(' ', out);
		put_escaped(out, function->file);
		fprintf(out, ":%d", function->line);
	}
	fputs("\", ", out);
	put_colors(dot, node->total, "fillcolor");
	fputs("];\n", out);
}

static void put_arrow(const struct dot *dot, const struct arrow *arrow)
{
	FILE *out = dot->out;
	double part = share(dot, arrow->value);

	fprintf(out, "\tf%u -> f%u [label=\"%.2f %%\\n%" PRIu64 " x\", ",
		arrow->caller, arrow->callee, 100 * part, arrow->calls);
	put_colors(dot, arrow->value, "color");
	fprintf(out, ", penwidth=%.2f, weight=%d];\n", 0.5 + 3.5 * part,
		1 + (int)(100 * part));
}

static void put_graph(struct dot *dot)
{
	const struct model *model = dot->model;
	const char *command = process_string(&model->recording->processes[0],
					     "command");
	uint32_t i, count = 0, shown = 0;

	fputs("digraph \"", dot->out);
	put_escaped(dot->out, command ? command : "shim");
	fputs("\" {\n\tnode [shape=box, style=filled, fontname=\"sans-serif\", "
	      "fontsize=10];\n\tedge [fontname=\"sans-serif\", "
	      "fontsize=8];\n",
	      dot->out);
	for (i = 0; i < model->function_count; i++) {
		count += dot->nodes[i].calls || dot->nodes[i].total > 0;
		if (!has_box(dot, i))
			continue;
		put_box(dot, i);
		shown++;
	}
	for (i = 0; i < dot->arrow_count; i++)
		if (has_box(dot, dot->arrows[i].caller) &&
		    has_box(dot, dot->arrows[i].callee) &&
		    is_large(dot, dot->arrows[i].value))
			put_arrow(dot, &dot->arrows[i]);
	if (shown < count)
		fprintf(dot->out,
			"\tlabel=\"%u of %u functions: the others have less "
			"than %g %% (--min-percent)\"; labelloc=t;\n",
			shown, count, dot->options->min_percent);
	fputs("}\n", dot->out);
}

static void dot_print(FILE *out, struct model *model,
		      const struct options *options)
{
	struct dot dot = {
		.out = out,
		.model = model,
		.options = options,
		.totals = allocate(model->path_count, sizeof(double)),
		.nodes = allocate(model->function_count, sizeof(struct node)),
		.arrow_of = allocate(model->path_count, sizeof(uint32_t)),
	};
	struct walk walk = { enter_path, leave_path, &dot };

	if (is_time(&dot))
		take_times(&dot);
	else
		add_values(&dot);
	model_walk(model, 0, &walk);
	put_graph(&dot);
	map_free(&dot.by_ends);
	free(dot.arrows);
	free(dot.arrow_of);
	free(dot.nodes);
	free(dot.totals);
}

EXPORT_FORMAT(dot) = {
	.name = "dot",
	.extension = "dot",
	.description = "the call graph, for graphviz: dot -Tsvg",
	.values = VALUES_OF_CALLS | VALUES_OF_MEMORY,
	.has_no_threads = true,
	.print = dot_print,
};
