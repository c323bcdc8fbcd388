/*
 * Exports functions and the calls between them for callgrind_annotate and
 * KCachegrind.  For these tools, the inclusive cost of a function is the cost
 * of its calls, so recursion would count twice.  Therefore only the outermost
 * call of a function in a path carries its time; the sum is then our total.  A
 * function that calls itself through others still looks larger in a sum over
 * its callees.
 *
 * Names are numbered and spelt out once: some readers refuse a second time.
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <shim/format.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/messages.h"
#include "base/names.h"
#include "base/numbers.h"
#include "base/text.h"
#include "export/format.h"
#include "model/functions.h"
#include "model/model.h"
#include "model/options.h"
#include "model/shown.h"
#include "model/totals.h"
#include "read/process.h"

/* All calls of one function by another, from one place. */
struct arc {
	uint32_t callee;
	uint32_t place; /* in the caller; NONE: unknown */
	uint32_t next;	/* next arc of the same caller, or NONE */
	uint64_t calls;
	double cost; /* without calls below another call of the callee */
};

/* The own cost of a function at one place. */
struct cost {
	uint32_t place; /* NONE: unknown */
	uint32_t next;	/* another one of the function, or NONE */
	double own;
};

struct graph {
	const struct model *model;
	const struct options *options;
	FILE *out;
	double *totals; /* of paths */
	/* by function: its own cost in lines; the first is without a place */
	struct cost *costs;
	uint32_t cost_count, cost_room;
	uint32_t *last_cost; /* by function */
	struct map costs_by_place, callers;
	struct map arcs_by_ends;
	struct arc *arcs;
	uint32_t arc_count, arc_room;
	/* by caller, NONE: no arc; the last one is for calls without a
	 * caller */
	uint32_t *first_arc;
	/* by function: its open calls on the current path */
	uint32_t *active;
	struct names files, objects;
	/* names that are already spelt out */
	uint32_t files_known, objects_known;
	bool *function_known;
};

static bool is_counting(const struct graph *graph)
{
	return graph->options->value == VALUE_CALLS;
}

static void add_cost(struct graph *graph, const struct path *path, double own)
{
	uint32_t cost = map_add(&graph->costs_by_place,
				(uint64_t)path->function << 32 | path->place,
				graph->cost_count);

	if (cost == graph->cost_count) {
		GROW(graph->costs, graph->cost_count, graph->cost_room);
		graph->costs[graph->cost_count++] = (struct cost){
			.place = path->place,
			.next = graph->last_cost[path->function],
		};
		graph->last_cost[path->function] = cost;
	}
	graph->costs[cost].own += own;
}

/* Children have higher numbers than their parents. */
static void find_totals(struct graph *graph)
{
	const struct model *model = graph->model;
	const struct path *path;
	double own;
	uint32_t i;

	for (i = model->path_count - 1; i > 0; i--) {
		path = &model->paths[i];
		own = !is_counting(graph) ?
			      path->self :
			      (double)(model->is_sampled ? path->own :
							   path->calls);
		graph->totals[i] += own;
		if (path->function != NONE)
			add_cost(graph, path, own);
		/* As in the report, a thread's time is not negative. */
		graph->totals[path->parent] +=
			model->paths[path->parent].function == NONE ?
				fmax(graph->totals[i], 0) :
				graph->totals[i];
	}
}

static uint32_t find_arc(struct graph *graph, uint32_t caller, uint32_t place,
			 uint32_t callee)
{
	uint32_t from = map_add(&graph->callers, (uint64_t)caller << 32 | place,
				(uint32_t)graph->callers.count);
	uint32_t arc = map_add(&graph->arcs_by_ends,
			       (uint64_t)from << 32 | callee, graph->arc_count);

	if (arc < graph->arc_count)
		return arc;
	GROW(graph->arcs, graph->arc_count, graph->arc_room);
	graph->arcs[graph->arc_count] = (struct arc){
		.callee = callee,
		.place = place,
		.next = graph->first_arc[caller],
	};
	graph->first_arc[caller] = graph->arc_count;
	return graph->arc_count++;
}

