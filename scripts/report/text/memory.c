/*
 * Prints the tables of memory: functions by allocations, call paths of leaks
 * and of mappings, and the distributions of block sizes and lifetimes.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <shim/format.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "model/memory.h"
#include "model/model.h"
#include "model/options.h"
#include "model/paths.h"
#include "text/memory.h"
#include "text/layout.h"
#include "text/path.h"
#include "text/snapshots.h"
#include "text/table.h"

/* The bucket that contains the median; -1: unknown. */
static int median_life(const struct memory *memory)
{
	uint64_t all = 0, below = 0;
	int i;

	for (i = 0; i <= SHIM_LIVES_BUCKETS; i++)
		all += memory->lives[i];
	for (i = 0; all && i <= SHIM_LIVES_BUCKETS; i++) {
		below += memory->lives[i];
		if (below >= all - all / 2)
			return i;
	}
	return -1;
}

static void put_share(const struct layout *layout, uint64_t part, uint64_t all)
{
	double percent = 100 * (double)part / (double)all;

	fprintf(layout->out, percent < 0.95 ? " %.1f %%" : " %.0f %%", percent);
}

/* Prints powers of 8, each with the share of blocks below the next: "1 % < 8 B,
 * 20 % < 64 B". */
static void put_sizes(const struct layout *layout)
{
	const struct memory *all = &layout->model->memory_all;
	const char *comma = "  sizes:";
	char text[SHORT_TEXT];
	int i, j;

	for (i = 0; i < SHIM_BUCKETS; i += 3) {
		uint64_t count = 0;

		for (j = i; j < i + 3 && j < SHIM_BUCKETS; j++)
			count += all->sizes[j];
		if (!count)
			continue;
		fputs(comma, layout->out);
		put_share(layout, count, all->allocations);
		fprintf(layout->out, " < %s",
			human_bytes(text, (uint64_t)8 << i));
		comma = ",";
	}
	fputs(*comma == ',' ? "\n" : "", layout->out);
}

/* The same for lifetimes, by powers of 8 of a tick. */
static void put_lives(const struct layout *layout)
{
	const struct memory *memory = &layout->model->memory_all;
	uint64_t all = memory->lives_unknown, count;
	const char *comma = "  lived:";
	char text[SHORT_TEXT];
	int i, j;

	for (i = 0; i <= SHIM_LIVES_BUCKETS; i++)
		all += memory->lives[i];
	for (i = 0; i <= SHIM_LIVES_BUCKETS; i += i ? 3 : 1) {
		count = 0;
		for (j = i; j < (i ? i + 3 : 1) && j <= SHIM_LIVES_BUCKETS; j++)
			count += memory->lives[j];
		if (!count)
			continue;
		fputs(comma, layout->out);
		put_share(layout, count, all);
		fprintf(layout->out, " < %s",
			human_ns(text, memory_life_ns(layout->model, j)));
		comma = ",";
	}
	if (memory->lives_unknown) {
		fputs(comma, layout->out);
		put_share(layout, memory->lives_unknown, all);
		fputs(" not known", layout->out);
		comma = ",";
	}
	fputs(*comma == ',' ? "\n" : "", layout->out);
}

/* A row's sort key; equal rows are sorted by allocations, then by name. */
struct row {
	uint64_t key, bytes;
	const char *name;
	uint32_t function; /* NONE: no function */
};

uint64_t memory_sorted(const struct memory *memory,
		       const struct options *options)
{
	switch (options->sort_given ? options->sort : SORT_BYTES) {
	case SORT_ALLOCATIONS:
	case SORT_CALLS: return memory->allocations;
	case SORT_PEAK: return memory->peak;
	case SORT_LEAKED: return memory->live;
	case SORT_LOST: return memory->lost + memory->below;
	case SORT_TEMPORARY: return memory->temporary;
	default: return memory->allocated;
	}
}

const char *memory_sorted_name(const struct options *options)
{
	static const char *const sorted_by[] = {
		[SORT_TOTAL] = "total",	 [SORT_ALLOCATIONS] = "blocks",
		[SORT_CALLS] = "blocks", [SORT_PEAK] = "peak",
		[SORT_LEAKED] = "left",	 [SORT_TEMPORARY] = "temporary",
		[SORT_BYTES] = "self",	 [SORT_LOST] = "lost",
	};
	const char *name = options->sort_given ? sorted_by[options->sort] :
						 NULL;

	return name ? name : "self";
}

bool memory_sorts_bytes(const struct options *options)
{
	return !options->sort_given ||
	       (options->sort != SORT_ALLOCATIONS &&
		options->sort != SORT_CALLS && options->sort != SORT_TEMPORARY);
}

