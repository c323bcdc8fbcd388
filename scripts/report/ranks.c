/*
 * report --ranks: how evenly the parts of a job share its work - ranks, or
 * whatever recordings were put together, or the processes of one.  What the
 * slowest does beyond the mean is what all others wait for.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

#define ROWS 30

/* Self time, or total of a path; or calls. */
struct figure {
	uint32_t rank, next;
	double value;
};

/* A function, or a call path.  Of the ranks that have nothing of it there is nothing:
 * there may be many. */
struct row {
	uint32_t first, last;		/* of ranks->figures, by rank; or NONE */
	uint32_t count;
	uint64_t calls;
	double mean, least, most;
	uint32_t least_rank, most_rank;
};

struct ranks {
	struct model *model;
	bool is_timed;
	const char **names;
	uint32_t count;
	struct figure *figures;
	uint32_t figure_count, figure_room;
	double *each;			/* of one row, to print */
	uint32_t *of_thread;
	struct row all;
	struct row *functions;
	/* Paths of all ranks in one tree, parents before children. */
	struct row *paths;
	uint32_t *parent, *function;
	uint32_t path_count, path_room, parent_room, function_room;
};

/* --- who is who --- */

static const char *name_of(const struct recording *recording,
			   const struct process *process)
{
	const char *part = recording->parts[process->part].name;

	return recording->part_count > 1 && part ? part : process->name;
}

static void find_ranks(struct ranks *ranks)
{
	struct model *model = ranks->model;
	const struct recording *recording = model->recording;
	struct names names = { 0 };
	uint32_t i;

	ranks->of_thread = allocate(model->thread_count,
				    sizeof(*ranks->of_thread));
	for (i = 0; i < model->thread_count; i++)
		ranks->of_thread[i] = names_add(&names, name_of(recording,
			&recording->processes[model->threads[i].process]));
	ranks->count = names.count;
	ranks->names = allocate(names.count, sizeof(*ranks->names));
	for (i = 0; i < names.count; i++)
		ranks->names[i] = names.text[i];
	names_free(&names);
}

/* --- adding up --- */

static const struct row no_row = { .first = NONE, .last = NONE };

/* Threads and paths come rank by rank. */
static void add_figure(struct ranks *ranks, struct row *row, uint32_t rank,
		       double value)
{
	if (row->last != NONE && ranks->figures[row->last].rank == rank) {
		ranks->figures[row->last].value += value;
		return;
	}
	GROW(ranks->figures, ranks->figure_count, ranks->figure_room);
	ranks->figures[ranks->figure_count] = (struct figure){ rank, NONE,
							       value };
	if (row->last == NONE)
		row->first = ranks->figure_count;
	else
		ranks->figures[row->last].next = ranks->figure_count;
	row->last = ranks->figure_count++;
	row->count++;
}

static void see_figure(struct row *row, uint32_t rank, double value)
{
	if (value < row->least) {
		row->least = value;
		row->least_rank = rank;
	}
	if (value > row->most) {
		row->most = value;
		row->most_rank = rank;
	}
}

/* The first rank is looked at first, then those that have something, and the first
 * that has nothing. */
static void measure_row(const struct ranks *ranks, struct row *row)
{
	uint32_t i = row->first, missing = 0;

	if (ranks->count == 0)
		return;
	if (i != NONE && ranks->figures[i].rank == 0)
		row->least = row->most = ranks->figures[i].value;
	for (; i != NONE; i = ranks->figures[i].next) {
		const struct figure *figure = &ranks->figures[i];

		row->mean += figure->value / ranks->count;
		if (missing < figure->rank)
			see_figure(row, missing, 0);
		see_figure(row, figure->rank, figure->value);
		missing = figure->rank + 1;
	}
	if (missing < ranks->count)
		see_figure(row, missing, 0);
}

/* In percent of the mean; what a perfect share would save the slowest. */
static double imbalance(const struct row *row)
{
	return row->mean > 0 ? 100 * (row->most / row->mean - 1) : 0;
}

