#include "base/text.h"
#include "model/model.h"
#include "text/layout.h"
#include "text/table.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdint.h>
#include <stdio.h>

static const struct column columns[] = {
	{ "calls", 7 }, { "lock", -6 }, { "\302\261", 3 }, { "name", 0 }
};
static char *text;
static size_t size;
static struct layout layout;
static struct table table;

static void begin(void)
{
	layout = (struct layout){ .out = open_memstream(&text, &size),
				  .columns = SIZE_MAX };
	table = table_begin(&layout, columns);
}

static char *end(void)
{
	fclose(layout.out);
	return text;
}

Test(table, titles_stand_over_their_columns, .init = begin)
{
	table_titles(&table, "  (by calls)");
	table_cell(&table, "1,234");
	table_cell(&table, "heap");
	table_cell(&table, "5");
	table_text(&table, "f(int)");
	cr_assert(eq(str, end(),
		     "  calls lock     \302\261  name  (by calls)\n"
		     "  1,234 heap     5  f(int)\n"));
}

Test(table, a_cell_is_as_wide_as_the_terminal_shows_it, .init = begin)
{
	/* two wide characters */
	table_cell(&table, "\xe6\xb7\xb1\xe3\x81\x84");
	table_cell(&table, "e\xcc\x81"); /* with a combining accent */
	table_cell(&table, "\xc3\xa9");
	table_text(&table, "x\033");
	table_cell(&table, "\033");
	table_text(&table, "y");
	cr_assert(eq(str, end(),
		     "   \xe6\xb7\xb1\xe3\x81\x84 e\xcc\x81        \xc3\xa9  "
		     "x\\x1b\n"
		     "   \\x1b             y\n"));
}

Test(table, a_name_gets_what_the_cells_leave_of_the_line, .init = begin)
{
	layout.columns = 32;
	table_rest(&table, 0);
	table_text(&table, "abcdefghijklmnop");
	/* 4 characters wider than its column */
	table_cell(&table, "123,456,789");
	table_text(&table, "abcdefghijklmnop");
	table_rest(&table, 2);
	table_text(&table, "abcdefghij");
	cr_assert(eq(str, end(),
		     "                    abcdefghijk\xe2\x80\xa6\n"
		     "123,456,789             abcdefg\xe2\x80\xa6\n"
		     "                      abcdefghij\n"));
}

Test(table, a_cell_is_cut_if_that_was_asked_for, .init = begin)
{
	table_cell_cut(&table, "123456789");
	table_cell_cut(&table, "1234");
	table_text(&table, "");
	cr_assert(eq(str, end(), "123456\xe2\x80\xa6 1234        \n"));
}

Test(table, colour_is_on_the_cells_and_for_a_terminal_only, .init = begin)
{
	table_color(&table, "\033[31m");
	table_cell(&table, "1");
	table_no_color(&table);
	table_text(&table, "plain");
	layout.color = true;
	table_cell(&table, "2");
	table_color(&table, "\033[31m");
	table_cell(&table, "3");
	table_no_color(&table);
	table_text(&table, "red");
	cr_assert(eq(str, end(),
		     "      1             plain\n"
		     "      2 \033[31m3     \033[m      red\n"));
}

static void expect_ends(const char *whole, size_t most, const char *wanted)
{
	char *cut = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&cut, &length);

	put_text_ends(out, whole, most);
	fclose(out);
	cr_assert(eq(str, cut, (char *)wanted));
	cr_assert(le(sz, text_columns(cut), most));
	free(cut);
}

Test(text, both_ends_of_a_long_text_are_printed)
{
	expect_ends("/a/long/path: is not there", 26,
		    "/a/long/path: is not there");
	expect_ends("/a/long/path: is not there", 24,
		    "/a/lo\u2026path: is not there");
	expect_ends("abcdef", 4, "\u2026def");
	expect_ends("abcdef", 3, "ab\u2026");
	expect_ends("\u6df1\u6df1\u6df1\u6df1", 7, "\u2026\u6df1\u6df1\u6df1");
	expect_ends("\xff\xff\xff", 9, "\u2026\\xff");
}

Test(text, half_of_a_wide_character_is_never_printed)
{
	char *cut = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&cut, &length);

	put_text_cut(out, "\xe6\xb7\xb1\xe6\xb7\xb1\xe6\xb7\xb1", 4);
	fclose(out);
	cr_assert(eq(str, cut, "\xe6\xb7\xb1\xe2\x80\xa6"));
	cr_assert(eq(sz, text_columns("\xe6\xb7\xb1"), 2));
}
