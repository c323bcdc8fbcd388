/*
 * The table of a function's exception handlers, which the compiler writes
 * (LSDA).
 */
#ifndef SHIM_LSDA_H
#define SHIM_LSDA_H

#include <stdint.h>

struct lsda {
	const uint8_t *at;  /* NULL: the function has no table */
	const uint8_t *end; /* of its segment, which may be read */
	uintptr_t start;    /* of the function */
};

/*
 * The number of the handler at landing pad @pad for @filter (above 0: one of
 * its catch clauses, 0: its destructors), in the order of the table; -1 if the table has
 * no such handler, or is damaged before it.
 */
int lsda_number(const struct lsda *table, uintptr_t pad, int64_t filter);

/* The number of handlers in the table, as far as it can be read. */
int lsda_count(const struct lsda *table);

#endif