static void add_functions(struct ranks *ranks)
{
	struct model *model = ranks->model;
	struct part_sums part;
	uint32_t i, n;

	ranks->functions = allocate(model->function_count,
				    sizeof(*ranks->functions));
	for (i = 0; i < model->function_count; i++)
		ranks->functions[i] = no_row;
	part_sums_begin(&part, model);
	for (n = 0; n < model->thread_count; n++) {
		uint32_t rank = ranks->of_thread[n];

		part_sums_of(&part, model, model->threads[n].path);
		for (i = 0; i < part.count; i++) {
			uint32_t function = part.functions[i];
			const struct sums *sums = &part.sums[function];

			add_figure(ranks, &ranks->functions[function], rank,
				   ranks->is_timed ? sums->self :
						     (double)sums->calls);
			ranks->functions[function].calls += sums->calls;
		}
		ranks->all.calls += model->threads[n].calls;
		add_figure(ranks, &ranks->all, rank, ranks->is_timed ?
			model->paths[model->threads[n].path].total :
			(double)model->threads[n].calls);
	}
	for (i = 0; i < model->function_count; i++)
		measure_row(ranks, &ranks->functions[i]);
	measure_row(ranks, &ranks->all);
	part_sums_end(&part);
}

static uint32_t find_path(struct ranks *ranks, struct map *known,
			  uint32_t parent, uint32_t function)
{
	uint32_t number = map_add(known, (uint64_t)parent << 32 | function,
				  ranks->path_count);

	if (number < ranks->path_count)
		return number;
	GROW(ranks->parent, ranks->path_count, ranks->parent_room);
	GROW(ranks->function, ranks->path_count, ranks->function_room);
	GROW(ranks->paths, ranks->path_count, ranks->path_room);
	ranks->parent[number] = parent;
	ranks->function[number] = function;
	ranks->paths[number] = no_row;
	return ranks->path_count++;
}

/* Threads have trees of their own in the model; here they are one again. */
static void add_paths(struct ranks *ranks)
{
	struct model *model = ranks->model;
	uint32_t *joint = allocate(model->path_count, sizeof(*joint));
	struct map known = { 0 };
	uint32_t i;

	find_path(ranks, &known, NONE - 1, NONE - 1);
	for (i = 1; i < model->path_count; i++) {
		const struct path *path = &model->paths[i];
		struct row *row;

		if (path->function == NONE)
			continue;		/* a thread's root: 0 */
		joint[i] = find_path(ranks, &known, joint[path->parent],
				     path->function);
		row = &ranks->paths[joint[i]];
		add_figure(ranks, row, ranks->of_thread[path->thread],
			   ranks->is_timed ? path->total :
					     (double)path->calls);
		row->calls += path->calls;
	}
	for (i = 0; i < ranks->path_count; i++)
		measure_row(ranks, &ranks->paths[i]);
	map_free(&known);
	free(joint);
}

static void collect(struct ranks *ranks, struct model *model)
{
	*ranks = (struct ranks){ .model = model,
				 .is_timed = model->has_times,
				 .all = no_row };
	find_ranks(ranks);
	add_functions(ranks);
}

/* --- text --- */

static const char *figure_text(const struct ranks *ranks, char text[SHORT_TEXT],
			       double figure)
{
	return ranks->is_timed ? human_ns(text, figure) :
				 human_count(text, whole(figure));
}

/* qsort() has no context. */
static const struct row *rows_to_sort;

/* By how much longer the slowest takes than if all took the same. */
static int compare_excess(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	double x = rows_to_sort[a].most - rows_to_sort[a].mean;
	double y = rows_to_sort[b].most - rows_to_sort[b].mean;

	if (x != y)
		return x > y ? -1 : 1;
	if (rows_to_sort[a].calls != rows_to_sort[b].calls)
		return rows_to_sort[a].calls > rows_to_sort[b].calls ? -1 : 1;
	return a < b ? -1 : a > b;
}

