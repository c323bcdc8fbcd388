/*
 * Prints the --filter of the recording, and warns of items that match no name,
 * for example a function's name without M: before it.
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

/* The next item of @list, without blanks and '-'. */
static struct item next_item(const char **list)
{
	struct item item;

	*list += strspn(*list, ", \t\r");
	*list += **list == '-';
	item = (struct item){ *list, strcspn(*list, ",") };
	*list += item.length;
	while (item.length && strchr(" \t\r", item.text[item.length - 1]))
		item.length--;
	return item;
}

/* If @is_cut, the last item of the list may be incomplete. */
static void print_unknown(const struct layout *layout, const char *list,
			  bool is_cut)
{
	const char *told[TOLD_MAX];
	uint32_t count = 0, i;

	while (*list) {
		struct item item = next_item(&list);

		if (is_cut && !*list)
			break;
		if (!names_object(item) ||
		    is_loaded(layout->model->recording, item))
			continue;
		if (count < TOLD_MAX)
			told[count] = keep_text(item.text, item.length);
		count++;
	}
	if (!count)
		return;
	fputs("  no object was loaded that is named ", layout->out);
	for (i = 0; i < count && i < TOLD_MAX; i++) {
		fputs(i ? ", '" : "'", layout->out);
		put_text(layout->out, told[i]);
		fputc('\'', layout->out);
	}
	if (count > TOLD_MAX)
		fprintf(layout->out, " and %u more", count - TOLD_MAX);
	fputs(": --filter leaves nothing out and lets nothing through by that "
	      "(a function is M:",
	      layout->out);
	put_text(layout->out, told[0]);
	fputs(")\n", layout->out);
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
	print_unknown(layout, filter, process_string_is_cut(first, filter));
}
