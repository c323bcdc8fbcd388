/*
 * Formats inexact numbers.  An estimate has a unit, only as many digits as its
 * error justifies, and a sign before it, so that no reader takes it for a
 * count.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "base/text.h"
#include "text/numbers.h"

#define PLUS_MINUS "\u00b1"

/* Number and error have the same unit, and as many decimals as the error has a
 * significant digit. */
struct scale {
	double unit;
	const char *name;
	int decimals;
};

static struct scale scale_of(double calls, double error)
{
	static const struct scale scales[] = {
		{ 1e18, " E", 0 }, { 1e15, " P", 0 }, { 1e12, " T", 0 },
		{ 1e9, " G", 0 },  { 1e6, " M", 0 },  { 1e3, " k", 0 }
	};
	struct scale scale = { 1, "", 0 };
	double most = fmax(calls, error);
	size_t i;

	for (i = 0; i < sizeof(scales) / sizeof(*scales); i++)
		if (most >= 10 * scales[i].unit ||
		    (most >= scales[i].unit && scales[i].unit >= 1e6)) {
			scale = scales[i];
			break;
		}
	if (scale.unit > 1)
		scale.decimals = error < 0.0095 * scale.unit ? 3 :
				 error < 0.095 * scale.unit  ? 2 :
				 error < 9.5 * scale.unit    ? 1 :
							       0;
	return scale;
}

/* @error NULL: not wanted. */
static void put_estimate(char number[COUNT_TEXT], char *error,
			 const struct count *count)
{
	double calls = (double)count->calls;
	struct scale scale = scale_of(calls, count->error);
	double least = pow(10, -scale.decimals);
	/* An estimate always has an error above 0. */
	double shown = ceil(count->error / scale.unit / least - 1e-9) * least;

	snprintf(number, COUNT_TEXT, "~%.*f%s", scale.decimals,
		 calls / scale.unit, scale.name);
	snprintf(error, COUNT_TEXT, PLUS_MINUS " %.*f%s", scale.decimals,
		 fmax(shown, least), scale.name);
}

/* Writes both parts; *@error is "" if there is none. */
static void put_parts(char number[COUNT_TEXT], char error[COUNT_TEXT],
		      const struct count *count)
{
	char text[SHORT_TEXT];

	*error = '\0';
	if (count->is_estimate && !count->is_least)
		put_estimate(number, error, count);
	else
		snprintf(number, COUNT_TEXT, "%s%s",
			 count->is_least ? "> " : "",
			 human_count(text, count->calls));
}

const char *count_text(char text[COUNT_TEXT], const struct count *count)
{
	char number[COUNT_TEXT], error[COUNT_TEXT];

	put_parts(number, error, count);
	snprintf(text, COUNT_TEXT, "%.30s%s%.30s", number, *error ? " " : "",
		 error);
	return text;
}

void count_column_fit(struct count_column *column, const struct count *count)
{
	char number[COUNT_TEXT], error[COUNT_TEXT];
	int width;

	put_parts(number, error, count);
	width = (int)text_columns(number);
	if (width > column->width)
		column->width = width;
	width = *error ? (int)text_columns(error) + 1 : 0;
	if (width > column->errors)
		column->errors = width;
}

struct column count_column(const struct count_column *column, const char *title)
{
	return (struct column){
		.title = keep_format("%*s%*s", column->width, title,
				     column->errors, ""),
		.width = column->width + column->errors,
	};
}

const char *count_column_text(char text[2 * COUNT_TEXT],
			      const struct count_column *column,
			      const struct count *count)
{
	char number[COUNT_TEXT] = "-", error[COUNT_TEXT] = "";
	int used, i;

	if (count)
		put_parts(number, error, count);
	used = column->width + column->errors;
	if (used > COUNT_TEXT)
		used = COUNT_TEXT;
	snprintf(text, COUNT_TEXT, "%*s", column->width, number);
	if (!column->errors)
		return text;
	strcat(text, " ");
	strcat(text, error);
	for (i = (int)text_columns(text); i < used; i++)
		strcat(text, " ");
	return text;
}

const char *bounded_text(char text[SHORT_TEXT], double ns, double bound,
			 bool is_known)
{
	char below[SHORT_TEXT];

	if (!is_known || bound <= 0)
		return time_text(text, ns, is_known);
	snprintf(text, SHORT_TEXT, "< %.20s", human_ns(below, bound));
	return text;
}