static void print_titles(const struct page *page, const struct ranks *ranks,
			 const char *what)
{
	fprintf(page->out, "\n%s%10s %10s %-12s %10s %-12s %9s %15s  %s%s\n",
		page->color ? "\033[1m" : "",
		ranks->is_timed ? "mean" : "mean calls", "min", "of", "max",
		"of", "imbalance", "calls", what, page->color ? "\033[m" : "");
}

static void put_rank(const struct page *page, const struct ranks *ranks,
		     uint32_t rank)
{
	size_t used = text_columns(ranks->names[rank]);

	put_text_cut(page->out, ranks->names[rank], 12);
	fprintf(page->out, "%*s", used < 12 ? (int)(12 - used) : 0, "");
}

static void print_row(const struct page *page, const struct ranks *ranks,
		      const struct row *row, uint32_t function, uint32_t depth)
{
	char mean[SHORT_TEXT], text[SHORT_TEXT];

	fprintf(page->out, "%10s %10s ", figure_text(ranks, mean, row->mean),
		figure_text(ranks, text, row->least));
	put_rank(page, ranks, row->least_rank);
	fprintf(page->out, " %10s ", figure_text(ranks, text, row->most));
	put_rank(page, ranks, row->most_rank);
	fprintf(page->out, " %7.1f %% %15s  %*s", imbalance(row),
		human_count(text, row->calls), (int)(2 * depth), "");
	put_name(page, &ranks->model->functions[function], 87 + 2 * depth);
}

static void print_functions(const struct page *page, const struct ranks *ranks)
{
	const struct model *model = ranks->model;
	uint32_t *order = allocate(model->function_count, sizeof(*order));
	uint32_t i, rows, count = 0;

	for (i = 0; i < model->function_count; i++)
		if (ranks->functions[i].calls || ranks->functions[i].most > 0)
			order[count++] = i;
	rows_to_sort = ranks->functions;
	qsort(order, count, sizeof(*order), compare_excess);
	print_titles(page, ranks, "function");
	rows = page_rows(page, ROWS, count);
	for (i = 0; i < rows; i++)
		print_row(page, ranks, &ranks->functions[order[i]], order[i],
			  0);
	page_left_out(page, rows, count);
	free(order);
}

static int compare_most(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	if (rows_to_sort[a].most != rows_to_sort[b].most)
		return rows_to_sort[a].most > rows_to_sort[b].most ? -1 : 1;
	return a < b ? -1 : a > b;
}

/* Children of every path, longest first: sorted once, linked backwards. */
static void link_children(const struct ranks *ranks, uint32_t *child,
			  uint32_t *sibling)
{
	uint32_t *order = allocate(ranks->path_count, sizeof(*order));
	uint32_t i;

	for (i = 0; i < ranks->path_count; i++) {
		order[i] = i;
		child[i] = sibling[i] = NONE;
	}
	rows_to_sort = ranks->paths;
	qsort(order + 1, ranks->path_count - 1, sizeof(*order), compare_most);
	for (i = ranks->path_count - 1; i > 0; i--) {
		sibling[order[i]] = child[ranks->parent[order[i]]];
		child[ranks->parent[order[i]]] = order[i];
	}
	free(order);
}

