/*
 * Reads the counters of monitor(3) in a recording; <shim/format.h> describes
 * them.
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
	struct shim_histogram *given; /* the header, without the ranges */
	/* path of the gmon.out or mon.out to be written */
	const char *file;
	struct pchist_range *ranges;
	uint64_t bins; /* bins of all ranges together */
	struct pchist_arcs *arcs;
	uint32_t arcs_count;
};

/* @name is for messages.  Returns false if the file is empty or, with a
 * warning, if it is damaged. */
bool pchist_read(struct pchist *histogram, int directory, const char *entry,
		 const char *name);
void pchist_free(struct pchist *histogram);

/* The call counts in a file, or NULL. */
const struct shim_arc *arcs_read(int directory, const char *entry,
				 const char *name, uint64_t *count);

/* The address of samples that no histogram has a counter for; beside SHIM_SAMPLE_CUT, but in
 * no recording. */
#define PCHIST_OUTSIDE (SHIM_SAMPLE_CUT + 1)

/* Converts the counters to a file of samples for calltree_open(): each counter
 * that is not 0 becomes a function without callers.  Returns a negative value
 * if there are no counters, or if a part of them went into earlier files. */
int pchist_as_samples(int directory, const char *entry, const char *name);

#endif
