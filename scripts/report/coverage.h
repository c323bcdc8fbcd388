/* What was reached, of one recording or of many. */
#ifndef REPORT_COVERAGE_H
#define REPORT_COVERAGE_H

#include "report.h"

/* A line, or a function where it begins: once for each test, file and line (and
 * name), in this order. */
struct covered {
	uint32_t test, file;		/* of the names below */
	uint32_t line;
	uint32_t function;		/* of names; lines: NONE */
	uint64_t count;			/* 0: not reached */
};

/* An object whose lines are not known. */
struct uncovered {
	const char *path;
	enum shim_coverage_state state;
	uint32_t functions;		/* that hooks have told of */
};

struct coverage {
	struct names tests, files, names;
	struct covered *lines, *functions;
	size_t line_count, line_room, line_sorted;
	size_t function_count, function_room, function_sorted;
	struct names object_names;	/* numbered like these: */
	struct uncovered *objects;
	uint32_t object_count, object_room;
	uint64_t dropped;		/* rows that were not sure */
	bool is_counted;		/* counts say more than that it was reached */
};

/* Whether the recording at @path has coverage, and nothing else. */
bool coverage_is_all(const struct recording *recording);
bool coverage_is_there(const struct recording *recording);

/* Adds what a recording has. */
void coverage_add(struct coverage *coverage, const struct recording *recording);
/* Then: sorts and sums up. */
void coverage_finish(struct coverage *coverage);
/* Makes one test of all. */
void coverage_merge_tests(struct coverage *coverage);

/* The first of @all from @from on that is of another test or file. */
size_t coverage_file_end(const struct covered *all, size_t count, size_t from);

void coverage_print(FILE *out, const struct coverage *coverage,
		    const struct options *options);
void lcov_print(FILE *out, const struct coverage *coverage,
		const struct options *options);
void cobertura_print(FILE *out, const struct coverage *coverage,
		     const struct options *options);

#endif
