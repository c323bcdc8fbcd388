/*
 * Sorts the functions of every table.  Equal rows are sorted by name, so that
 * two reports of one recording are the same.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "model/model.h"
#include "model/options.h"
#include "model/row_order.h"
#include "model/totals.h"

struct row {
	double key;
	uint64_t calls;
	const char *name;
	uint32_t function;
};

enum sort effective_sort(const struct model *model,
			 const struct options *options)
{
	/* Later values sort rows of memory. */
	bool is_of_calls = options->sort <= SORT_MAX;

	if (options->sort_given && is_of_calls)
		return options->sort;
	if (!model->has_times)
		return SORT_CALLS;
	return is_of_calls ? options->sort : SORT_SELF;
}

bool mean_is_known(const struct sums *sums)
{
	return sums->calls > sums->untimed && sums->older == 0;
}

double mean_ns(const struct sums *sums)
{
	uint64_t calls = sums->calls - sums->untimed;

	return mean_is_known(sums) ? sums->total / (double)calls : 0;
}

static double sort_key(const struct sums *sums, enum sort sort)
{
	switch (sort) {
	case SORT_SELF: return sums->self;
	case SORT_TOTAL: return sums->total;
	case SORT_MEAN: return mean_ns(sums);
	case SORT_MAX: return sums->has_range ? sums->max : -1;
	default: break;
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

/* Sorts the functions @some, or all if it is NULL. */
static uint32_t *order(const struct model *model, const struct sums *sums,
		       const uint32_t *some, const struct options *options,
		       uint32_t *count)
{
	enum sort sort = effective_sort(model, options);
	struct row *rows = allocate(*count, sizeof(*rows));
	uint32_t *numbers = allocate(*count, sizeof(*numbers));
	uint32_t i, n = 0;

	for (i = 0; i < *count; i++) {
		uint32_t function = some ? some[i] : i;

		if (!sums_are_there(&sums[function]))
			continue;
		rows[n++] = (struct row){
			.key = sort_key(&sums[function], sort),
			.calls = sums[function].calls,
			.name = model->functions[function].name,
			.function = function,
		};
	}
	qsort(rows, n, sizeof(*rows), compare_rows);
	for (i = 0; i < n; i++)
		numbers[i] = rows[i].function;
	free(rows);
	*count = n;
	return numbers;
}

uint32_t *row_order_functions(const struct model *model,
			      const struct sums *sums,
			      const struct options *options, uint32_t *count)
{
	*count = model->function_count;
	return order(model, sums, NULL, options, count);
}

uint32_t *row_order_part(const struct model *model,
			 const struct part_sums *part,
			 const struct options *options, uint32_t *count)
{
	*count = part->count;
	return order(model, part->sums, part->functions, options, count);
}