static int compare_rows(const void *left, const void *right)
{
	const struct row *a = left, *b = right;

	if (a->key != b->key)
		return a->key > b->key ? -1 : 1;
	if (a->bytes != b->bytes)
		return a->bytes > b->bytes ? -1 : 1;
	return strcmp(a->name, b->name);
}

static struct row *order_rows(const struct layout *layout, uint32_t *count)
{
	const struct model *model = layout->model;
	bool by_total = layout->options->sort_given &&
			layout->options->sort == SORT_TOTAL;
	struct row *rows = allocate(model->function_count + 1, sizeof(*rows));
	uint32_t i, n = 0;

	for (i = 0; i < model->function_count; i++) {
		const struct memory *below = &model->function_memory_below[i];

		if (!below->allocations && !below->live)
			continue;
		rows[n++] = (struct row){
			memory_sorted(by_total ? below :
						 &model->function_memory[i],
				      layout->options),
			below->allocated, model->functions[i].name, i
		};
	}
	if (model->memory_outside.allocations)
		rows[n++] = (struct row){
			memory_sorted(&model->memory_outside, layout->options),
			model->memory_outside.allocated, MEMORY_OUTSIDE, NONE
		};
	qsort(rows, n, sizeof(*rows), compare_rows);
	*count = n;
	return rows;
}

/* The median lifetime. */
static const char *life_text(char text[SHORT_TEXT], const struct model *model,
			     const struct memory *memory)
{
	char time[SHORT_TEXT];
	int bucket = median_life(memory);

	if (bucket < 0)
		return "-";
	snprintf(text, SHORT_TEXT, "< %s",
		 human_ns(time, memory_life_ns(model, bucket + 1)));
	return text;
}

static void print_row(struct table *table, const struct row *row)
{
	struct model *model = table->layout->model;
	bool outside = row->function == NONE;
	const struct memory *memory =
		outside ? &model->memory_outside :
			  &model->function_memory[row->function];
	const struct memory *below =
		outside ? memory : &model->function_memory_below[row->function];
	char text[SHORT_TEXT];

	table_cell(table, human_bytes(text, memory->allocated));
	table_cell(table, human_count(text, memory->allocations));
	table_cell(table, human_bytes(text, below->allocated));
	table_cell(table, human_bytes(text, memory->peak));
	table_cell(table, human_bytes(text, memory->live));
	table_cell(table, human_count(text, memory->temporary));
	table_cell(table, life_text(text, model, memory));
	if (outside)
		table_text(table, MEMORY_OUTSIDE);
	else
		table_name(table, &model->functions[row->function]);
}

static void print_leaks_head(const struct layout *layout)
{
	static const char *const why_not[] = {
		[SHIM_LEAKS_UNKNOWN] = "the program did not end by exit",
		[SHIM_LEAKS_LATE] = "there was too little time to find out "
				    "(memory:leaks=MS)",
		[SHIM_LEAKS_FAILED] = "not all blocks were seen, or the "
				      "mappings are unknown",
		[SHIM_LEAKS_OFF] = "the search was off",
	};
	const struct model *model = layout->model;
	const struct memory *all = &model->memory_all;
	uint64_t why = model->memory_leaks > SHIM_LEAKS_OFF ?
			       SHIM_LEAKS_UNKNOWN :
			       model->memory_leaks;
	char text[4][SHORT_TEXT];

	if (!model->memory_heaps_searched) {
		fprintf(layout->out, "  what of it was lost is not known: %s\n",
			why_not[why] ? why_not[why] : why_not[0]);
		return;
	}
	fprintf(layout->out,
		"  of these, %s in %s blocks were lost, and %s in %s "
		"more that nothing else points to",
		human_bytes(text[0], all->lost),
		human_count(text[1], all->lost_blocks),
		human_bytes(text[2], all->below),
		human_count(text[3], all->below_blocks));
	if (model->memory_heaps_searched < model->memory_heaps)
		fprintf(layout->out,
			", as far as %u of %u processes were asked",
			model->memory_heaps_searched, model->memory_heaps);
	fprintf(layout->out, " (found out in %s)\n",
		human_ns(text[0], model->memory_leaks_ns));
}

/* A path's leaked or mapped memory. */
struct share {
	uint64_t bytes, count;
	uint32_t path;
};

static int compare_shares(const void *left, const void *right)
{
	const struct share *a = left, *b = right;

	if (a->bytes != b->bytes)
		return a->bytes > b->bytes ? -1 : 1;
	return a->path < b->path ? -1 : 1;
}

static struct share share_of_lost(const struct memory *memory)
{
	return (struct share){ .bytes = memory->lost + memory->below,
			       .count = memory->lost_blocks +
					memory->below_blocks };
}

