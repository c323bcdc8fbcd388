/*
 * Exports memory at the peak as Valgrind's massif.out, for ms_print and
 * massif-visualizer.  The total of live memory is known at many moments; memory
 * by path is known at the peak, at the end, and at requested snapshots.  A
 * massif tree begins at the allocating functions and goes up to their callers,
 * so paths are reversed and added up by the functions in which they end.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <shim/format.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "base/text.h"
#include "export/format.h"
#include "model/functions.h"
#include "model/memory.h"
#include "model/model.h"
#include "model/options.h"
#include "model/paths.h"
#include "model/snapshots.h"
#include "read/process.h"

/* All callers that end in the same functions. */
struct place {
	uint32_t function; /* NONE: no function */
	uint32_t child, sibling;
	uint64_t bytes;
};

struct sites {
	struct model *model;
	const struct options *options;
	FILE *out;
	struct place *sites;
	uint32_t count, room;
	struct map map; /* parent << 32 | function */
};

/* Places with less than this share of a moment's memory are summed up. */
#define SMALL_PERCENT 1

static uint32_t find_site(struct sites *sites, uint32_t parent,
			  uint32_t function)
{
	uint64_t key = (uint64_t)parent << 32 | function;
	uint32_t site = map_add(&sites->map, key, sites->count);

	if (site < sites->count)
		return site;
	GROW(sites->sites, sites->count, sites->room);
	sites->sites[sites->count++] = (struct place){
		.function = function,
		.child = NONE,
		.sibling = sites->sites[parent].child,
	};
	sites->sites[parent].child = site;
	return site;
}

static void add_path(struct sites *sites, uint32_t path, uint64_t bytes)
{
	const struct path *paths = sites->model->paths;
	uint32_t at = 0, depth = 0;

	sites->sites[0].bytes += bytes;
	at = find_site(sites, 0, paths[path].function);
	sites->sites[at].bytes += bytes;
	while (paths[path].function != NONE &&
	       depth++ < sites->options->max_depth) {
		path = paths[path].parent;
		if (paths[path].function == NONE)
			break;
		at = find_site(sites, at, paths[path].function);
		sites->sites[at].bytes += bytes;
	}
}

static void clear_sites(struct sites *sites)
{
	sites->count = 0;
	map_free(&sites->map);
	sites->map = (struct map){ 0 };
	GROW(sites->sites, sites->count, sites->room);
	sites->sites[sites->count++] = (struct place){ .function = NONE,
						       .child = NONE,
						       .sibling = NONE };
}

static void make_sites(struct sites *sites, enum value value)
{
	uint32_t i;

	clear_sites(sites);
	for (i = 0; i < sites->model->path_count; i++) {
		uint64_t bytes = memory_value(&sites->model->memory[i], value);

		if (bytes)
			add_path(sites, i, bytes);
	}
}

static void make_snapshot_sites(struct sites *sites,
				const struct snapshot *snapshot)
{
	uint32_t i;

	clear_sites(sites);
	for (i = 0; i < snapshot->path_count; i++)
		add_path(sites, snapshot->paths[i].path,
			 snapshot->paths[i].bytes);
}

/* --- printing --- */

static void put_label(const struct sites *sites, const struct place *site)
{
	struct function *function;
	char *name;

	if (site->function == NONE) {
		fputs("0x0: " MEMORY_OUTSIDE, sites->out);
		return;
	}
	function = &sites->model->functions[site->function];
	function_line(function);
	name = (char *)keep_text(shown_name(function, sites->options),
				 SIZE_MAX);
	make_harmless(name);
	fprintf(sites->out, "0x%" PRIX64 ": %s (", function->address, name);
	if (function->file)
		fprintf(sites->out, "%s:%d)", base_name(function->file),
			function->line);
	else
		fprintf(sites->out, "in %s)", object_name(function));
}

/* qsort() passes no context. */
static const struct place *sites_for_sort;

static int compare_sites(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	if (sites_for_sort[a].bytes != sites_for_sort[b].bytes)
		return sites_for_sort[a].bytes > sites_for_sort[b].bytes ? -1 :
									   1;
	return a < b ? -1 : a > b;
}

/* The children of @site that are large enough, sorted by size, and the sum of
 * the others. */
static uint32_t *order_children(const struct sites *sites, uint32_t site,
				uint32_t *count, uint32_t *small,
				uint64_t *small_bytes)
{
	const struct place *all = sites->sites;
	uint64_t least = all[0].bytes / (100 / SMALL_PERCENT);
	uint32_t *order, i, room = 0;

	for (i = all[site].child; i != NONE; i = all[i].sibling)
		room++;
	order = allocate(room + 1, sizeof(*order));
	*count = *small = 0;
	*small_bytes = 0;
	for (i = all[site].child; i != NONE; i = all[i].sibling) {
		if (all[i].bytes >= least) {
			order[(*count)++] = i;
			continue;
		}
		(*small)++;
		*small_bytes += all[i].bytes;
	}
	sites_for_sort = all;
	qsort(order, *count, sizeof(*order), compare_sites);
	return order;
}

