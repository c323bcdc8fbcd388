/*
 * Keeps the rules for registers at addresses that were unwound before.  The table is
 * read and written without a lock.
 */
#ifndef SHIM_ROW_CACHE_H
#define SHIM_ROW_CACHE_H

#include "unwind/eh_frame.h"

/*
 * The common form of a row: the CFA is a register plus a distance; the return address
 * and the registers that functions preserve are in memory at distances from it.  A
 * reader that reads a half-written entry finds a wrong @sum.
 */
struct cached_row {
	uint64_t address; /* the key */
	uint64_t function;
	uint64_t
		distances; /* of row_registers, DISTANCE_BITS each: distance / 8 */
	/* 8 bits enum row_flags, 8 the register, 16 the distance / 8 of the return
	 * address (signed), 32 the distance of the CFA */
	uint64_t cfa;
	uint64_t sum;
};

enum row_flags {
	ROW_SIMPLE = 1,
	ROW_LAST = 2,	 /* the frame has no caller */
	ROW_COMPLEX = 4, /* the tables must be read each time */
	ROW_SIGNAL = 8,	 /* a signal frame, which is complex */
};

/* The registers that functions preserve. */
static const uint8_t row_registers[] = { 3, 6, 12, 13, 14, 15 };

#define DISTANCE_BITS 10
#define DISTANCE_MASK 0x3ffu
#define DISTANCE_SAME 0x200u /* -512: the register is unchanged */

/* The key of the row at @address; @is_exact as in struct unwind. */
uint64_t row_cache_key(uintptr_t address, bool is_exact);

/* Copies the row of @key; false if the cache does not have it. */
bool row_cache_find(uint64_t key, struct cached_row *found);

/* Stores the row that eh_frame_find_row() has found. */
void row_cache_store(uint64_t key, const struct cfi_machine *machine);

/* Drops all rows: addresses may be reused. */
void row_cache_clear(void);

#endif
