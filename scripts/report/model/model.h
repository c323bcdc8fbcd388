/*
 * The model: all outputs print from it, so that their numbers agree.  It has
 * the tree of call paths, added up over threads, processes and nodes with the
 * same path; the functions in it; and the threads.  Times are in ns and may be
 * negative after our own cost was subtracted: whole() and human_ns() clamp them
 * for printing.
 */
#ifndef REPORT_MODEL_MODEL_H
#define REPORT_MODEL_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include <shim/format.h>

#include "base/map.h"
#include "model/exceptions.h"
#include "model/frames.h"
#include "model/locks.h"
#include "model/memory.h"
#include "names/symbols.h"
#include "read/process.h"
#include "read/recording.h"

/* The uncounted calls of functions that were switched off (--budget); see
 * estimates.h. */
struct missing {
	uint64_t calls;	 /* estimated */
	double error;	 /* for functions: half of a 95 % confidence interval */
	double variance; /* variance of the path's share */
	bool is_estimate;
	bool is_unknown; /* a part of the calls cannot be estimated */
};

/* Added up over some paths. */
struct sums {
	uint64_t calls; /* including @missing */
	uint64_t open;	/* calls that were open at the end */
	uint64_t
		older; /* calls that were open before an attach; not in @calls */
	uint64_t untimed; /* calls that were not timed */
	struct missing missing;
	bool is_sampled; /* samples found it, or a callee of it */
	uint64_t
		guessed; /* samples of it or below whose caller of it is a guess */
	double self, self_raw;
	double total, total_raw; /* recursion counts once */
	double self_variance, total_variance;
	double self_most, total_most; /* see bounds.h */
	double tick;		      /* its coarsest clock; 0: exact */
	/* The time that it waited itself; less than @waited_least cannot be told from
	 * none.  It is known for at least a part of the calls. */
	double waited, waited_least;
	bool has_waited;
	/* true if every finished call is in min and max */
	bool has_range;
	bool has_no_range; /* one is not */
	double min, max;
	double min_most, max_most; /* as those of a path */
};

struct function {
	const char *name; /* source name */
	const char *mangled;
	const char *short_name; /* base/short_name.h */
	/* the group of its calls, which is in its names as well; NULL: all
	 * calls */
	const char *group;
	struct object *object;	/* NULL: unknown */
	uint32_t object_number; /* or NONE */
	uint64_t address;	/* in the object's file */
	const char *file;	/* see function_line() */
	int line;
	bool line_looked_up;
	bool is_named;	/* false: the name is an address */
	bool has_hooks; /* its calls were recorded */
	bool is_hook;	/* code between a call site and shim's hook */
	/* exists only inlined: no code or address of its own */
	bool is_inlined;
	bool is_python;	     /* a function of Python, which has no object */
	bool is_new;	     /* `operator new`, of any kind */
	uint64_t *histogram; /* SHIM_BUCKETS, or NULL */
	struct sums sums;
};

struct self_seen {
	double time, variance;
};

/* Self time of exactly timed nodes, in two ways: see selftime.c. */
struct self_exactly {
	struct self_seen seen;
	double seen_cost;   /* samples that found hooks there, */
	bool is_calibrated; /* if there are samples beside the exact times */
	/* total minus the children's totals, and our cost in it */
	double raw, cost;
	double child_variance;
};

struct path {
	uint32_t parent; /* lower than its own number */
	/* with options->by_line: where the function is, as an index of
	 * model->frames.places; NONE: unknown */
	uint32_t place;
	uint32_t function;	 /* NONE: path 0, and threads' roots */
	uint32_t child, sibling; /* NONE: none */
	uint32_t open, older;	 /* as those of sums */
	uint32_t thread;	 /* only with by_thread */
	uint64_t calls, untimed; /* including @missing */
	struct missing missing;
	bool is_sampled; /* as that of sums */
	uint64_t own;	 /* samples that found it itself */
	uint64_t
		guessed; /* samples of it or below whose caller of it is a guess */
	double total, total_raw; /* including children */
	double self, self_raw;
	double cost; /* our own cost in its self time */
	/* Self times from ticks, without those in hooks: of the nodes whose
	 * calls were not all timed exactly, and of the others. */
	struct self_seen seen;
	struct self_exactly exactly;
	double seen_tick;
	/* samples that found the path itself, or hooks in it */
	double own_raw;
	double seen_cost; /* our own cost, subtracted from the ticks' time */
	double self_most, total_most, above; /* see bounds.h */
	double waited, waited_least;	     /* as those of sums */
	double raw_waited,
		total_raw_waited; /* how much of it the raw times have */
	bool has_waited;
	uint64_t unseen_calls; /* calls that are in neither */
	double tick;	       /* unit of its clock; 0: timed exactly */
	double self_tick;      /* the same, or that of its children */
	double self_variance;
	double variance;     /* of total */
	double raw_variance; /* variance of total_raw */
	/* variance of the sum of its children's total_raw */
	double child_variance;
	double min, max; /* max < min: unknown */
	/* If the cost of recording is all of a call's time, the measured time; else as
	 * @min and @max. */
	double min_most, max_most;
	double open_max;
	/* at least partly; a forked process has time in calls that it did not
	 * make */
	bool is_timed;
	bool has_no_range;
};

