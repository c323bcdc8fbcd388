/*
 * The blocks of memory that live, by address.
 *
 * A bucket is four cache lines: eight addresses, and what is known of them.  An
 * address is in one of two buckets of one of a few tables, each four times as
 * large as the one before it, which comes when that is full.  Nothing is ever
 * moved, and whoever has a block is the only one to touch its entry: so there is no
 * lock, a signal handler may come at any time, and a forked child finds what there
 * was.
 */
#ifndef SHIM_BLOCKS_H
#define SHIM_BLOCKS_H

#include <shim/allocations.h>
#include <stdbool.h>

/* Puts @block in; block->note becomes the address of its word, with *@note in it.
 * False: no memory, and it is as it was. */
bool blocks_add(struct shim_block *block, uint64_t note);

/* Takes the block at @address out; false: it is not there.  block->note is NULL,
 * *@note is what it was. */
bool blocks_take(uintptr_t address, struct shim_block *block, uint64_t *note);

/* The one after *@position, which is 0 at first; false: there is none. */
bool blocks_next(uint64_t *position, struct shim_block *block);

#endif
