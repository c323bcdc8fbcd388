/* What the user can do for better numbers. */
#ifndef REPORT_MODEL_ADVICE_H
#define REPORT_MODEL_ADVICE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct function;
struct model;

/* Objects of recorded functions that lack something. */
enum lack {
	LACKS_SYMBOLS, /* it is stripped, and functions are shown by address */
	LACKS_LINES,   /* no debug information, so that lines are unknown */
};

/* The paths of those that lack @lack, at most @room; returns how many there are. */
uint32_t advice_lacking(const struct model *model, enum lack lack,
			const char **paths, uint32_t room);

/* Whether recording took longer than what was recorded. */
bool advice_is_mostly_cost(const struct model *model);

/* Whether more than a third of the time of exactly counted calls was our own cost: a
 * budget would keep it small. */
bool advice_is_costly(const struct model *model);

/* Whether our own cost is a figure of the start: of exact times, without samples. */
bool advice_is_not_calibrated(const struct model *model);

/* How many times as long as without hooks the run takes with a budget of 10 %, by the
 * number of its calls; 0: unknown. */
double advice_budget_slowdown(const struct model *model);

/* Whether the run was too short for ticks or samples to say much. */
bool advice_is_short(const struct model *model);

/* Whether most calls take less time than recording them does. */
bool advice_has_trivial_calls(const struct model *model);

/* Whether functions of C++ were recorded. */
bool advice_has_cxx(const struct model *model);

/* The function with the most trivial calls, but for those of @told; or NULL. */
const struct function *advice_most_trivial(const struct model *model,
					   const struct function *const *told,
					   uint32_t told_count);

#endif
