/*
 * The lines of a function's source that are shown: those that have samples, from its
 * declaration on, and lines around them.
 */
#ifndef REPORT_MODEL_LISTING_H
#define REPORT_MODEL_LISTING_H

#include <stdbool.h>
#include <stdint.h>

#include "names/source.h"

struct function;
struct hits;
struct line_hit;

/* One file of a function; an inlined macro or template may add others. */
struct listing {
	const char *file; /* as debug information has it */
	const struct source_file *source;
	const struct line_hit **hits; /* of this file, by line */
	uint32_t count;
	int first, last; /* lines to show, and @context after the last one */
	int context;
};

/* A line of a listing, for listing_next(). */
struct listing_row {
	const struct listing *listing;
	uint32_t at;
	long next;
	/* set by listing_next() */
	int line;
	const struct line_hit *hit; /* NULL: no samples */
	const char *text;	    /* NULL: the source was not found */
	bool is_after_gap;	    /* lines before it are left out */
};

/*
 * listing_find - the listings of a function, the file of the hottest line first
 *
 * @context is how many lines around those with samples are shown, if the source is found.
 * Returns the number of listings; listing_free() frees them.
 */
uint32_t listing_find(struct listing **listings, const struct hits *hits,
		      struct function *function,
		      const struct source_places *places, int context);
void listing_free(struct listing *listings, uint32_t count);

struct listing_row listing_begin(const struct listing *listing);
/* The next line; returns false after the last one. */
bool listing_next(struct listing_row *row);

/* A source line with spaces in place of its tabs, of eight columns. */
const char *listing_text(const char *line);

#endif
