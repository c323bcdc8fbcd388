/*
 * Calls of functions that were switched off while the program ran (--budget): how many
 * there were, from short whiles in which they were counted, and how far that may be off.
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

/* Half of a 95 % confidence interval is @error. */
struct estimate {
	double calls, error;
	bool is_known;
};

/*
 * estimate_calls - calls of a function in @off_ns nanoseconds while it was off
 *
 * @node's bursts are a random sample of that time.  The error has two parts: how much
 * bursts differ, and how far what hooks cost may be off that was taken from their length.
 * Less than two bursts say nothing: is_known is false.  Without a call in any of them
 * there are 0, and the error is the bound that 95 % of such samples keep.
 */
struct estimate estimate_calls(const struct shim_throttled_node *node,
			       double off_ns);

/*
 * estimate_path_variance - of a path's part of @calls estimated calls
 *
 * @share of the calls that were counted are its.  They come from that many @bursts, and
 * in the worst case each of those was in one path alone.
 */
double estimate_path_variance(double calls, double share, uint64_t bursts);

/* A number of calls to print. */
struct count {
	uint64_t calls; /* the best that is known */
	uint64_t exact; /* of them counted */
	double error;	/* half of the 95 % confidence interval of @calls */
	bool is_estimate;
	bool is_least; /* there were more, nobody knows how many */
};

/* Whether hooks counted them; else samples alone found the function. */
bool path_is_counted(const struct path *path);
bool sums_are_counted(const struct sums *sums);

struct count count_of_path(const struct path *path);
struct count count_of_sums(const struct sums *sums);
/* (Its functions' errors are added up as if they were independent.) */
struct count count_of_thread(const struct thread *thread);
struct count count_of_model(const struct model *model);

#endif
