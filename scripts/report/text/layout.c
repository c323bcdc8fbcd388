/*
 * The layout of text: the number of columns and rows, colour, and how a name
 * fills the rest of a line.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/numbers.h"
#include "base/short_name.h"
#include "base/text.h"
#include "model/functions.h"
#include "model/model.h"
#include "model/options.h"
#include "text/layout.h"

void put_place(const struct layout *layout, struct function *function)
{
	function_line(function);
	if (!function->is_named)
		return;
	fputs(layout->color ? " \033[2m[" : " [", layout->out);
	put_text(layout->out, object_name(function));
	if (function->file) {
		fputc(' ', layout->out);
		put_text(layout->out, base_name(function->file));
		fprintf(layout->out, ":%d", function->line);
	}
	fputs(layout->color ? "]\033[m" : "]", layout->out);
}

/* The width of put_place()'s output. */
static size_t place_columns(struct function *function)
{
	char line[SHORT_TEXT] = "";

	function_line(function);
	if (!function->is_named)
		return 0;
	if (function->file)
		snprintf(line, sizeof(line), " :%d", function->line);
	return strlen(" []") + text_columns(object_name(function)) +
	       strlen(line) +
	       (function->file ? text_columns(base_name(function->file)) : 0);
}

void put_names(const struct layout *layout, const char *full, const char *brief,
	       const char *mangled, size_t columns)
{
	switch (layout->options->names) {
	case NAMES_FULL: put_text(layout->out, full); break;
	case NAMES_MANGLED: put_text(layout->out, mangled); break;
	case NAMES_SHORT: full = brief; /* fallthrough */
	case NAMES_FITTED:
		put_name_fitted(layout->out, full, brief, columns);
		break;
	}
}

void put_function_name(const struct layout *layout,
		       const struct function *function, size_t columns)
{
	put_names(layout, function->name, function->short_name,
		  function->mangled, columns);
}

/* Whether names may be cut. */
static bool may_cut(const struct layout *layout)
{
	return layout->columns != SIZE_MAX &&
	       layout->options->names != NAMES_FULL &&
	       layout->options->names != NAMES_MANGLED;
}

void put_name(const struct layout *layout, struct function *function,
	      size_t used)
{
	size_t place, left, needed;

	if (!may_cut(layout)) {
		put_function_name(layout, function, SIZE_MAX);
		put_place(layout, function);
		return;
	}
	/* The place is left out if the name needs its room. */
	place = place_columns(function);
	left = layout->columns > used ? layout->columns - used : 0;
	needed = text_columns(function->short_name);
	if (left < place + needed)
		place = 0;
	put_function_name(layout, function,
			  left - place > 8 ? left - place : 8);
	if (place)
		put_place(layout, function);
}

/* The width of the terminal; SIZE_MAX if the output is none. */
static size_t terminal_columns(FILE *out)
{
	struct winsize size;

	if (!isatty(fileno(out)))
		return SIZE_MAX;
	if (ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col >= 40)
		return size.ws_col;
	return 80;
}

static bool wants_color(FILE *out, const char *when)
{
	const char *no = getenv("NO_COLOR"), *terminal = getenv("TERM");

	if (strcmp(when, "auto"))
		return !strcmp(when, "always");
	return isatty(fileno(out)) && !(no && *no) &&
	       !(terminal && !strcmp(terminal, "dumb"));
}

struct layout layout_on(FILE *out, const struct options *options,
			struct model *model)
{
	return (struct layout){
		.out = out,
		.options = options,
		.model = model,
		.color = wants_color(out, options->color),
		.columns = terminal_columns(out),
	};
}

uint32_t layout_rows(const struct layout *layout, uint32_t usual,
		     uint32_t count)
{
	long limit = layout->options->limit < 0 ? (long)usual :
						  layout->options->limit;

	return limit == 0 || limit > (long)count ? count : (uint32_t)limit;
}

void layout_left_out(const struct layout *layout, uint32_t shown,
		     uint32_t count)
{
	char text[SHORT_TEXT];

	if (shown < count)
		fprintf(layout->out, "... %s more (--limit 0 shows all)\n",
			human_count(text, count - shown));
}
