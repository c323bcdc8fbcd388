/*
 * Tables on a terminal: rows of cells with the width of their column, and then
 * the rest of the line, which is a name or a path.
 *
 *	static const struct column columns[] = {
 *		{ "calls", 15 }, { "object", -12 }, { "function", 0 }
 *	};
 *	struct table table = table_begin(layout, columns);
 *
 *	table_titles(&table, "  (by calls)");
 *	table_cell(&table, human_count(text, calls));
 *	table_cell(&table, object);
 *	table_name(&table, function);
 *
 * A cell's width is that on the terminal, not its number of bytes.  Text from
 * outside is escaped.
 */
#ifndef REPORT_TEXT_TABLE_H
#define REPORT_TEXT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "model/model.h"
#include "text/layout.h"

struct column {
	const char *title; /* NULL: the rest of the line has no title */
	int width;	   /* < 0: aligned left; 0: the rest of the line */
};

struct table {
	const struct layout *layout;
	const struct column *columns; /* the last column has width 0 */
	uint32_t cell;		      /* the next cell of the row */
	/* terminal columns that the row has used */
	size_t used;
	/* the cells are done; text goes to the rest of the line */
	bool is_in_rest;
	/* colour from the next cell on, or NULL */
	const char *color;
};

struct table table_begin(const struct layout *layout,
			 const struct column *columns);
/* Prints the row of titles, followed by @remark if it is not NULL. */
void table_titles(struct table *table, const char *remark);

/* Prints the next cell.  A text that is wider than its column moves the later
 * cells. */
void table_cell(struct table *table, const char *text);
/* The same, but an ellipsis replaces text that does not fit. */
void table_cell_cut(struct table *table, const char *text);
/* Later cells have this colour, until the second function is called. */
void table_color(struct table *table, const char *color);
void table_no_color(struct table *table);

/* Leaves the remaining cells empty; output then begins the rest of the line,
 * after @indent columns. */
void table_rest(struct table *table, size_t indent);
void table_end_row(struct table *table);
/* Prints the rest of the row, cut to the line, and ends the row. */
void table_name(struct table *table, struct function *function);
/* The same, with a note behind the name. */
void table_noted_name(struct table *table, struct function *function,
		      const char *note);
void table_text(struct table *table, const char *text);
/* The form of the name that --names asks for. */
void table_names(struct table *table, const char *full, const char *brief,
		 const char *mangled);

/* Prints a text with spaces before it up to @width; with @width < 0, the spaces
 * follow.  Returns the number of columns. */
size_t put_cell(FILE *out, const char *text, int width);

#endif