static void print_paths(const struct page *page, struct ranks *ranks)
{
	uint32_t *child, *sibling, at = 0, depth = 0, hidden = 0;
	double smallest;

	add_paths(ranks);
	child = allocate(ranks->path_count, sizeof(*child));
	sibling = allocate(ranks->path_count, sizeof(*sibling));
	link_children(ranks, child, sibling);
	smallest = ranks->all.most * page->options->min_percent / 100;
	print_titles(page, ranks, ranks->is_timed ? "call path (total)" :
						    "call path");
	for (;;) {
		bool is_shown = at == 0 || (ranks->paths[at].most >= smallest &&
					    depth <= page->options->depth);

		if (at != 0 && is_shown)
			print_row(page, ranks, &ranks->paths[at],
				  ranks->function[at], depth - 1);
		hidden += !is_shown;
		if (is_shown && child[at] != NONE) {
			at = child[at];
			depth++;
			continue;
		}
		while (at != 0 && sibling[at] == NONE) {
			at = ranks->parent[at];
			depth--;
		}
		if (at == 0)
			break;
		at = sibling[at];
	}
	if (hidden)
		fprintf(page->out, "... and %u smaller or deeper ones "
			"(--min-percent, --depth)\n", hidden);
	free(child);
	free(sibling);
}

void ranks_print(const struct page *page)
{
	struct ranks ranks;
	char mean[SHORT_TEXT], text[SHORT_TEXT];

	collect(&ranks, page->model);
	if (ranks.count == 0) {
		fputs("  0 ranks: no thread is in the recording\n", page->out);
		return;
	}
	fprintf(page->out, "  %u ranks: %s%s each, ", ranks.count,
		figure_text(&ranks, mean, ranks.all.mean),
		ranks.is_timed ? "" : " calls");
	fprintf(page->out, "%s in ", figure_text(&ranks, text, ranks.all.least));
	put_text(page->out, ranks.names[ranks.all.least_rank]);
	fprintf(page->out, " to %s in ",
		figure_text(&ranks, text, ranks.all.most));
	put_text(page->out, ranks.names[ranks.all.most_rank]);
	fprintf(page->out, ": imbalance %.1f %%\n", imbalance(&ranks.all));
	if (page->options->tree)
		print_paths(page, &ranks);
	else
		print_functions(page, &ranks);
}

/* --- for programs --- */

static void put_row(FILE *out, const struct ranks *ranks, const struct row *row)
{
	double *each = ranks->each;
	uint32_t i;

	for (i = row->first; i != NONE; i = ranks->figures[i].next)
		each[ranks->figures[i].rank] = ranks->figures[i].value;

	fprintf(out, "\"mean\":%.17g,\"min\":%.17g,\"min_rank\":%u,"
		"\"max\":%.17g,\"max_rank\":%u,\"imbalance_percent\":%.17g,"
		"\"calls\":%" PRIu64 ",\"each\":[", row->mean, row->least,
		row->least_rank, row->most, row->most_rank, imbalance(row),
		row->calls);
	for (i = 0; i < ranks->count; i++)
		fprintf(out, "%s%.17g", i ? "," : "", each[i]);
	for (i = row->first; i != NONE; i = ranks->figures[i].next)
		each[ranks->figures[i].rank] = 0;
	fputc(']', out);
}

void ranks_json(FILE *out, struct model *model)
{
	struct ranks ranks;
	bool first = true;
	uint32_t i;

	collect(&ranks, model);
	ranks.each = allocate(ranks.count, sizeof(*ranks.each));
	fprintf(out, "{\"value\":\"%s\",\"ranks\":[",
		ranks.is_timed ? "self_ns" : "calls");
	for (i = 0; i < ranks.count; i++) {
		fputs(i ? "," : "", out);
		put_json(out, ranks.names[i]);
	}
	fputs("],\"all\":{", out);
	put_row(out, &ranks, &ranks.all);
	fputs("},\n\"functions\":[", out);
	for (i = 0; i < model->function_count; i++) {
		if (!ranks.functions[i].calls && ranks.functions[i].most <= 0)
			continue;
		fputs(first ? "\n{\"name\":" : ",\n{\"name\":", out);
		first = false;
		put_json(out, model->functions[i].name);
		fputs(",\"object\":", out);
		put_json(out, object_name(&model->functions[i]));
		fputc(',', out);
		put_row(out, &ranks, &ranks.functions[i]);
		fputc('}', out);
	}
	fputs("]}\n", out);
}
