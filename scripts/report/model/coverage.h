/* What was reached, of one recording or of many. */
#ifndef REPORT_MODEL_COVERAGE_H
#define REPORT_MODEL_COVERAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <shim/format.h>

#include "base/names.h"

struct recording;

/* A line, or a function where it begins: once for each test, file and line (and
 * name), in this order. */
struct covered {
	uint32_t test, file; /* of the names below */
	uint32_t line;
	uint32_t function; /* of names; lines: NONE */
	uint64_t count;	   /* 0: not reached */
};

/* An object whose lines are not known. */
struct uncovered {
	const char *path;
	enum shim_coverage_state state;
	uint32_t functions; /* that hooks have told of */
};

struct coverage {
	struct names tests, files, names;
	struct covered *lines, *functions;
	size_t line_count, line_room, line_sorted;
	size_t function_count, function_room, function_sorted;
	struct names object_names; /* numbered like these: */
	struct uncovered *objects;
	uint32_t object_count, object_room;
	uint64_t dropped; /* rows that were not sure */
	bool is_counted;  /* counts say more than that it was reached */
};

/* Whether the recording at @path has coverage, and nothing else. */
bool coverage_is_all(const struct recording *recording);
bool coverage_is_there(const struct recording *recording);
/* Then: sorts and sums up. */
void coverage_finish(struct coverage *coverage);
/* Makes one test of all. */
void coverage_merge_tests(struct coverage *coverage);

/* The first of @all from @from on that is of another test or file. */
size_t coverage_file_end(const struct covered *all, size_t count, size_t from);

/* Sorts @count rows of @all and makes one of equal ones; how many are left.  @adds: the
 * counts are of different processes; else they are of one, and the same. */
size_t coverage_sum_up(struct covered *all, size_t count, bool adds);

/* From time to time, so that a thousand processes take the room of one. */
void coverage_keep_small(struct coverage *coverage);

/* No more than UINT64_MAX. */
uint64_t coverage_add_counts(uint64_t a, uint64_t b);

#endif
