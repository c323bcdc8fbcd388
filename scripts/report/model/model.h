/*
 * What all outputs print from, so that their numbers agree: the tree of call
 * paths, added up over threads, processes and nodes that mean the same path;
 * the functions in it; the threads.  Times are in ns and may be negative after
 * our own cost is subtracted: whole() and human_ns() clamp them when printed.
 */
#ifndef REPORT_MODEL_MODEL_H
#define REPORT_MODEL_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include <shim/format.h>

#include "model/exceptions.h"
#include "model/frames.h"
#include "model/locks.h"
#include "model/memory.h"
#include "names/symbols.h"
#include "read/process.h"
#include "read/recording.h"

/* Of the calls of functions that were switched off (--budget): those that were not
 * counted; see estimates.h. */
struct missing {
	uint64_t calls;	 /* estimated */
	double error;	 /* of the functions' sums: half of a 95 % interval */
	double variance; /* of the paths' parts in them */
	bool is_estimate;
	bool is_unknown; /* some calls of them cannot be estimated */
};

/* Added up over some paths. */
struct sums {
	uint64_t calls;	  /* @missing in it */
	uint64_t open;	  /* of them not finished */
	uint64_t untimed; /* of them not timed */
	struct missing missing;
	bool is_sampled; /* a sample found it, or a call from it */
	double self, self_raw;
	double total, total_raw; /* recursion counted once */
	double self_variance, total_variance;
	double self_most, total_most; /* see bounds.h */
	double tick;		      /* the coarsest clock in it; 0: exact */
	bool has_range;		      /* every finished call is in it: */
	bool has_no_range;	      /* one is not */
	double min, max;
};

struct function {
	const char *name; /* as the source has it */
	const char *mangled;
	const char *short_name; /* base/short_name.h */
	/* which of its calls, in its names as well; NULL: all */
	const char *group;
	struct object *object;	/* NULL: unknown */
	uint32_t object_number; /* or NONE */
	uint64_t address;	/* in the object's file */
	const char *file;	/* see function_line() */
	int line;
	bool line_looked_up;
	bool is_named;	     /* else the name is an address */
	bool has_hooks;	     /* calls of it were recorded */
	bool is_hook;	     /* the way from a call site to ours */
	bool is_inlined;     /* it has no code of its own, and no address */
	bool is_new;	     /* `operator new`, of any kind */
	uint64_t *histogram; /* SHIM_BUCKETS, or NULL */
	struct sums sums;
};

struct self_seen {
	double time, variance;
};

/* The two ways to the self time of nodes that were timed exactly: selftime.c. */
struct self_exactly {
	struct self_seen seen;
	double seen_cost;   /* samples that found hooks there, */
	bool is_calibrated; /* if there are samples beside the exact times */
	double raw, cost;   /* less their children's totals; ours in that */
	double child_variance;
};

struct path {
	uint32_t parent;	 /* less than its own number */
	uint32_t function;	 /* NONE: path 0, and threads' roots */
	uint32_t child, sibling; /* NONE: no more */
	uint32_t open;
	uint32_t thread;	 /* only with by_thread */
	uint64_t calls, untimed; /* @missing in the calls */
	struct missing missing;
	bool is_sampled;	 /* as that of sums */
	uint64_t own;		 /* samples that found it, none below it */
	double total, total_raw; /* with children */
	double self, self_raw;
	double cost; /* ours, in its self time */
	/* Self times as ticks show them, what hooks took not in them: of the nodes
	 * whose calls were not all timed exactly, and of the others. */
	struct self_seen seen;
	struct self_exactly exactly;
	double seen_tick;
	double own_raw;	  /* samples that found it itself, or hooks there */
	double seen_cost; /* ours, that was taken from what ticks show */
	double self_most, total_most; /* see bounds.h */
	uint64_t unseen_calls;	      /* those in neither */
	double tick;		      /* its error; 0: timed exactly */
	double self_tick;	      /* the same, or its children's */
	double self_variance;
	double variance;       /* of total */
	double raw_variance;   /* of total_raw */
	double child_variance; /* of the sum of its children's total_raw */
	double min, max;       /* max < min: unknown */
	double open_max;
	/* at least some of it; a forked process has time in calls that are not its
	 * own */
	bool is_timed;
	bool has_no_range;
};

