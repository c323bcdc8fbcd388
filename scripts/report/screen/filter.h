/* A regular expression that rows must match. */
#ifndef REPORT_SCREEN_FILTER_H
#define REPORT_SCREEN_FILTER_H

#include <regex.h>
#include <stdbool.h>

struct screen;

struct filter {
	char text[128]; /* "": all rows */
	regex_t expression;
	bool is_set;
};

/* Lets the user edit the expression; false: nothing has changed. */
bool filter_ask(struct filter *filter, struct screen *screen);
/* Whether @text matches; everything matches no expression. */
bool filter_has(const struct filter *filter, const char *text);
void filter_end(struct filter *filter);

#endif
