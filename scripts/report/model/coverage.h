/* Coverage of one or more recordings. */
#ifndef REPORT_MODEL_COVERAGE_H
#define REPORT_MODEL_COVERAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <shim/format.h>

#include "base/names.h"

struct recording;

/* A line, or a function at its first line: one row for each test, file and line
 * (and name), in this order. */
struct covered {
	uint32_t test, file; /* numbers in the names below */
	uint32_t line;
	uint32_t function; /* number of its name; NONE for lines */
	uint64_t count;	   /* 0: not reached */
};

/* An object without known lines. */
struct uncovered {
	const char *path;
	enum shim_coverage_state state;
	uint32_t functions; /* functions that hooks have reported */
};

struct coverage {
	struct names tests, files, names;
	struct covered *lines, *functions;
	size_t line_count, line_room, line_sorted;
	size_t function_count, function_room, function_sorted;
	/* names that the following are numbered like: */
	struct names object_names;
	struct uncovered *objects;
	uint32_t object_count, object_room;
	uint64_t dropped; /* rows without a certain place */
	bool is_counted;  /* counts are more than 0 and 1 */
};

/* Whether the recording has coverage and nothing else that was asked for. */
bool coverage_is_all(const struct recording *recording);
bool coverage_is_there(const struct recording *recording);
/* Call it at the end: sorts the rows and adds them up. */
void coverage_finish(struct coverage *coverage);
/* Merges all tests into one. */
void coverage_merge_tests(struct coverage *coverage);

/* The index, at or after @from, of the first row of another test or file. */
size_t coverage_file_end(const struct covered *all, size_t count, size_t from);

/* Sorts @count rows of @all and merges equal ones; returns how many remain.
 * @adds: the counts come from different processes and are added; otherwise they
 * describe the same calls. */
size_t coverage_sum_up(struct covered *all, size_t count, bool adds);

/* Called now and then, so that a thousand processes need the memory of one. */
void coverage_keep_small(struct coverage *coverage);

/* Whether @file is of the system, in /usr/include or /usr/lib: tables do not count it. */
bool coverage_is_system(const char *file);

/* The sum, limited to UINT64_MAX. */
uint64_t coverage_add_counts(uint64_t a, uint64_t b);

#endif
