/*
 * Writes the source lines of sampled functions with the samples of each, until the page
 * has enough of them.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/json.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "model/annotation.h"
#include "model/hits.h"
#include "model/listing.h"
#include "model/model.h"
#include "model/options.h"
#include "names/source.h"
#include "page/html_numbers.h"
#include "page/listings.h"

/* The line, cut to what fits on a page, between two characters. */
static const char *cut_line(const char *text)
{
	size_t length = PAGE_SOURCE_LINE_MAX;

	text = listing_text(text);
	if (strlen(text) <= length)
		return text;
	while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80)
		length--;
	return keep_format("%.*s\xe2\x80\xa6", (int)length, text);
}

/* Returns the bytes of the text. */
static size_t put_row(struct json *json, const struct listing_row *row)
{
	const char *text = row->text ? cut_line(row->text) : NULL;

	json_line(json, 0);
	json_array(json);
	json_count(json, (uint64_t)row->line);
	json_count(json, row->hit ? whole(row->hit->self) : 0);
	json_count(json, row->hit ? whole(row->hit->total) : 0);
	json_text(json, text);
	json_close_array(json);
	return text ? strlen(text) : 0;
}

static size_t put_listing(struct json *json, const struct listing *listing)
{
	struct listing_row row = listing_begin(listing);
	size_t bytes = 0;

	json_object(json);
	json_key_text(json, "file", listing->file);
	json_key_text(json, "path", listing->source->path);
	json_key_flag(json, "newer", listing->source->is_newer);
	json_key_array(json, "lines");
	while (listing_next(&row))
		if (row.line >= 0)
			bytes += put_row(json, &row);
	json_close_array(json);
	json_close_object(json);
	return bytes;
}

static size_t put_function(struct json *json, const struct html *html,
			   const struct annotated *annotated, uint32_t place)
{
	const struct hits *hits = &annotated->hits;
	struct listing *listings;
	uint32_t i, count = listing_find(&listings, hits, annotated->function,
					 html->annotation->places,
					 html->options->context);
	size_t bytes = 0;

	json_line(json, 0);
	json_object(json);
	json_key_count(json, "function", place);
	json_key_count(json, "self", whole(hits->self));
	json_key_count(json, "total", whole(hits->total));
	json_key_array(json, "files");
	for (i = 0; i < count; i++)
		bytes += put_listing(json, &listings[i]);
	json_close_array(json);
	json_close_object(json);
	listing_free(listings, count);
	return bytes;
}

void listings_json(struct json *json, const struct html *html)
{
	const struct annotation *annotation = html->annotation;
	size_t bytes = 0, source = 0;
	uint32_t i;

	while (html->sources[source].model != annotation->model)
		source++;
	json_line(json, 0);
	json_key_object(json, "listings");
	json_key_count(json, "source", source);
	json_key_number(json, "period_ns", annotation->period_ns, 17);
	json_key_array(json, "functions");
	for (i = 0; i < annotation->count && bytes < PAGE_SOURCE_MAX; i++) {
		const struct annotated *annotated = &annotation->functions[i];
		uint32_t place =
			html->sources[source].places[annotated->number];

		if (place != NONE && annotated->hits.total > 0)
			bytes += put_function(json, html, annotated, place);
	}
	json_close_array(json);
	json_key_count(json, "left_out",
		       annotation->left_out + annotation->count - i);
	json_close_object(json);
}
