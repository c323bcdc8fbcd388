/* The layout of text for its destination. */
#ifndef REPORT_TEXT_LAYOUT_H
#define REPORT_TEXT_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "model/model.h"
#include "model/options.h"

/* How text is laid out where it goes. */
struct layout {
	FILE *out;
	const struct options *options;
	struct model *model;
	bool color;
	size_t columns; /* SIZE_MAX: not a terminal */
};

struct layout layout_on(FILE *out, const struct options *options,
			struct model *model);
/* The number of rows to print of @count; @usual is the default. */
uint32_t layout_rows(const struct layout *layout, uint32_t usual,
		     uint32_t count);
/* Prints how many of @count rows were left out. */
void layout_left_out(const struct layout *layout, uint32_t shown,
		     uint32_t count);
/* Prints " [object file:line]" as far as it is known. */
void put_place(const struct layout *layout, struct function *function);
/* Prints the form of the name that --names asks for, in at most @columns unless
 * --names asks for whole names. */
void put_names(const struct layout *layout, const char *full, const char *brief,
	       const char *mangled, size_t columns);
void put_function_name(const struct layout *layout,
		       const struct function *function, size_t columns);
/* Prints the name and its place, cut to the rest of a line of which @used
 * columns are used. */
void put_name(const struct layout *layout, struct function *function,
	      size_t used);

#endif
