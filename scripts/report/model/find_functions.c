/*
 * Finds the functions that a name on the command line means: functions with
 * exactly this name, with this name before the arguments, or the only function
 * that contains it.  If there is none, the message suggests the most similar
 * names.
 */
#include <ctype.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/messages.h"
#include "base/text.h"
#include "model/advice.h"
#include "model/find_functions.h"
#include "model/model.h"
#include "model/shown.h"
#include "model/totals.h"

#define MATCHES_MAX 20

/* How well a function's name matches the requested one. */
enum match { MATCH_NONE, MATCH_PART, MATCH_BASE, MATCH_EXACT };

/* The length of @function's name without its group. */
size_t plain_length(const struct function *function, const char *name)
{
	return strlen(name) -
	       (function->group ? strlen(function->group) + strlen("[]") : 0);
}

static bool is_plainly(const struct function *function, const char *name,
		       const char *wanted)
{
	size_t length = plain_length(function, name);

	return strlen(wanted) == length && !strncmp(name, wanted, length);
}

static bool is_beside(const struct function *a, const struct function *b)
{
	size_t length = plain_length(a, a->name);

	return a->group && b->group && plain_length(b, b->name) == length &&
	       !strncmp(a->name, b->name, length);
}

static enum match match_name(const struct function *function, const char *name)
{
	size_t length = strlen(name);
	const char *part;

	/* "parse" means all of its groups. */
	if (is_plainly(function, function->name, name) ||
	    is_plainly(function, function->mangled, name))
		return MATCH_EXACT;
	if (!strcmp(function->name, name) || !strcmp(function->mangled, name))
		return MATCH_EXACT;
	/* "parse" also means parse(int). */
	if (!strncmp(function->name, name, length) &&
	    function->name[length] == '(')
		return MATCH_BASE;
	part = strstr(function->name, name);
	/* "0x1139 [app]" does not contain "app". */
	if (part && !function->is_named &&
	    part >= function->name + strcspn(function->name, "["))
		part = NULL;
	if (part || !fnmatch(name, function->name, 0))
		return MATCH_PART;
	return MATCH_NONE;
}

/* The number of single-character edits between two names of at most 64
 * characters. */
static uint32_t edit_distance(const char *a, const char *b)
{
	uint32_t row[65], i, j, corner, above, best;
	uint32_t length = (uint32_t)strnlen(b, 64);

	for (j = 0; j <= length; j++)
		row[j] = j;
	for (i = 1; *a && i <= 64; a++, i++) {
		corner = row[0];
		row[0] = i;
		for (j = 1; j <= length; j++) {
			above = row[j];
			best = corner + (tolower((unsigned char)*a) !=
					 tolower((unsigned char)b[j - 1]));
			if (above + 1 < best)
				best = above + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
			corner = above;
		}
	}
	return row[length];
}

/* A function without paths is one of whose calls the recording has no sample. */
static bool is_there(const struct model *model, uint32_t number)
{
	return sums_are_there(&model->functions[number].sums) ||
	       shown_hides(model, number);
}

static void check_samples(const struct model *model, const char *name)
{
	uint32_t i;

	for (i = 0; i < model->function_count && model->is_sampled; i++)
		if (match_name(&model->functions[i], name) >= MATCH_BASE)
			die("no sample was taken in function %s", name);
}

static _Noreturn void die_unknown(const struct model *model, const char *name)
{
	uint32_t nearest[3] = { NONE, NONE, NONE }, distance[3], i, j, d;
	const char *close = "";

	check_samples(model, name);
	for (i = 0; i < model->function_count; i++) {
		const struct function *function = &model->functions[i];

		if (!is_there(model, i))
			continue;
		d = edit_distance(
			name,
			keep_text(function->name,
				  plain_length(function, function->name)));
		for (j = 0; j < 3; j++)
			if (nearest[j] == NONE || d < distance[j])
				break;
		if (j == 3 || d > strlen(name) / 2 + 1)
			continue;
		memmove(nearest + j + 1, nearest + j, (2 - j) * sizeof(d));
		memmove(distance + j + 1, distance + j, (2 - j) * sizeof(d));
		nearest[j] = i;
		distance[j] = d;
	}
	for (i = 0; i < 3 && nearest[i] != NONE; i++)
		close = keep_format("%s%s%s", close, i ? ", " : "; close: ",
				    model->functions[nearest[i]].name);
	die("no function %s was recorded%s%s", name, close,
	    *close ? "" : advice_no_names(model));
}

static _Noreturn void die_ambiguous(const struct model *model, const char *name,
				    const enum match *matches, enum match best)
{
	uint32_t i, shown = 0, count = 0;

	for (i = 0; i < model->function_count; i++)
		count += matches[i] == best;
	progress_end();
	for (i = 0; i < model->function_count && shown < MATCHES_MAX; i++) {
		if (matches[i] != best)
			continue;
		fputs("  ", stderr);
		put_text(stderr, model->functions[i].name);
		fputc('\n', stderr);
		shown++;
	}
	if (shown < count)
		fprintf(stderr, "  ... %u more\n", count - shown);
	die("%s could be any of these %u functions", name, count);
}

/* Whether the best matching functions are groups of one function. */
static bool is_one_function(const struct model *model,
			    const enum match *matches, enum match best)
{
	const struct function *first = NULL;
	uint32_t i;

	for (i = 0; i < model->function_count; i++) {
		if (matches[i] != best)
			continue;
		if (first && !is_beside(first, &model->functions[i]))
			return false;
		first = &model->functions[i];
	}
	return true;
}

static void check_shown(const struct model *model, const char *name,
			const bool *wanted)
{
	uint32_t i;

	for (i = 0; i < model->function_count; i++)
		if (wanted[i] && !shown_hides(model, i))
			return;
	die("%s is hidden by --hide, --only, --focus or --merge-recursion",
	    name);
}

/* Marks the functions that @name means: all with exactly this name. */
bool *find_functions(const struct model *model, const char *name)
{
	enum match *matches = allocate(model->function_count, sizeof(*matches));
	bool *wanted = allocate(model->function_count, sizeof(*wanted));
	enum match best = MATCH_NONE;
	uint32_t i, count = 0;

	for (i = 0; i < model->function_count; i++) {
		if (!is_there(model, i))
			continue;
		matches[i] = match_name(&model->functions[i], name);
		if (matches[i] > best)
			best = matches[i];
	}
	if (best == MATCH_NONE)
		die_unknown(model, name);
	for (i = 0; i < model->function_count; i++) {
		wanted[i] = matches[i] == best;
		count += wanted[i];
	}
	if (model->hidden)
		check_shown(model, name, wanted);
	if (count > 1 && best != MATCH_EXACT &&
	    !is_one_function(model, matches, best))
		die_ambiguous(model, name, matches, best);
	free(matches);
	return wanted;
}