static bool enter_path(void *context, uint32_t number, uint32_t depth)
{
	struct graph *graph = context;
	const struct model *model = graph->model;
	const struct path *path = &model->paths[number];
	uint32_t caller, at;
	struct arc *arc;

	(void)depth;
	if (path->function == NONE)
		return true;
	caller = model->paths[path->parent].function;
	if (caller == NONE)
		caller = model->function_count;
	at = find_arc(graph, caller, model->paths[path->parent].place,
		      path->function);
	arc = &graph->arcs[at];
	arc->calls += path->calls;
	if (graph->active[path->function]++ == 0)
		arc->cost += graph->totals[number];
	return true;
}

static void leave_path(void *context, uint32_t number, uint32_t depth)
{
	struct graph *graph = context;
	uint32_t function = graph->model->paths[number].function;

	(void)depth;
	if (function != NONE)
		graph->active[function]--;
}

/* --- lines --- */

/* Writes "fn=(3) name", or "fn=(3)" when @is_known. */
static void put_named(FILE *out, const char *key, uint32_t number,
		      const char *name, bool is_known)
{
	char *copy;

	fprintf(out, "%s=(%u)", key, number + 1);
	if (!is_known) {
		copy = (char *)keep_text(name, SIZE_MAX);
		make_harmless(copy);
		fprintf(out, " %s", copy);
	}
	fputc('\n', out);
}

static void put_numbered(FILE *out, const char *key, struct names *names,
			 uint32_t *known, const char *name)
{
	uint32_t number = names_add(names, name);

	put_named(out, key, number, name, number < *known);
	if (number >= *known)
		*known = number + 1;
}

static void put_function_name(struct graph *graph, uint32_t number,
			      const char *object_key, const char *file_key,
			      const char *function_key)
{
	struct function *function = &graph->model->functions[number];

	function_line(function);
	put_numbered(graph->out, object_key, &graph->objects,
		     &graph->objects_known,
		     function->object ? function->object->path : "???");
	put_numbered(graph->out, file_key, &graph->files, &graph->files_known,
		     function->file ? function->file : "???");
	put_named(graph->out, function_key, number,
		  shown_name(function, graph->options),
		  graph->function_known[number]);
	graph->function_known[number] = true;
}

static int line_of(const struct function *function)
{
	return function->file ? function->line : 0;
}

/* The line of a place in the function; writes its file if that is another, as of a
 * macro. */
static int put_place(struct graph *graph, const struct function *function,
		     uint32_t number)
{
	const struct frame_place *place;
	const char *file = function->file ? function->file : "???";

	if (number == NONE)
		return line_of(function);
	place = &graph->model->frames.places[number];
	if (strcmp(place->file, file))
		put_numbered(graph->out, "fi", &graph->files,
			     &graph->files_known, place->file);
	return place->line;
}

/* Goes back to the file of the function. */
static void put_end_of_place(struct graph *graph,
			     const struct function *function, uint32_t number)
{
	const char *file = function->file ? function->file : "???";

	if (number != NONE &&
	    strcmp(graph->model->frames.places[number].file, file))
		put_numbered(graph->out, "fe", &graph->files,
			     &graph->files_known, file);
}

static void put_calls(struct graph *graph, const struct arc *arc, int line)
{
	put_function_name(graph, arc->callee, "cob", "cfi", "cfn");
	fprintf(graph->out, "calls=%" PRIu64 " %d\n%d %" PRIu64 "\n",
		arc->calls, line_of(&graph->model->functions[arc->callee]),
		line, whole(arc->cost));
}

