/* One process of a recording: its own description (meta, images) and its
 * files. */
#ifndef REPORT_READ_PROCESS_H
#define REPORT_READ_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <shim/format.h>

#include "read/calltree.h"
#include "read/images.h"
#include "read/jit_map.h"

/* A chunk of a file and its address in the program. */
struct file_range {
	uint64_t begin, size;
	uint32_t file; /* number of the file in process->files */
};

/* N.coverage; see coverage.c. */
struct coverage_file {
	const char *name;
	const unsigned char *data;
	uint64_t size;
};

enum end_source {
	END_UNKNOWN, /* unknown: the last time seen is a lower bound */
	END_META,
	END_STATUS /* the wait status that profrun saw */
};

struct process {
	const char *name; /* "PID.N"; in a part "PART/PID.N" */
	uint32_t part;
	uint32_t pid, number;
	bool has_meta;	       /* false: its times are unknown */
	bool is_main;	       /* an image of the process that profrun ran */
	struct shim_meta meta; /* missing fields of a cut file are zero */
	/* what to add to its CLOCK_MONOTONIC for that of the part's first process */
	uint64_t shift_ns;
	double unit_ns; /* ns per clock unit */
	bool unit_is_measured;
	uint64_t end_clock;
	enum end_source end_source;
	uint64_t latest_clock; /* latest clock value in the recording */
	uint64_t limit_clock;  /* no clock value can be later */
	struct image *images;  /* by start */
	uint32_t image_count;
	struct image_index *image_index; /* images.c's */
	uint64_t images_lost;
	struct tree_file *files;
	uint32_t file_count;
	struct file_range *ranges; /* chunks of all files, by @begin */
	uint32_t range_count;
	struct coverage_file *coverage;
	uint32_t coverage_count;
	struct jit_map jit_map;
};

/* The last value of @key in meta's strings, or NULL. */
const char *process_string(const struct process *process, const char *key);
/* Whether the end of @value, a result of process_string(), may be missing
 * because meta was full. */
bool process_string_is_cut(const struct process *process, const char *value);
double process_ns(const struct process *process, uint64_t clock);
/* The length of the ticks that timed calls, in clock units; 0: there was no coarse clock.
 * (Lifetimes of blocks count the kernel's ticks, meta.tick.) */
uint64_t process_tick(const struct process *process);
/* Whether its time of day at the start is known, and so the time of day when its
 * CLOCK_MONOTONIC was 0. */
bool process_has_boot(const struct process *process);
int64_t process_boot_ns(const struct process *process);
/* Whether two processes have the same CLOCK_MONOTONIC.  Other hosts, boots and time
 * namespaces have others. */
bool process_shares_clock(const struct process *a, const struct process *b);
/* Whether the process wrote how much processor time it took. */
bool process_has_cpu(const struct process *process);
/* That time, from the recording's begin to its end. */
double process_cpu_ns(const struct process *process);
/* The most events that one thread of the process can have recorded: an event takes longer
 * than a nanosecond.  2^58 if the length of the run is unknown. */
uint64_t process_count_limit(const struct process *process);
/* Stores @clock if it is the latest clock value so far and possible. */
void process_see_clock(struct process *process, uint64_t clock);

/* Whether NAME[:ARGUMENTS] is in the list of the process's profilers, to which those that
 * were loaded belong. */
bool process_has_profile(const struct process *process, const char *name);
/* Whether it has a file of counted calls. */
bool process_has_calls(const struct process *process);

/* Whether @meta->lost has calls only: older programs counted lost samples there, too. */
bool meta_counts_calls_apart(const struct shim_meta *meta);

/* @directory is that of the process, @path that of the recording. */
void read_meta(struct process *process, int directory, const char *path);
void read_images(struct process *process, int directory, const char *path);

#endif
