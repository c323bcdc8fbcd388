/* Cells with numbers, as the report prints them. */
#ifndef REPORT_SCREEN_NUMBERS_H
#define REPORT_SCREEN_NUMBERS_H

#include <stdbool.h>

struct model;
struct path;
struct row;
struct sums;

#define TIME_WIDTH    9
#define PERCENT_WIDTH 6

/* The width of a cell of calls. */
int calls_width(const struct model *model);

void cell_percent(struct row *row, double part, double all, bool is_known);
/* @above: a time that includes this one. */
void cell_self(struct row *row, const struct sums *sums, double above);
void cell_total(struct row *row, const struct sums *sums, double above);
void cell_mean(struct row *row, const struct model *model,
	       const struct sums *sums);
void cell_calls(struct row *row, const struct model *model,
		const struct sums *sums);
void cell_path_calls(struct row *row, const struct model *model,
		     const struct path *path);

#endif
