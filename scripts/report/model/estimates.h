/*
 * Estimates the calls of functions that were switched off (--budget), from
 * short bursts in which they were counted, with the error of the estimate.
 */
#ifndef REPORT_MODEL_ESTIMATES_H
#define REPORT_MODEL_ESTIMATES_H

#include <stdbool.h>
#include <stdint.h>
#include <shim/format.h>

struct model;
struct path;
struct sums;
struct thread;

/* @error is half of a 95 % confidence interval. */
struct estimate {
	double calls, error;
	bool is_known;
};

/*
 * estimate_calls - estimates the calls of a function in the @off_ns nanoseconds
 * while it was off
 *
 * @node's bursts are a random sample of that time.  The error has two parts:
 * how much bursts differ, and the uncertainty of the hooks' cost, which was
 * subtracted from their length.  Fewer than two bursts are not enough: is_known
 * is false.  If no burst has a call, the estimate is 0, and the error is the
 * bound that 95 % of such samples keep.
 */
struct estimate estimate_calls(const struct shim_throttled_node *node,
			       double off_ns);

/* The program ran slower in the bursts of the process with @meta, so it was called more often
 * outside of them; and its pace has an error, too. */
void estimate_correct_pace(struct estimate *estimate,
			   const struct shim_meta *meta);

/*
 * estimate_path_variance - the variance of a path's part of @calls estimated
 * calls
 *
 * @share is the path's share of the counted calls, one of @paths.  The calls come from @bursts
 * bursts; in the worst case, each burst was in one path only.  A path of several that no
 * burst saw may have 3 of @bursts, and a path that all saw may lack as many.
 */
double estimate_path_variance(double calls, double share, uint64_t bursts,
			      uint32_t paths);

/* A number of calls to print. */
struct count {
	uint64_t calls; /* the best estimate */
	uint64_t exact; /* the part that was counted */
	double error;	/* half of the 95 % confidence interval of @calls */
	bool is_estimate;
	/* a lower bound: the number of further calls is unknown */
	bool is_least;
};

/* Whether hooks counted the function's calls; otherwise only samples found
 * it. */
bool path_is_counted(const struct path *path);
bool sums_are_counted(const struct sums *sums);

struct count count_of_path(const struct path *path);
struct count count_of_sums(const struct sums *sums);
/* (Its functions' errors are added up as if they were independent.) */
struct count count_of_thread(const struct thread *thread);
struct count count_of_model(const struct model *model);

#endif
