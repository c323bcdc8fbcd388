/*
 * Prints heap snapshots: each with the call paths that had most of its memory.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <shim/format.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "model/snapshots.h"
#include "text/layout.h"
#include "text/path.h"
#include "text/snapshots.h"
#include "text/table.h"

static int compare_bytes(const void *left, const void *right)
{
	const struct alive *a = left, *b = right;

	if (a->bytes != b->bytes)
		return a->bytes > b->bytes ? -1 : 1;
	return (a->path > b->path) - (a->path < b->path);
}

static void print_head(const struct layout *layout,
		       const struct snapshot *snapshot)
{
	const struct alive *all = &snapshot->all;
	char text[4][SHORT_TEXT];

	fprintf(layout->out, "\nsnapshot %u", snapshot->number);
	if (layout->model->recording->process_count > 1)
		fprintf(layout->out, " of process %u", snapshot->process->pid);
	fprintf(layout->out,
		", %s after the start: ", human_ns(text[0], snapshot->ns));
	if (!snapshot->is_complete) {
		fputs("was not finished\n", layout->out);
		return;
	}
	fprintf(layout->out, "%s lived in %s block%s",
		human_bytes(text[0], all->bytes),
		human_count(text[1], all->blocks), all->blocks == 1 ? "" : "s");
	if (snapshot->leaks != SHIM_LEAKS_KNOWN)
		fputs("; what of it was lost is not known", layout->out);
	else if (all->lost_blocks + all->below_blocks == 0)
		fputs(", none of it lost", layout->out);
	else
		fprintf(layout->out,
			", of which %s in %s were lost, and %s in %s "
			"that nothing else points to",
			human_bytes(text[0], all->lost),
			human_count(text[1], all->lost_blocks),
			human_bytes(text[2], all->below),
			human_count(text[3], all->below_blocks));
	fprintf(layout->out, " (found out in %s)\n",
		human_ns(text[0], snapshot->duration_ns));
	if (snapshot->missing)
		fprintf(layout->out, "  %s blocks more could not be noted\n",
			human_count(text[0], snapshot->missing));
}

static void print_paths(const struct layout *layout,
			const struct snapshot *snapshot)
{
	static const struct column columns[] = {
		{ "lives", 10 }, { "blocks", 12 }, { "lost", 10 }, { "path", 0 }
	};
	struct table table = table_begin(layout, columns);
	uint32_t i, count = snapshot->path_count;
	uint32_t rows = layout_rows(layout, 5, count);
	struct alive *paths = allocate(count + 1, sizeof(*paths));
	bool is_known = snapshot->leaks == SHIM_LEAKS_KNOWN;
	char text[SHORT_TEXT];

	if (count)
		memcpy(paths, snapshot->paths, count * sizeof(*paths));
	qsort(paths, count, sizeof(*paths), compare_bytes);
	if (count)
		table_titles(&table, NULL);
	for (i = 0; i < rows; i++) {
		uint64_t lost = paths[i].lost + paths[i].below;

		table_cell(&table, human_bytes(text, paths[i].bytes));
		table_cell(&table, human_count(text, paths[i].blocks));
		table_cell(&table, is_known ? human_bytes(text, lost) : "-");
		table_rest(&table, 0);
		memory_put_path(layout, paths[i].path);
		table_end_row(&table);
	}
	layout_left_out(layout, rows, count);
	free(paths);
}

void snapshots_print(const struct layout *layout)
{
	const struct snapshot *snapshot;
	uint32_t i;

	for (i = 0; (snapshot = snapshots_get(layout->model, i)); i++) {
		print_head(layout, snapshot);
		if (snapshot->is_complete)
			print_paths(layout, snapshot);
	}
}
