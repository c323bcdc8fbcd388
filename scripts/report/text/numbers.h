/*
 * Formats inexact numbers in tables: estimated calls, and times that cannot be
 * distinguished from 0.
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

/* (A column needs twice the size: characters may take two bytes.) */
#define COUNT_TEXT 64

/* "1,234" is exact, "~65.4 M ± 0.3 M" is an estimate, "> 1,234" is the counted
 * part of an unknown number.  The result may begin inside @text rather than at
 * its start. */
const char *count_text(char text[COUNT_TEXT], const struct count *count)
	__attribute__((warn_unused_result));

/*
 * A column of counts: exact ones are right-aligned, estimates end where their
 * numbers end, and the errors are in a column after that.
 */
struct count_column {
	int width;  /* width of the numbers, in characters */
	int errors; /* width of the errors, with the blank before; 0: none */
};

/* Widens the column for @count. */
void count_column_fit(struct count_column *column, const struct count *count);
/* The column for a table. */
struct column count_column(const struct count_column *column,
			   const char *title);
/* Formats @count with the column's width, in characters; @count NULL: not
 * counted. */
const char *count_column_text(char text[2 * COUNT_TEXT],
			      const struct count_column *column,
			      const struct count *count)
	__attribute__((warn_unused_result));

/* A time; "< 3.00 ms" if @bound is not 0; "-" if it is unknown. */
const char *bounded_text(char text[SHORT_TEXT], double ns, double bound,
			 bool is_known) __attribute__((warn_unused_result));

#endif