struct thread {
	uint32_t process, tid;
	const char *name; /* "": unknown */
	uint64_t calls, untimed, open;
	struct missing missing; /* of the calls */
	double self, self_raw;
	uint64_t lost[SHIM_LOST_CAUSES];
	uint32_t path; /* its root, or NONE */
};

struct model {
	struct recording *recording;
	bool raw, by_thread;
	const struct selection *selection;
	struct hidden *hidden; /* shown.h; NULL: all is shown */
	bool is_sampled;       /* calls are samples; see model_build */
	double period_ns;      /* of them, and their enum shim_sample_mode */
	uint64_t sample_mode;
	struct object *objects;
	uint32_t object_count;
	struct function *functions;
	uint32_t function_count;
	struct frame_chains frames;
	struct path *paths; /* [0]: the root of all */
	uint32_t path_count, path_room;
	struct thread *threads;
	uint32_t thread_count, thread_room;
	double bucket_ns; /* a clock unit in the histograms */
	bool has_times, has_ranges, has_extras, has_errors;
	struct budget *budget; /* budget.h; NULL: no process had one */
	uint64_t calls, open, lost, orphans, unwound;
	uint64_t damaged;	  /* records of call trees, at least so many */
	uint64_t open_until_when; /* of @open: nobody knows */
	uint64_t lost_causes[SHIM_LOST_CAUSES];
	uint64_t lost_others[SHIM_LOST_KINDS][SHIM_LOST_CAUSES];
	double time, time_raw; /* in all recorded calls */
	double duration;       /* of the whole; 0: unknown */
	/* then of each path itself, each path with what is below it, each function
	 * itself, and with what is below it: */
	bool has_memory;
	struct memory *memory, *memory_below;
	struct memory *function_memory, *function_memory_below;
	struct memory memory_all, memory_outside; /* in no function */
	uint64_t memory_peak; /* of the process that had the most; */
	const struct process *memory_peak_process;
	double memory_peak_ns; /* after its start; 0: unknown */
	uint64_t memory_inherited, memory_untold, memory_unknown;
	uint64_t memory_early_lost;
	bool memory_has_calls; /* calls were asked for as well */
	double memory_tick_ns; /* of lifetimes; 0: they are not known */
	/* enum shim_leaks, if that of all processes is the same, else ..UNKNOWN;
	 * how many are SHIM_LEAKS_KNOWN; what the search took. */
	uint64_t memory_leaks;
	uint32_t memory_heaps, memory_heaps_searched;
	double memory_leaks_ns;
	uint64_t memory_period;	     /* bytes to a sample; 0: all were seen */
	struct snapshots *snapshots; /* snapshots.c; NULL: there are none */
	struct locks *locks;	     /* locks.c; NULL: nobody looked at them */
	struct exceptions *exceptions; /* exceptions.c, likewise */
	struct memory_part *memory_parts;
	uint32_t memory_part_count, memory_part_room;
};

extern const char *const lost_names[SHIM_LOST_CAUSES];
extern const char *const lost_kinds[SHIM_LOST_KINDS];

uint64_t lost_sum(const uint64_t lost[SHIM_LOST_CAUSES]);
/* Whether anything of any kind was. */
bool model_has_lost(const struct model *model);
/* Of files: what the damaged parts had cannot be counted any more. */
bool model_has_damage(const struct model *model);

/*
 * @options: --raw, and which functions are shown; they outlive the model.  @by_thread: paths of different threads stay apart.  @is_sampled: of the files
 * of the sampling profiler, not of calls; then the calls of a path are the
 * samples that found it or a path below, and those of a function the samples in
 * which it was on the stack.
 */
void model_build(struct model *model, struct recording *recording,
		 const struct options *options, bool by_thread,
		 bool is_sampled);
/* "calls", or "samples". */
const char *counted_name(const struct model *model);

#endif
