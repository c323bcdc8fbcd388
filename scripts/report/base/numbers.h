/* Formats numbers for people. */
#ifndef REPORT_BASE_NUMBERS_H
#define REPORT_BASE_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

#define SHORT_TEXT 32

/* Formats a time: "12.3 ms", "1.00 s"; at most 9 columns.  The result may begin
 * inside @text rather than at its start. */
const char *human_ns(char text[SHORT_TEXT], double ns)
	__attribute__((warn_unused_result));
/* "1,234,567" */
const char *human_count(char text[SHORT_TEXT], uint64_t count)
	__attribute__((warn_unused_result));
/* A value for printing as an integer: never negative, never undefined. */
static inline uint64_t whole(double value)
{
	if (!(value > 0))
		return 0;
	/* Above 2^52 there are no fractions, and 0.5 would be rounded, too. */
	if (value < 0x1p52)
		return (uint64_t)(int64_t)(value + 0.5);
	return value < 9e18 ? (uint64_t)value : 9000000000000000000ull;
}
/* "1.5 MiB" */
const char *human_bytes(char text[SHORT_TEXT], uint64_t bytes)
	__attribute__((warn_unused_result));

/* Reads "1.5s", "20ms", "300us", "7ns", "0"; false: it is none of these. */
bool read_time(const char *text, double *ns);

/* For all text outputs: a time, or "-" if it is unknown. */
const char *time_text(char text[SHORT_TEXT], double ns, bool is_known);

#endif
