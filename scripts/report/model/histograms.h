/* How long calls took: a histogram for each function, and with by_thread one
 * for each function of each thread. */
#ifndef REPORT_MODEL_HISTOGRAMS_H
#define REPORT_MODEL_HISTOGRAMS_H

#include <stdint.h>

#include "model/model.h"

/* Adds @calls of @path's function that are in @bucket. */
void histogram_add(struct model *model, const struct path *path, int bucket,
		   uint64_t calls);
/* Of a model with by_thread; NULL: no call of @thread is in one. */
const uint64_t *histogram_of_thread(const struct model *model, uint32_t thread,
				    uint32_t function);

#endif