struct thread {
	uint32_t process, tid;
	const char *name; /* "": unknown */
	uint64_t calls, untimed, open, older;
	struct missing missing; /* of the calls */
	double self, self_raw;
	uint64_t lost[SHIM_LOST_CAUSES];
	uint32_t path; /* its root, or NONE */
};

struct model {
	struct recording *recording;
	/* see reduction.h; NULL: the model is not made from one */
	const struct reduction *reduction;
	bool raw, by_thread, by_line;
	const struct selection *selection;
	struct hidden *hidden; /* see shown.h; NULL: all is shown */
	bool is_sampled;       /* calls are samples; see model_build */
	/* period of samples, and their enum shim_sample_mode */
	double period_ns;
	uint64_t sample_mode;
	struct object *objects;
	uint32_t object_count;
	struct function *functions;
	uint32_t function_count;
	struct frame_chains frames;
	struct path *paths; /* [0]: the root of all threads */
	uint32_t path_count, path_room;
	struct thread *threads;
	uint32_t thread_count, thread_room;
	double bucket_ns; /* ns per clock unit of the histograms */
	/* with by_thread; see histograms.h */
	struct map histogram_numbers;
	uint64_t **histograms;
	uint32_t histogram_count, histogram_room;
	bool has_times, has_ranges, has_extras, has_errors, has_waited;
	struct budget *budget; /* see budget.h; NULL: no process had a budget */
	uint64_t calls, open, older, lost, orphans, unwound;
	uint64_t damaged; /* records of call trees; a lower bound */
	uint64_t guessed; /* samples in which a caller is a guess */
	/* The paths' guessed are upper bounds. */
	bool guesses_are_most;
	uint64_t open_until_when; /* of @open: calls whose end is unknown */
	uint64_t lost_causes[SHIM_LOST_CAUSES];
	uint64_t lost_others[SHIM_LOST_KINDS][SHIM_LOST_CAUSES];
	double time, time_raw; /* in all recorded calls */
	double duration;       /* duration of the whole run; 0: unknown */
	/* then by path: its own memory and its total; by function: its own
	 * memory and its total: */
	bool has_memory;
	struct memory *memory, *memory_below;
	struct memory *function_memory, *function_memory_below;
	struct memory memory_all, memory_outside; /* memory of no function */
	uint64_t memory_peak; /* the process with the highest peak */
	const struct process *memory_peak_process;
	double memory_peak_ns; /* time after its start; 0: unknown */
	uint64_t memory_inherited, memory_untold, memory_unknown;
	uint64_t memory_early_lost;
	uint64_t memory_older; /* releases of blocks from before an attach */
	bool memory_has_calls; /* the user asked for calls as well */
	double memory_tick_ns; /* unit of lifetimes; 0: unknown */
	/* enum shim_leaks, if it is equal in all processes, otherwise
	 * ..UNKNOWN; the number of processes with SHIM_LEAKS_KNOWN; the
	 * duration of the search. */
	uint64_t memory_leaks;
	uint32_t memory_heaps, memory_heaps_searched;
	double memory_leaks_ns;
	/* bytes for each sample; 0: every block was recorded */
	uint64_t memory_period;
	struct snapshots *snapshots; /* see snapshots.c; NULL: none */
	struct locks *locks;	     /* see locks.c; NULL: not recorded */
	/* see exceptions.c; NULL: not recorded */
	struct exceptions *exceptions;
	struct memory_part *memory_parts;
	uint32_t memory_part_count, memory_part_room;
};

extern const char *const lost_names[SHIM_LOST_CAUSES];
extern const char *const lost_kinds[SHIM_LOST_KINDS];

uint64_t lost_sum(const uint64_t lost[SHIM_LOST_CAUSES]);
/* Whether anything of any kind was lost. */
bool model_has_lost(const struct model *model);
/* Of files: what the damaged parts had cannot be counted any more. */
bool model_has_damage(const struct model *model);

/*
 * @options: --raw, and the functions to show; they must outlive the model.
 * @by_thread: paths of different threads stay separate.  @is_sampled: use the
 * files of the sampling profiler, not those of calls; then the calls of a path
 * are the samples that found it or a path below it, and those of a function are
 * the samples in which it was on the stack.
 */
void model_build(struct model *model, struct recording *recording,
		 const struct options *options, bool by_thread,
		 bool is_sampled);
/* The three parts of model_build(): finds the functions; adds up the nodes of
 * all files; measures what was added up. */
void model_begin(struct model *model, struct recording *recording,
		 const struct options *options, bool by_thread,
		 bool is_sampled);
void model_add_up(struct model *model);
void model_measure(struct model *model);
/* The new path; its parent is an earlier one.  The paths may move. */
uint32_t model_add_path(struct model *model, uint32_t parent, uint32_t function,
			uint32_t thread);
/* Frees a model of calls: functions, paths and threads. */
void model_free(struct model *model);
/* "calls", or "samples". */
const char *counted_name(const struct model *model);

#endif
