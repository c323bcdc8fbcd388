/*
 * How tables show numbers that are not exact: calls that are estimates, and times that
 * cannot be told from 0.
 */
#ifndef REPORT_TEXT_NUMBERS_H
#define REPORT_TEXT_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/numbers.h"
#include "model/estimates.h"
#include "text/table.h"

struct path;
struct sums;

/* (Of a column twice as much: characters may take two bytes.) */
#define COUNT_TEXT 64

/* "1,234" is exact, "~65.4 M ± 0.3 M" an estimate, "> 1,234" the part that was
 * counted of what nobody knows.  What is returned need not begin where @text does. */
const char *count_text(char text[COUNT_TEXT], const struct count *count)
	__attribute__((warn_unused_result));

/*
 * A column of them: exact counts end below each other, the others where their numbers
 * do, and the errors stand in a column behind.
 */
struct count_column {
	int width;  /* of numbers, in characters */
	int errors; /* of errors, with the blank before; 0: there are none */
};

/* The column gets wide enough for @count. */
void count_column_fit(struct count_column *column, const struct count *count);
/* As a column of a table. */
struct column count_column(const struct count_column *column,
			   const char *title);
/* Of that width, in characters; @count NULL: nothing counts these. */
const char *count_column_text(char text[2 * COUNT_TEXT],
			      const struct count_column *column,
			      const struct count *count)
	__attribute__((warn_unused_result));

/* A time, "< 3.00 ms" when @bound is not 0, or "-" when nobody knows it. */
const char *bounded_text(char text[SHORT_TEXT], double ns, double bound,
			 bool is_known) __attribute__((warn_unused_result));

#endif
