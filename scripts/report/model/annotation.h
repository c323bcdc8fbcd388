/* What profrun annotate, and html --source, show of a recording's samples. */
#ifndef REPORT_MODEL_ANNOTATION_H
#define REPORT_MODEL_ANNOTATION_H

#include <stdbool.h>
#include <stdint.h>

#include "model/hits.h"
#include "names/source.h"

struct coverage;
struct function;
struct model;

struct annotated {
	struct function *function;
	uint32_t number;
	struct hits hits;
	bool goes_first; /* before others, whatever their time */
};

struct annotation {
	struct model *model;
	/* the chosen functions, by self time, then total */
	struct annotated *functions;
	uint32_t count;
	uint32_t left_out; /* functions that match and are not shown */
	double all;	   /* samples of the recording, by weight */
	double period_ns;  /* 0: unknown */
	const struct source_places *places;
	const struct coverage *coverage; /* NULL: not recorded */
	bool asks_code;
};

/* The limit of functions at a time. */
#define ANNOTATED_MAX 10

/*
 * annotation_choose - the functions that @name means
 *
 * These are the functions of this name, or else those whose names match the regular
 * expression.  @name may be NULL: the function with the most self time.  Dies if there is
 * none.
 */
void annotation_choose(struct annotation *annotation, const char *name);

/* Chooses the @most functions with the most self time, then total. */
void annotation_choose_hottest(struct annotation *annotation, uint32_t most);

/* How often the line was reached, and whether that is known. */
bool annotation_count(const struct annotation *annotation, const char *file,
		      int line, uint64_t *count);

#endif
