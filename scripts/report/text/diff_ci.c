/*
 * Output for continuous integration: what crosses --fail-above is an error, what is
 * only slower is a warning.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/messages.h"
#include "base/numbers.h"
#include "base/text.h"
#include "model/functions.h"
#include "model/options.h"
#include "text/diff_ci.h"
#include "text/diff_rows.h"

#define TOLD_MAX 10

bool ci_wants_lines(const struct options *options)
{
	return !strcmp(options->format, "github");
}

static const char *value_name(const struct diff *diff)
{
	static const char *const names[] = {
		[VALUE_SELF] = "self time",
		[VALUE_TOTAL] = "total time",
		[VALUE_CALLS] = "calls",
		[VALUE_BYTES] = "allocated bytes",
		[VALUE_ALLOCATIONS] = "allocations",
		[VALUE_PEAK] = "bytes at the peak",
		[VALUE_LEAKED] = "leaked bytes",
		[VALUE_LOST] = "lost bytes",
	};

	return diff->is_sampled && diff->value == VALUE_CALLS ?
		       "samples" :
		       names[diff->value];
}

/* "self time 1.20 ms -> 3.40 ms (+2.20 ms, 12.3 % of all of A)" */
static const char *describe(const struct diff *diff, double before,
			    double after)
{
	char a[DIFF_CELL], b[DIFF_CELL], by[DIFF_CELL];
	double all = diff->side[0].all.mean;

	return keep_format("%s %s -> %s (%s, %+.1f %% of all of A)",
			   value_name(diff),
			   diff_value_text(diff, a, before, false),
			   diff_value_text(diff, b, after, false),
			   diff_value_text(diff, by, after - before, true),
			   all > 0 ? 100 * (after - before) / all : 0);
}

static const char *describe_row(const struct diff *diff,
				const struct diff_row *row)
{
	return describe(diff, row->value[0].mean, row->value[1].mean);
}

static const char *describe_all(const struct diff *diff)
{
	return describe(diff, diff->side[0].all.mean, diff->side[1].all.mean);
}

static const char *name_of(const struct diff *diff, const struct diff_row *row)
{
	switch (diff->options->names) {
	case NAMES_SHORT: return row->short_name;
	case NAMES_MANGLED: return row->mangled;
	default: return row->name;
	}
}

bool ci_tell_crossed(const struct diff *diff)
{
	uint32_t i, count = diff_all_crosses(diff);

	if (count)
		warn("all of it: %s, above --fail-above %g%%",
		     describe_all(diff), diff->options->fail_above);
	for (i = 0; i < diff->count; i++) {
		const struct diff_row *row = &diff->rows[i];

		if (!diff_crosses(diff, row))
			continue;
		if (count++ < TOLD_MAX)
			warn("%s: %s, above --fail-above %g%%",
			     name_of(diff, row), describe_row(diff, row),
			     diff->options->fail_above);
	}
	if (count > TOLD_MAX)
		warn("%u more are above --fail-above %g%%", count - TOLD_MAX,
		     diff->options->fail_above);
	return count != 0;
}

/* --- GitHub --- */

/* In a property, a comma or colon would end it. */
static void put_command_text(FILE *out, const char *text, bool is_property)
{
	for (; *text; text++)
		if (strchr("%\r\n", *text) ||
		    (is_property && strchr(",:", *text)))
			fprintf(out, "%%%02X", (unsigned char)*text);
		else
			fputc(*text, out);
}

/* Annotations have paths within the repository, which is where CI works. */
static const char *path_within(const char *file)
{
	char *directory = getcwd(NULL, 0);
	size_t length = directory ? strlen(directory) : 0;

	if (length && !strncmp(file, directory, length) && file[length] == '/')
		file += length + 1;
	free(directory);
	return file;
}

static void put_command(FILE *out, const char *level,
			const struct diff_row *row, const char *title,
			const char *text)
{
	fprintf(out, "::%s ", level);
	if (row && row->file) {
		fputs("file=", out);
		put_command_text(out, path_within(row->file), true);
		fprintf(out, ",line=%d,", row->line);
	}
	fputs("title=", out);
	put_command_text(out, title, true);
	fputs("::", out);
	put_command_text(out, text, false);
	fputc('\n', out);
}

static bool is_worse(const struct diff *diff, const struct diff_row *row)
{
	const char *verdict = diff_verdict(diff, row);

	return !strncmp(verdict, "slower", 6) || !strncmp(verdict, "more", 4);
}

void ci_print_github(FILE *out, const struct diff *diff)
{
	uint32_t i;

	put_command(out, diff_all_crosses(diff) ? "error" : "notice", NULL,
		    "profrun diff", describe_all(diff));
	for (i = 0; i < diff->count; i++) {
		const struct diff_row *row = &diff->rows[i];
		const char *name = keep_format("%s: %s", name_of(diff, row),
					       diff_verdict(diff, row));

		if (diff_crosses(diff, row))
			put_command(out, "error", row, name,
				    describe_row(diff, row));
		else if (is_worse(diff, row))
			put_command(out, "warning", row, name,
				    describe_row(diff, row));
	}
}

/* --- JUnit --- */

static void put_xml(FILE *out, const char *text)
{
	char *copy = (char *)keep_text(text, SIZE_MAX);

	make_harmless(copy);
	for (; *copy; copy++)
		switch (*copy) {
		case '&': fputs("&amp;", out); break;
		case '<': fputs("&lt;", out); break;
		case '>': fputs("&gt;", out); break;
		case '"': fputs("&quot;", out); break;
		default: fputc(*copy, out);
		}
}

static void put_case(FILE *out, const char *group, const char *name,
		     double time, const char *verdict, const char *text,
		     bool has_failed)
{
	fputs("  <testcase classname=\"", out);
	put_xml(out, group);
	fputs("\" name=\"", out);
	put_xml(out, name);
	fprintf(out, "\" time=\"%.9f\">\n    <%s", fmax(time, 0) / 1e9,
		has_failed ? "failure type=\"" : "system-out>");
	if (has_failed) {
		put_xml(out, verdict);
		fputs("\" message=\"", out);
		put_xml(out, text);
		fputs("\"/>\n", out);
	} else {
		put_xml(out, verdict);
		fputs(": ", out);
		put_xml(out, text);
		fputs("</system-out>\n", out);
	}
	fputs("  </testcase>\n", out);
}

void ci_print_junit(FILE *out, const struct diff *diff)
{
	bool is_time = diff->value < VALUE_CALLS;
	uint32_t i, failures = diff_all_crosses(diff);

	for (i = 0; i < diff->count; i++)
		failures += diff_crosses(diff, &diff->rows[i]);
	fprintf(out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<testsuite name=\"profrun diff\" tests=\"%u\" "
		"failures=\"%u\">\n",
		diff->count + 1, failures);
	put_case(out, "profrun", "all of it",
		 is_time ? diff->side[1].all.mean : 0, "all",
		 describe_all(diff), diff_all_crosses(diff));
	for (i = 0; i < diff->count; i++) {
		const struct diff_row *row = &diff->rows[i];

		put_case(out, row->object ? row->object : "unknown",
			 name_of(diff, row), is_time ? row->value[1].mean : 0,
			 diff_verdict(diff, row), describe_row(diff, row),
			 diff_crosses(diff, row));
	}
	fputs("</testsuite>\n", out);
}
