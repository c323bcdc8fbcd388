/* Sorts rows by --sort. */
#ifndef REPORT_MODEL_ROW_ORDER_H
#define REPORT_MODEL_ROW_ORDER_H

#include <stdint.h>

#include "model/options.h"

struct model;
struct part_sums;
struct sums;

/* The numbers of all called functions, sorted by --sort. */
uint32_t *row_order_functions(const struct model *model,
			      const struct sums *sums,
			      const struct options *options, uint32_t *count);
/* The same for some paths. */
uint32_t *row_order_part(const struct model *model,
			 const struct part_sums *part,
			 const struct options *options, uint32_t *count);
enum sort effective_sort(const struct model *model,
			 const struct options *options);
double mean_ns(const struct sums *sums);

#endif
