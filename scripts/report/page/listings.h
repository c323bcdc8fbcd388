/* Writes the source lines of the page of profrun html --source. */
#ifndef REPORT_PAGE_LISTINGS_H
#define REPORT_PAGE_LISTINGS_H

struct html;
struct json;

/* The limits of a page: functions, bytes of their source, and bytes of a line. */
#define PAGE_LISTINGS_MAX    100
#define PAGE_SOURCE_MAX	     (2 << 20)
#define PAGE_SOURCE_LINE_MAX 400

/* Puts "listings" of the page's annotation.  All sources of @html are filled. */
void listings_json(struct json *json, const struct html *html);

#endif
