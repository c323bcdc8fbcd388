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
/* The mean length of a call; 0 if it is unknown, as when the total has time of calls that are
 * not counted. */
double mean_ns(const struct sums *sums);
bool mean_is_known(const struct sums *sums);

#endif