static struct share share_of_mapped(const struct memory *memory)
{
	return (struct share){ .bytes = memory->mapped,
			       .count = memory->mappings };
}

static void print_shares(const struct layout *layout, const char *bytes,
			 const char *counted,
			 struct share (*share_of)(const struct memory *))
{
	const struct model *model = layout->model;
	struct share *shares = allocate(model->path_count, sizeof(*shares));
	const struct column columns[] = { { bytes, 10 },
					  { counted, 12 },
					  { "path", 0 } };
	struct table table = table_begin(layout, columns);
	uint32_t i, count = 0, rows;
	char text[SHORT_TEXT];

	for (i = 0; i < model->path_count; i++) {
		shares[count] = share_of(&model->memory[i]);
		shares[count].path = i;
		count += shares[count].count > 0;
	}
	qsort(shares, count, sizeof(*shares), compare_shares);
	rows = layout_rows(layout, 10, count);
	if (count) {
		fputc('\n', layout->out);
		table_titles(&table, NULL);
	}
	for (i = 0; i < rows; i++) {
		table_cell(&table, human_bytes(text, shares[i].bytes));
		table_cell(&table, human_count(text, shares[i].count));
		table_rest(&table, 0);
		memory_put_path(layout, shares[i].path);
		table_end_row(&table);
	}
	layout_left_out(layout, rows, count);
	free(shares);
}

static void print_head(const struct layout *layout)
{
	const struct model *model = layout->model;
	const struct memory *all = &model->memory_all;
	char bytes[SHORT_TEXT], count[SHORT_TEXT], more[SHORT_TEXT];

	if (model->memory_period)
		fprintf(layout->out,
			"  estimates from %s blocks, one in %s on "
			"average\n",
			human_count(count, all->samples),
			human_bytes(bytes, model->memory_period));
	fprintf(layout->out,
		"  %s allocated in %s blocks (%s by realloc), %s "
		"of them temporary\n",
		human_bytes(bytes, all->allocated),
		human_count(count, all->allocations),
		human_count(more, all->reallocations),
		human_count((char[SHORT_TEXT]){ 0 }, all->temporary));
	fprintf(layout->out, "  %s lived at the peak",
		human_bytes(bytes, model->memory_peak));
	if (model->memory_peak_ns > 0)
		fprintf(layout->out, ", %s after the start",
			human_ns(count, model->memory_peak_ns));
	if (model->recording->process_count > 1)
		fputs(", of the process that had the most", layout->out);
	fprintf(layout->out, "; %s in %s blocks were left at the end%s\n",
		human_bytes(bytes, all->live),
		human_count(count, all->live_blocks),
		model->recording->process_count > 1 ? ", in all of them" : "");
	print_leaks_head(layout);
	if (model->memory_inherited)
		fprintf(layout->out,
			"  %s blocks were released in forked "
			"children that had them from their parents\n",
			human_count(count, model->memory_inherited));
	if (model->memory_older)
		fprintf(layout->out,
			"  freed blocks older than the attach: %s (or "
			"allocated inside libc)\n",
			human_count(count, model->memory_older));
	if (model->memory_untold)
		fprintf(layout->out,
			"  %s blocks could not be noted: whether they "
			"were released is not known, they count as left\n",
			human_count(count, model->memory_untold));
	if (model->memory_early_lost)
		fprintf(layout->out,
			"  %s calls before shim had started are "
			"missing\n",
			human_count(count, model->memory_early_lost));
	put_sizes(layout);
	put_lives(layout);
	if (all->mappings)
		fprintf(layout->out,
			"  apart from that %s were mapped in %s "
			"mappings, %s at the end\n",
			human_bytes(bytes, all->mapped),
			human_count(count, all->mappings),
			human_bytes(more, all->mapped_live));
}

void memory_print(const struct layout *layout)
{
	static const struct column columns[] = {
		{ "self", 10 },	    { "blocks", 12 },  { "total", 10 },
		{ "at peak", 10 },  { "left", 10 },    { "temporary", 12 },
		{ "half live", 9 }, { "function", 0 },
	};
	struct table table = table_begin(layout, columns);
	uint32_t count, i, shown;
	struct row *rows = order_rows(layout, &count);

	print_head(layout);
	fputc('\n', layout->out);
	table_titles(&table, keep_format("  (by %s)",
					 memory_sorted_name(layout->options)));
	shown = layout_rows(layout, 30, count);
	for (i = 0; i < shown; i++)
		print_row(&table, &rows[i]);
	layout_left_out(layout, shown, count);
	free(rows);
	print_shares(layout, "lost", "blocks", share_of_lost);
	print_shares(layout, "mapped", "mappings", share_of_mapped);
	snapshots_print(layout);
}
