/*
 * Writes tables.  The writer knows the columns, so the same code aligns titles
 * and cells.  It also counts the terminal columns that a row has used, so that
 * names are cut at the end of the line.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "model/model.h"
#include "text/layout.h"
#include "text/table.h"

#define NAME_MIN 8 /* minimum for a text, however narrow the terminal is */

static void put_spaces(FILE *out, size_t count)
{
	static const char spaces[] = "                                ";
	size_t most = sizeof(spaces) - 1, part;

	for (; count > 0; count -= part) {
		part = count < most ? count : most;
		fwrite(spaces, 1, part, out);
	}
}

size_t put_cell(FILE *out, const char *text, int width)
{
	size_t columns = text_columns(text), room = (size_t)abs(width);
	size_t spaces = room > columns ? room - columns : 0;

	if (width > 0)
		put_spaces(out, spaces);
	put_text(out, text);
	if (width < 0)
		put_spaces(out, spaces);
	return columns + spaces;
}

struct table table_begin(const struct layout *layout,
			 const struct column *columns)
{
	return (struct table){ .layout = layout, .columns = columns };
}

/* One space separates cells; two separate the rest of the line. */
static void separate(struct table *table)
{
	size_t spaces = table->cell == 0		       ? 0 :
			table->columns[table->cell].width == 0 ? 2 :
								 1;

	put_spaces(table->layout->out, spaces);
	table->used += spaces;
}

void table_cell(struct table *table, const char *text)
{
	FILE *out = table->layout->out;

	separate(table);
	if (table->color)
		fputs(table->color, out);
	table->color = NULL;
	table->used += put_cell(out, text, table->columns[table->cell].width);
	table->cell++;
}

void table_cell_cut(struct table *table, const char *text)
{
	size_t room = (size_t)abs(table->columns[table->cell].width);
	size_t columns = text_columns(text);

	separate(table);
	put_text_cut(table->layout->out, text, room);
	put_spaces(table->layout->out, room > columns ? room - columns : 0);
	table->used += room;
	table->cell++;
}

void table_color(struct table *table, const char *color)
{
	if (table->layout->color)
		table->color = color;
}

void table_no_color(struct table *table)
{
	if (table->layout->color)
		fputs("\033[m", table->layout->out);
}

void table_titles(struct table *table, const char *remark)
{
	FILE *out = table->layout->out;

	table_color(table, "\033[1m");
	while (table->columns[table->cell].width != 0)
		table_cell(table, table->columns[table->cell].title);
	if (table->columns[table->cell].title)
		table_cell(table, table->columns[table->cell].title);
	table_no_color(table);
	fputs(remark ? remark : "", out);
	table_end_row(table);
}

void table_rest(struct table *table, size_t indent)
{
	while (table->columns[table->cell].width != 0)
		table_cell(table, "");
	separate(table);
	put_spaces(table->layout->out, indent);
	table->used += indent;
	table->is_in_rest = true;
}

void table_end_row(struct table *table)
{
	putc('\n', table->layout->out);
	table->cell = 0;
	table->used = 0;
	table->is_in_rest = false;
}

void table_noted_name(struct table *table, struct function *function,
		      const char *note)
{
	if (!table->is_in_rest)
		table_rest(table, 0);
	put_name(table->layout, function, table->used + strlen(note));
	fputs(note, table->layout->out);
	table_end_row(table);
}

void table_name(struct table *table, struct function *function)
{
	table_noted_name(table, function, "");
}

/* The columns that the line has left for text. */
static size_t columns_left(const struct table *table)
{
	size_t columns = table->layout->columns;

	if (columns == SIZE_MAX)
		return SIZE_MAX;
	return columns > table->used + NAME_MIN ? columns - table->used :
						  NAME_MIN;
}

void table_text(struct table *table, const char *text)
{
	if (!table->is_in_rest)
		table_rest(table, 0);
	put_text_cut(table->layout->out, text, columns_left(table));
	table_end_row(table);
}

void table_names(struct table *table, const char *full, const char *brief,
		 const char *mangled)
{
	if (!table->is_in_rest)
		table_rest(table, 0);
	put_names(table->layout, full, brief, mangled, columns_left(table));
	table_end_row(table);
}
