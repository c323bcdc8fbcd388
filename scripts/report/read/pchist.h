/*
 * Counters of monitor(3) in a recording: <shim/format.h> says what they are.
 */
#ifndef REPORT_READ_PCHIST_H
#define REPORT_READ_PCHIST_H

#include <stdbool.h>
#include <stdint.h>
#include <shim/format.h>

struct pchist_range {
	struct shim_histogram_range given;
	const uint32_t *counts;
	uint64_t samples;
	bool is_written;
};

struct pchist_arcs {
	const struct shim_arc *arc;
	uint64_t count;
};

struct pchist {
	struct shim_histogram *given; /* without the ranges */
	const char *file;	      /* where it is to be written */
	struct pchist_range *ranges;
	uint64_t bins; /* of all of them */
	struct pchist_arcs *arcs;
	uint32_t arcs_count;
};

/* @name is for messages.  False: there is nothing in it, or a warning says that
 * it is damaged. */
bool pchist_read(struct pchist *histogram, int directory, const char *entry,
		 const char *name);
void pchist_free(struct pchist *histogram);

/* The calls in a file, or NULL. */
const struct shim_arc *arcs_read(int directory, const char *entry,
				 const char *name, uint64_t *count);

/* The same as a file of samples, for calltree_open: of each counter that is not 0 a
 * function without callers.  Negative: there is nothing, or a part of it went
 * into files before. */
int pchist_as_samples(int directory, const char *entry, const char *name);

#endif
