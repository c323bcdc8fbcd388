/*
 * Prints the --filter of the recording, and warns of items that match nothing: objects
 * that were never loaded, for example a function's name without M: before it, and
 * names and source files of no function that was called.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "read/process.h"
#include "read/recording.h"
#include "text/filter.h"
#include "text/layout.h"

#define TOLD_MAX  3
#define SHOWN_MAX 160

struct item {
	const char *text;
	size_t length;
	uint32_t number; /* the first one is 1 */
};

/* Items that match nothing. */
struct unmatched {
	const char *shown[TOLD_MAX]; /* the first ones */
	uint32_t count;
	bool has_file;
};

/* '*' and '?' stand for any text and any character. */
static bool fits(struct item pattern, const char *text, size_t length)
{
	size_t p = 0, t = 0, star = SIZE_MAX, star_text = 0;

	while (t < length) {
		if (p < pattern.length && pattern.text[p] == '*') {
			star = p++;
			star_text = t;
		} else if (p < pattern.length && (pattern.text[p] == '?' ||
						  pattern.text[p] == text[t])) {
			p++;
			t++;
		} else if (star != SIZE_MAX) {
			p = star + 1;
			t = ++star_text;
		} else {
			return false;
		}
	}
	while (p < pattern.length && pattern.text[p] == '*')
		p++;
	return p == pattern.length;
}

/* libz and libz.so match libz.so.1. */
static bool fits_object(struct item item, const char *path)
{
	const char *name = base_name(path);
	size_t length = strlen(name), i;

	for (i = 1; i <= length; i++)
		if ((i == length || name[i] == '.') && fits(item, name, i))
			return true;
	return false;
}

static bool is_loaded(const struct recording *recording, struct item item)
{
	uint32_t i, n;

	for (i = 0; i < recording->process_count; i++) {
		const struct process *process = &recording->processes[i];

		for (n = 0; n < process->image_count; n++)
			if (fits_object(item, process->images[n].path))
				return true;
	}
	return false;
}

static bool is_word(struct item item, const char *word)
{
	return strlen(word) == item.length &&
	       !memcmp(item.text, word, item.length);
}

static bool names_object(struct item item)
{
	return item.length && !(item.length > 1 && item.text[1] == ':') &&
	       !is_word(item, "all") && !is_word(item, "none") &&
	       !is_word(item, "disabled") && !is_word(item, "program");
}

/* Makes @item, the item before, the next one of @list, without blanks and '-'.  False at
 * the end. */
static bool next_item(const char **list, struct item *item)
{
	*list += strspn(*list, ", \t\r");
	if (!**list)
		return false;
	*list += **list == '-';
	item->text = *list;
	item->length = strcspn(*list, ",");
	item->number++;
	*list += item->length;
	while (item->length && strchr(" \t\r", item->text[item->length - 1]))
		item->length--;
	return true;
}

static void add_unmatched(struct unmatched *unmatched, struct item item)
{
	if (unmatched->count < TOLD_MAX)
		unmatched->shown[unmatched->count] = keep_text(item.text,
							       item.length);
	unmatched->count++;
	unmatched->has_file |= item.text[0] == 'F';
}

static void print_unmatched(const struct layout *layout,
			    const struct unmatched *unmatched)
{
	uint32_t i;

	for (i = 0; i < unmatched->count && i < TOLD_MAX; i++) {
		fputs(i ? ", '" : "'", layout->out);
		put_text(layout->out, unmatched->shown[i]);
		fputc('\'', layout->out);
	}
	if (unmatched->count > TOLD_MAX)
		fprintf(layout->out, " and %u more",
			unmatched->count - TOLD_MAX);
}

/* If @is_cut, the last item of the list may be incomplete. */
static void print_unknown_objects(const struct layout *layout, const char *list,
				  bool is_cut)
{
	struct unmatched unknown = { 0 };
	struct item item = { 0 };

	while (next_item(&list, &item) && !(is_cut && !*list))
		if (names_object(item) &&
		    !is_loaded(layout->model->recording, item))
			add_unmatched(&unknown, item);
	if (!unknown.count)
		return;
	fputs("  no object was loaded that is named ", layout->out);
	print_unmatched(layout, &unknown);
	fputs(": --filter leaves nothing out and lets nothing through by that "
	      "(a function is M:",
	      layout->out);
	put_text(layout->out, unknown.shown[0]);
	fputs(")\n", layout->out);
}

/* --- names and files --- */

/* Stores the items that match a function in a process with the same @list.  Returns the
 * number of items that are known. */
static uint32_t find_matches(const struct recording *recording,
			     const char *list, uint64_t *matches)
{
	uint32_t i, n, known = 0;

	for (i = 0; i < recording->process_count; i++) {
		const struct process *process = &recording->processes[i];
		const char *own = process_string(process, "filter");

		if (!own || strcmp(own, list))
			continue;
		if (process->meta.filter_items > known)
			known = process->meta.filter_items;
		for (n = 0; n < SHIM_META_FILTER / 64; n++)
			matches[n] |= process->meta.filter_matches[n];
	}
	return known < SHIM_META_FILTER ? known : SHIM_META_FILTER;
}

static bool names_function(struct item item)
{
	return item.length > 2 && item.text[1] == ':' &&
	       strchr("NTMF", item.text[0]);
}

static void print_unmatched_names(const struct layout *layout, const char *list,
				  bool is_cut)
{
	uint64_t matches[SHIM_META_FILTER / 64] = { 0 };
	uint32_t known = find_matches(layout->model->recording, list, matches);
	struct unmatched unmatched = { 0 };
	struct item item = { 0 };

	while (next_item(&list, &item) && !(is_cut && !*list) &&
	       item.number <= known) {
		uint32_t bit = item.number - 1;

		if (names_function(item) &&
		    !(matches[bit / 64] >> bit % 64 & 1))
			add_unmatched(&unmatched, item);
	}
	if (!unmatched.count)
		return;
	fputs("  no function was called that --filter names by ", layout->out);
	print_unmatched(layout, &unmatched);
	fputs(unmatched.has_file ? " (F: needs debug information: -g)\n" : "\n",
	      layout->out);
}

/* The time of a function that the filter left out is in its callers' self
 * time. */
void filter_print(const struct layout *layout)
{
	const struct process *first = &layout->model->recording->processes[0];
	const char *filter = process_string(first, "filter");
	char begin[SHOWN_MAX];

	if (!filter)
		return;
	snprintf(begin, sizeof(begin), "%s", filter);
	fputs("  only the functions that --filter '", layout->out);
	put_text(layout->out, begin);
	fprintf(layout->out, "%s' lets through\n",
		strlen(filter) < sizeof(begin) ? "" : "...");
	print_unknown_objects(layout, filter,
			      process_string_is_cut(first, filter));
	print_unmatched_names(layout, filter,
			      process_string_is_cut(first, filter));
}
