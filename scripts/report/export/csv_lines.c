/* Exports the lines of sampled functions as CSV: a row for each line of each
 * function.  The total of a line includes what it calls; recursion counts once. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "base/text.h"
#include "export/csv.h"
#include "export/csv_lines.h"
#include "model/model.h"
#include "model/totals.h"

struct row {
	uint32_t function;
	uint32_t place;	 /* NONE: unknown */
	uint32_t active; /* on the current path */
	uint64_t own, samples;
	double self, total;
};

struct table {
	const struct model *model;
	struct map numbers; /* function << 32 | place, to the row */
	struct row *rows;
	uint32_t count, room;
};

static struct row *find_row(struct table *table, const struct path *path)
{
	uint32_t row = map_add(&table->numbers,
			       (uint64_t)path->function << 32 | path->place,
			       table->count);

	if (row == table->count) {
		GROW(table->rows, table->count, table->room);
		table->rows[table->count++] = (struct row){
			.function = path->function,
			.place = path->place,
		};
	}
	return &table->rows[row];
}

static bool enter_path(void *context, uint32_t number, uint32_t depth)
{
	struct table *table = context;
	const struct path *path = &table->model->paths[number];
	struct row *row;

	(void)depth;
	if (path->function == NONE)
		return true;
	row = find_row(table, path);
	row->own += path->own;
	row->self += path->self;
	if (row->active++ == 0) {
		row->samples += path->calls;
		row->total += path->total;
	}
	return true;
}

static void leave_path(void *context, uint32_t number, uint32_t depth)
{
	struct table *table = context;
	const struct path *path = &table->model->paths[number];

	(void)depth;
	if (path->function != NONE)
		find_row(table, path)->active--;
}

static int compare_rows(const void *left, const void *right)
{
	const struct row *a = left, *b = right;

	if (a->own != b->own)
		return a->own > b->own ? -1 : 1;
	if (a->samples != b->samples)
		return a->samples > b->samples ? -1 : 1;
	if (a->function != b->function)
		return a->function < b->function ? -1 : 1;
	return a->place < b->place ? -1 : a->place > b->place;
}

static void put_row(FILE *out, const struct model *model, const struct row *row)
{
	const struct function *function = &model->functions[row->function];

	csv_function(out, function);
	if (row->place != NONE) {
		put_csv(out, model->frames.places[row->place].file);
		fprintf(out, ",%d", model->frames.places[row->place].line);
	} else {
		fputc(',', out);
	}
	fprintf(out, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\r\n",
		row->own, whole(row->self), row->samples, whole(row->total));
}

void lines_csv(FILE *out, const struct model *model)
{
	struct table table = { .model = model };
	struct walk walk = { enter_path, leave_path, &table };
	uint32_t i;

	model_walk(model, 0, &walk);
	if (table.count)
		qsort(table.rows, table.count, sizeof(*table.rows),
		      compare_rows);
	fputs("name,mangled,object,file,line,self_samples,self_ns,"
	      "total_samples,total_ns\r\n",
	      out);
	for (i = 0; i < table.count; i++)
		put_row(out, model, &table.rows[i]);
	map_free(&table.numbers);
	free(table.rows);
}
