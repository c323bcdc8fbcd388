/* The rows of profrun diff, for all of its formats. */
#ifndef REPORT_TEXT_DIFF_ROWS_H
#define REPORT_TEXT_DIFF_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/names.h"
#include "base/numbers.h"
#include "base/welch.h"
#include "model/options.h"

#define DIFF_CELL (SHORT_TEXT + 2) /* with a sign */

struct diff_row {
	const char *name, *mangled, *short_name;
	const char *object; /* NULL: unknown */
	/* for annotations only; NULL: unknown */
	const char *file;
	int line;
	struct welch value[2];
	struct welch calls[2];
	double variance; /* variance of the clock, in all runs */
	/* in the run that is being added: */
	double run_value;
	uint64_t run_calls;
	bool has_estimate[2]; /* estimates are among the calls of this side */
	bool is_least[2];     /* the calls of this side are a lower bound */
	/* no hook counts the calls: samples found the function */
	bool is_uncounted[2];
	struct change change;
};

struct diff_side {
	struct welch all; /* total of all functions */
	bool is_estimate; /* some of these calls are estimates */
	bool is_least;	  /* these calls are a lower bound */
	const char *command;
	uint64_t lost;
	bool has_damage; /* more may be lost */
};

struct diff {
	const struct options *options;
	enum value value;
	bool is_chosen; /* @value is */
	bool is_sampled;
	bool has_unclear; /* a printed row is unclear */
	struct diff_side side[2];
	struct diff_row *rows;
	uint32_t count, room;
	struct names names; /* numbers are those of the rows */
};

/* "slower", "not shown to differ", ...; with a question mark if the variation of
 * runs is unknown. */
const char *diff_verdict(const struct diff *diff, const struct diff_row *row);
/* Whether a function grew by more than --fail-above, in per cent of all of A,
 * and this is no noise; the same of the whole. */
bool diff_crosses(const struct diff *diff, const struct diff_row *row);
bool diff_all_crosses(const struct diff *diff);
/* "12.3 ms", with + or - */
const char *diff_value_text(const struct diff *diff, char text[DIFF_CELL],
			    double value, bool with_plus);

#endif
