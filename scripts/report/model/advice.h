/* What a user can do for better numbers. */
#ifndef REPORT_MODEL_ADVICE_H
#define REPORT_MODEL_ADVICE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct function;
struct model;

/* Parts that objects of recorded functions may lack. */
enum lack {
	LACKS_SYMBOLS, /* the symbol table: functions appear as addresses */
	LACKS_LINES, /* debug information that can be read: lines are unknown */
	LACKS_DEBUG, /* any debug information */
	LACKS_ZSTD,  /* a libdw that reads what zstd has compressed */
};

/* Lists the paths of at most @room objects that lack @lack; returns the number
 * of all of them. */
uint32_t advice_lacking(const struct model *model, enum lack lack,
			const char **paths, uint32_t room);

/* The reason why functions cannot be found by name, for the end of a message: an object
 * without symbols; or "". */
const char *advice_no_names(const struct model *model);

/* Whether arguments or results were to be recorded, which need debug information. */
bool advice_wants_values(const struct model *model);

/* Whether the recording took more time than the recorded program. */
bool advice_is_mostly_cost(const struct model *model);

/* Whether recording took more than a third of the time of exactly counted
 * calls: a budget would limit it. */
bool advice_is_costly(const struct model *model);

/* Whether our own cost is a figure of the start: of exact times, without samples. */
bool advice_is_not_calibrated(const struct model *model);

/* The most time in ns, over all threads, that the run takes with a budget of 10 %.  How
 * much less it takes is unknown: waiting for a processor is in the time of this run. */
double advice_budget_time(const struct model *model);

/* Whether the run was too short for meaningful ticks or samples. */
bool advice_is_short(const struct model *model);

/* The time in ns in which threads waited, for a processor or asleep, at least.  0 if it is
 * unknown, or less than a third of the time of the calls, or shown in a column. */
double advice_waiting(const struct model *model);

/* Whether most calls take less time than their recording. */
bool advice_has_trivial_calls(const struct model *model);

/* Whether functions of C++ were recorded. */
bool advice_has_cxx(const struct model *model);

/* The function with the most trivial calls that is not in @reported; or NULL. */
const struct function *
advice_most_trivial(const struct model *model,
		    const struct function *const *reported,
		    uint32_t reported_count);

#endif
