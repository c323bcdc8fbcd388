/* Chooses the lines of a function's source to show, by its samples. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "model/functions.h"
#include "model/hits.h"
#include "model/listing.h"
#include "model/model.h"
#include "names/source.h"

static int compare_by_line(const void *left, const void *right)
{
	const struct line_hit *a = *(const struct line_hit *const *)left;
	const struct line_hit *b = *(const struct line_hit *const *)right;

	return (a->line > b->line) - (a->line < b->line);
}

static struct listing list_file(const struct hits *hits,
				struct function *function, const char *file)
{
	struct listing listing = { .file = file };
	uint32_t i;

	listing.hits = allocate(hits->line_count + 1, sizeof(*listing.hits));
	for (i = 0; i < hits->line_count; i++)
		if (hits->lines[i].file && !strcmp(hits->lines[i].file, file))
			listing.hits[listing.count++] = &hits->lines[i];
	qsort(listing.hits, listing.count, sizeof(*listing.hits),
	      compare_by_line);
	listing.first = listing.hits[0]->line;
	listing.last = listing.hits[listing.count - 1]->line;
	function_line(function);
	if (function->file && !strcmp(function->file, file) &&
	    function->line < listing.first)
		listing.first = function->line;
	return listing;
}

static bool is_listed(const struct hits *hits, uint32_t i)
{
	uint32_t n;

	for (n = 0; n < i; n++)
		if (hits->lines[n].file &&
		    !strcmp(hits->lines[n].file, hits->lines[i].file))
			return true;
	return false;
}

uint32_t listing_find(struct listing **listings, const struct hits *hits,
		      struct function *function,
		      const struct source_places *places, int context)
{
	struct listing *found = NULL;
	uint32_t i, count = 0, room = 0;

	for (i = 0; i < hits->line_count; i++) {
		struct listing *listing;

		if (!hits->lines[i].file || is_listed(hits, i))
			continue;
		GROW(found, count, room);
		listing = &found[count++];
		*listing = list_file(hits, function, hits->lines[i].file);
		listing->source = source_find(listing->file, places,
					      function->object);
		/* (Without the source, other lines have nothing to show.) */
		listing->context = listing->source->path ? context : 0;
		if (!listing->source->path)
			listing->first = listing->hits[0]->line;
	}
	*listings = found;
	return count;
}

void listing_free(struct listing *listings, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		free(listings[i].hits);
	free(listings);
}

/* The first line from @line on that is shown: one that has samples, or is at most
 * the context away from one, or from the first line. */
static long next_shown(const struct listing *listing, long line, uint32_t at)
{
	long context = listing->context;

	if (line - listing->first <= context ||
	    (at > 0 && line - listing->hits[at - 1]->line <= context) ||
	    at == listing->count || listing->hits[at]->line - line <= context)
		return line;
	return listing->hits[at]->line - context;
}

struct listing_row listing_begin(const struct listing *listing)
{
	return (struct listing_row){ .listing = listing,
				     .next = listing->first };
}

static void skip_hits(struct listing_row *row, long line)
{
	const struct listing *listing = row->listing;

	while (row->at < listing->count && listing->hits[row->at]->line < line)
		row->at++;
}

bool listing_next(struct listing_row *row)
{
	const struct listing *listing = row->listing;
	const struct line_hit *hit;
	long line;

	row->is_after_gap = false;
	for (;;) {
		skip_hits(row, row->next);
		line = next_shown(listing, row->next, row->at);
		if (line > (long)listing->last + listing->context ||
		    line > INT32_MAX)
			return false;
		row->is_after_gap |= line > row->next;
		skip_hits(row, line);
		hit = row->at < listing->count ? listing->hits[row->at] : NULL;
		row->line = (int)line;
		row->hit = hit && hit->line == line ? hit : NULL;
		row->text = source_line(listing->source, row->line);
		row->next = line + 1;
		if (row->hit || row->text)
			return true;
		/* The source ends here; samples may stand behind its end. */
		if (!hit)
			return false;
		row->is_after_gap |= hit->line > row->next;
		row->next = hit->line;
	}
}

const char *listing_text(const char *line)
{
	size_t column = 0, room = 8 * strlen(line) + 1;
	char *text = allocate(room, 1);
	const char *kept;

	for (; *line; line++) {
		if (*line != '\t') {
			text[column++] = *line;
			continue;
		}
		do
			text[column++] = ' ';
		while (column % 8);
	}
	text[column] = '\0';
	kept = keep_text(text, SIZE_MAX);
	free(text);
	return kept;
}