static void put_function(struct graph *graph, uint32_t number)
{
	const struct function *function = &graph->model->functions[number];
	int line;
	uint32_t i;

	put_function_name(graph, number, "ob", "fl", "fn");
	if (graph->last_cost[number] == NONE)
		fprintf(graph->out, "%d 0\n", line_of(function));
	for (i = graph->last_cost[number]; i != NONE;
	     i = graph->costs[i].next) {
		line = put_place(graph, function, graph->costs[i].place);
		fprintf(graph->out, "%d %" PRIu64 "\n", line,
			whole(graph->costs[i].own));
		put_end_of_place(graph, function, graph->costs[i].place);
	}
	for (i = graph->first_arc[number]; i != NONE; i = graph->arcs[i].next) {
		line = put_place(graph, function, graph->arcs[i].place);
		put_calls(graph, &graph->arcs[i], line);
		put_end_of_place(graph, function, graph->arcs[i].place);
	}
	fputc('\n', graph->out);
}

/* A function whose total is only known through its callers gets such a line. */
static void put_roots(struct graph *graph)
{
	uint32_t number = graph->model->function_count, i;

	put_numbered(graph->out, "ob", &graph->objects, &graph->objects_known,
		     "???");
	put_numbered(graph->out, "fl", &graph->files, &graph->files_known,
		     "???");
	put_named(graph->out, "fn", number, "[no caller]", false);
	fputs("0 0\n", graph->out);
	for (i = graph->first_arc[number]; i != NONE; i = graph->arcs[i].next)
		put_calls(graph, &graph->arcs[i], 0);
}

static void put_header(struct graph *graph)
{
	const struct model *model = graph->model;
	const struct process *process = &model->recording->processes[0];
	const char *command = process_string(process, "command");
	FILE *out = graph->out;

	fprintf(out,
		"# callgrind format\nversion: 1\ncreator: profrun\n"
		"pid: %u\ncmd: ",
		process->pid);
	put_text(out, command ? command : "");
	fputc('\n', out);
	if (model->is_sampled)
		fputs("desc: Note: counts of calls are counts of samples\n",
		      out);
	fputs("positions: line\n", out);
	if (is_counting(graph))
		fprintf(out, "event: n : %s\nevents: n\n", counted_name(model));
	else
		fprintf(out, "event: ns : %snanoseconds\nevents: ns\n",
			!model->is_sampled ? "" :
			model->sample_mode == SHIM_SAMPLED_REAL ?
					     "wall clock " :
					     "processor ");
	fprintf(out, "summary: %" PRIu64 "\n\n", whole(graph->totals[0]));
}

static uint32_t *allocate_none(uint32_t count)
{
	uint32_t *numbers = allocate(count, sizeof(*numbers));

	memset(numbers, 0xff, count * sizeof(*numbers));
	return numbers;
}

static void callgrind_print(FILE *out, struct model *model,
			    const struct options *options)
{
	uint32_t count = model->function_count, i;
	struct graph graph = {
		.model = model,
		.options = options,
		.out = out,
		.totals = allocate(model->path_count, sizeof(double)),
		.last_cost = allocate_none(count),
		.first_arc = allocate_none(count + 1),
		.active = allocate(count, sizeof(uint32_t)),
		.function_known = allocate(count, sizeof(bool)),
	};
	struct walk walk = { enter_path, leave_path, &graph };

	find_totals(&graph);
	model_walk(model, 0, &walk);
	put_header(&graph);
	for (i = 0; i < count; i++) {
		if (!shown_hides(model, i))
			put_function(&graph, i);
		progress("writing", i, count);
	}
	put_roots(&graph);
	free(graph.totals);
	free(graph.costs);
	free(graph.last_cost);
	map_free(&graph.costs_by_place);
	map_free(&graph.callers);
	map_free(&graph.arcs_by_ends);
	free(graph.arcs);
	free(graph.first_arc);
	free(graph.active);
	names_free(&graph.files);
	names_free(&graph.objects);
	free(graph.function_known);
}

EXPORT_FORMAT(callgrind) = {
	.name = "callgrind",
	.extension = "callgrind",
	.description = "functions and callers, for KCachegrind",
	.values = VALUES_OF_CALLS,
	.has_lines = true,
	.has_calls_always = true,
	.print = callgrind_print,
};