static void put_indented(const struct sites *sites, uint32_t depth)
{
	while (depth-- > 0)
		fputc(' ', sites->out);
}

/* Prints the tree down to --max-depth. */
static void put_site(const struct sites *sites, uint32_t site, uint32_t depth)
{
	uint32_t count, small, i;
	uint64_t small_bytes;
	uint32_t *order = order_children(sites, site, &count, &small,
					 &small_bytes);

	put_indented(sites, depth);
	fprintf(sites->out, "n%u: %" PRIu64 " ", count + (small > 0),
		sites->sites[site].bytes);
	if (site == 0)
		fputs("(heap allocation functions) malloc/new/new[], "
		      "--alloc-fns, etc.",
		      sites->out);
	else
		put_label(sites, &sites->sites[site]);
	fputc('\n', sites->out);
	for (i = 0; i < count; i++)
		put_site(sites, order[i], depth + 1);
	if (small) {
		put_indented(sites, depth + 1);
		fprintf(sites->out,
			"n0: %" PRIu64 " in %u place%s, all below "
			"massif's threshold (%d.00%%)\n",
			small_bytes, small, small == 1 ? "" : "s",
			SMALL_PERCENT);
	}
	free(order);
}

/* --- moments --- */

enum kind { START, POINT, SNAPSHOT, PEAK, END };

struct moment {
	enum kind kind;
	double ns;
	uint64_t bytes; /* of a point */
	const struct snapshot *snapshot;
};

static int compare_moments(const void *left, const void *right)
{
	const struct moment *a = left, *b = right;

	if (a->ns != b->ns)
		return a->ns > b->ns ? 1 : -1;
	return (a->kind > b->kind) - (a->kind < b->kind);
}

/* Lists the moments by time, for the process that has the peak: the file has
 * one time axis. */
static struct moment *list_moments(const struct model *model, uint32_t *count)
{
	const struct process *process = model->memory_peak_process;
	struct point points[SHIM_POINTS];
	uint32_t point_count = snapshots_points(process, points), room = 0, i;
	struct moment *moments = NULL;
	const struct snapshot *snapshot;

	*count = 0;
	for (i = 0; i < point_count; i++) {
		GROW(moments, *count, room);
		moments[(*count)++] = (struct moment){ POINT, points[i].ns,
						       points[i].bytes, NULL };
	}
	for (i = 0; (snapshot = snapshots_get(model, i)); i++) {
		if (snapshot->process != process || !snapshot->is_complete)
			continue;
		GROW(moments, *count, room);
		moments[(*count)++] = (struct moment){ SNAPSHOT, snapshot->ns,
						       0, snapshot };
	}
	moments = grow(moments, *count + 3, sizeof(*moments));
	moments[(*count)++] = (struct moment){ START, 0, 0, NULL };
	moments[(*count)++] = (struct moment){ PEAK, model->memory_peak_ns, 0,
					       NULL };
	qsort(moments, *count, sizeof(*moments), compare_moments);
	moments[(*count)++] = (struct moment){ END, model->duration, 0, NULL };
	return moments;
}

static void put_moment(struct sites *sites, uint32_t number,
		       const struct moment *moment)
{
	static const char *const trees[] = { "empty", "empty", "detailed",
					     "peak", "detailed" };
	uint64_t bytes = moment->bytes;

	if (moment->kind == SNAPSHOT)
		make_snapshot_sites(sites, moment->snapshot);
	else if (moment->kind >= PEAK)
		make_sites(sites,
			   moment->kind == PEAK ? VALUE_PEAK : VALUE_LEAKED);
	if (moment->kind >= SNAPSHOT)
		bytes = sites->sites[0].bytes;
	fprintf(sites->out,
		"#-----------\nsnapshot=%u\n#-----------\n"
		"time=%" PRIu64 "\nmem_heap_B=%" PRIu64 "\n"
		"mem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=%s\n",
		number, whole(moment->ns / 1e6), bytes, trees[moment->kind]);
	if (moment->kind >= SNAPSHOT)
		put_site(sites, 0, 0);
}

/* massif's own reader limits the depth of a tree. */
#define DEPTH_MAX 200

static void massif_print(FILE *out, struct model *model,
			 const struct options *options)
{
	struct options shallow = *options;
	struct sites sites = { .model = model,
			       .options = &shallow,
			       .out = out };
	const char *command = process_string(&model->recording->processes[0],
					     "command");
	char *text = (char *)keep_text(command ? command : "unknown program",
				       SIZE_MAX);
	struct moment *moments;
	uint32_t count, i;

	if (shallow.max_depth > DEPTH_MAX)
		shallow.max_depth = DEPTH_MAX;
	make_harmless(text);
	fprintf(out, "desc: --time-unit=ms\ncmd: %s\ntime_unit: ms\n", text);
	moments = list_moments(model, &count);
	for (i = 0; i < count; i++)
		put_moment(&sites, i, &moments[i]);
	free(moments);
	map_free(&sites.map);
	free(sites.sites);
}

EXPORT_FORMAT(massif) = {
	.name = "massif",
	.extension = "massif",
	.description = "memory at the peak and at the end, for ms_print",
	.is_of_memory = true,
	.print = massif_print,
};
