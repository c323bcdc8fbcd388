/* How text is laid out where it goes. */
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
/* How many of @count rows to print, if it is usually @usual. */
uint32_t layout_rows(const struct layout *layout, uint32_t usual,
		     uint32_t count);
/* Says how many of @count were not. */
void layout_left_out(const struct layout *layout, uint32_t shown,
		     uint32_t count);
/* " [object file:line]" when there is something to say. */
void put_place(const struct layout *layout, struct function *function);
/* The name that --names asks for, in no more than @columns unless it is to be whole. */
void put_names(const struct layout *layout, const char *full, const char *brief,
	       const char *mangled, size_t columns);
void put_function_name(const struct layout *layout,
		       const struct function *function, size_t columns);
/* The name and its place, cut to what a line has left of which @used columns are used. */
void put_name(const struct layout *layout, struct function *function,
	      size_t used);

#endif
