/*
 * Where samples found a function: its lines and its instructions.  The samples are those
 * of the sampling profiler, of pchist, or of calltree with a budget.
 */
#ifndef REPORT_MODEL_HITS_H
#define REPORT_MODEL_HITS_H

#include <stdbool.h>
#include <stdint.h>

struct model;
struct recording;

/* A line of a function. */
struct line_hit {
	const char *file; /* NULL: unknown */
	int line;
	double self;  /* samples in this line itself, by weight */
	double total; /* including what it calls; recursion counts once */
};

/* An instruction of the function's own code. */
struct instruction_hit {
	uint64_t address; /* in the file of the object */
	uint32_t object;
	double self; /* including functions that are inlined there */
};

struct hits {
	struct line_hit *lines; /* by self, then total */
	uint32_t line_count, line_room;
	struct instruction_hit *instructions; /* by object and address */
	uint32_t instruction_count, instruction_room;
	double self, total; /* of the function */
	double code;	    /* sum of the instructions */
};

/* Whether the recording has samples with instructions.  Call it before the model is
 * built. */
bool hits_are_there(const struct recording *recording);

/* The sum of all samples of the model's recording, by weight, and the time of one. */
double hits_all(const struct model *model);
double hits_period_ns(const struct model *model);

/* The recording must have kept its entries (is_read_again). */
void hits_find(struct hits *hits, struct model *model, uint32_t function);
void hits_free(struct hits *hits);

#endif
