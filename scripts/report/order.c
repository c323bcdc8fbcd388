/*
 * The order of functions in every table.  Rows that are equal come in the
 * order of their names, so that two reports of one recording are the same.
 */
#include <stdlib.h>
#include <string.h>

#include "report.h"

struct row {
	double key;
	uint64_t calls;
	const char *name;
	uint32_t function;
};

enum sort effective_sort(const struct model *model,
			 const struct options *options)
{
	return options->sort_given || model->has_times ? options->sort :
	       SORT_CALLS;
}

double mean_ns(const struct sums *sums)
{
	uint64_t calls = sums->calls - sums->untimed;

	return calls ? sums->total / (double)calls : 0;
}

static double sort_key(const struct sums *sums, enum sort sort)
{
	switch (sort) {
	case SORT_SELF:
		return sums->self;
	case SORT_TOTAL:
		return sums->total;
	case SORT_MEAN:
		return mean_ns(sums);
	case SORT_MAX:
		return sums->has_range ? sums->max : -1;
	default:
		break;
	}
	return 0;
}

static int compare_rows(const void *left, const void *right)
{
	const struct row *a = left, *b = right;

	if (a->key != b->key)
		return a->key > b->key ? -1 : 1;
	if (a->calls != b->calls)
		return a->calls > b->calls ? -1 : 1;
	if (strcmp(a->name, b->name))
		return strcmp(a->name, b->name);
	return a->function < b->function ? -1 : a->function > b->function;
}

uint32_t *order_functions(const struct model *model, const struct sums *sums,
			  const struct options *options, uint32_t *count)
{
	enum sort sort = effective_sort(model, options);
	struct row *rows = allocate(model->function_count, sizeof(*rows));
	uint32_t *order = allocate(model->function_count, sizeof(*order));
	uint32_t i, n = 0;

	for (i = 0; i < model->function_count; i++) {
		if (!sums[i].calls && !sums[i].open)
			continue;
		rows[n++] = (struct row){
			.key = sort_key(&sums[i], sort),
			.calls = sums[i].calls,
			.name = model->functions[i].name,
			.function = i,
		};
	}
	qsort(rows, n, sizeof(*rows), compare_rows);
	for (i = 0; i < n; i++)
		order[i] = rows[i].function;
	free(rows);
	*count = n;
	return order;
}
