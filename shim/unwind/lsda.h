/*
 * The table a compiler makes of a function's exception handlers (the LSDA).
 */
#ifndef SHIM_LSDA_H
#define SHIM_LSDA_H

#include <stdint.h>

/*
 * The number of the handler at @pad for what @filter says (above 0 one of its
 * catch clauses, 0 its destructors), counting those of the function that begins
 * at @start in the order of the table; -1 if the table has none such.
 */
int lsda_number(const uint8_t *table, uintptr_t start, uintptr_t pad,
		int64_t filter);

/* How many there are. */
int lsda_count(const uint8_t *table, uintptr_t start);

#endif
