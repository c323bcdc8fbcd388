/*
 * The table of a function's exception handlers, which the compiler writes
 * (LSDA).
 */
#ifndef SHIM_LSDA_H
#define SHIM_LSDA_H

#include <stdint.h>

/*
 * The number of the handler at landing pad @pad for @filter (above 0: one of
 * its catch clauses, 0: its destructors), in the order of the table of the
 * function that begins at @start; -1 if the table has no such handler.
 */
int lsda_number(const uint8_t *table, uintptr_t start, uintptr_t pad,
		int64_t filter);

/* The number of handlers in the table. */
int lsda_count(const uint8_t *table, uintptr_t start);

#endif
