/*
 * Tables on a terminal: rows of cells that are as wide as their column, and then the rest
 * of the line, which is a name or a path.
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
 * A cell is as wide as the terminal shows it, not as its bytes are many.  Text from
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
	const char *title; /* NULL: none, of the rest of the line */
	int width; /* < 0: text begins at the left; 0: the rest of the line */
};

struct table {
	const struct layout *layout;
	const struct column *columns; /* the last has no width */
	uint32_t cell;		      /* which is next in the row */
	size_t used;		      /* columns of the terminal, of the row */
	bool is_in_rest;	      /* what is printed has no column */
	const char *color;	      /* begins with the next cell, or NULL */
};

struct table table_begin(const struct layout *layout,
			 const struct column *columns);
/* The row of titles; @remark stands behind it, if it is not NULL. */
void table_titles(struct table *table, const char *remark);

/* The next cell of the row.  Text that is wider than its column moves those after it. */
void table_cell(struct table *table, const char *text);
/* An ellipsis stands for what the column has no room for. */
void table_cell_cut(struct table *table, const char *text);
/* Cells that come have this colour, until the other is called. */
void table_color(struct table *table, const char *color);
void table_no_color(struct table *table);

/* All cells that are left are empty; what is printed then begins the rest of the line,
 * after @indent columns. */
void table_rest(struct table *table, size_t indent);
void table_end_row(struct table *table);
/* The rest of the row, which ends: cut to what the line has room for. */
void table_name(struct table *table, struct function *function);
void table_text(struct table *table, const char *text);
/* The name that --names asks for. */
void table_names(struct table *table, const char *full, const char *brief,
		 const char *mangled);

/* A text, and spaces where it is narrower than @width; < 0: behind the text.  Returns how
 * many columns that are. */
size_t put_cell(FILE *out, const char *text, int width);

#endif
