/* One process of a recording: what it says of itself, and its files. */
#ifndef REPORT_READ_PROCESS_H
#define REPORT_READ_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <shim/format.h>

#include "read/calltree.h"
#include "read/images.h"

/* A chunk of a file, where the program had it. */
struct file_range {
	uint64_t begin, size;
	uint32_t file; /* of the process's */
};

/* N.coverage; see coverage.c. */
struct coverage_file {
	const char *name;
	const unsigned char *data;
	uint64_t size;
};

enum end_source {
	END_UNKNOWN, /* the last time seen: a lower bound */
	END_META,
	END_STATUS /* profrun saw it */
};

struct process {
	const char *name; /* "PID.N", in a part "PART/PID.N" */
	uint32_t part;
	uint32_t pid, number;
	bool has_meta;	       /* else no time of it is known */
	bool is_main;	       /* an image of what profrun ran */
	struct shim_meta meta; /* zero where it was cut */
	double unit_ns;	       /* of the clock */
	bool unit_is_measured;
	uint64_t end_clock;
	enum end_source end_source;
	uint64_t latest_clock; /* seen anywhere in it */
	uint64_t limit_clock;  /* no clock value can be later */
	struct image *images;  /* by start */
	uint32_t image_count;
	struct image_index *image_index; /* images.c's */
	uint64_t images_lost;
	struct tree_file *files;
	uint32_t file_count;
	struct file_range *ranges; /* of all of them, by @begin */
	uint32_t range_count;
	struct coverage_file *coverage;
	uint32_t coverage_count;
};

/* The value of a key in meta's strings, or NULL. */
const char *process_string(const struct process *process, const char *key);
/* Whether @value, which process_string() returned, may have lost its end because meta
 * was full. */
bool process_string_is_cut(const struct process *process, const char *value);
double process_ns(const struct process *process, uint64_t clock);
/* Remembers the latest time seen, if it is possible at all. */
void process_see_clock(struct process *process, uint64_t clock);

/* Whether NAME[:ARGUMENTS] is among what the process was profiled with. */
bool process_has_profile(const struct process *process, const char *name);

/* @directory is the process's, @path the recording's. */
void read_meta(struct process *process, int directory, const char *path);
void read_images(struct process *process, int directory, const char *path);

#endif
