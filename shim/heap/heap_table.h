/*
 * The blocks of memory that live, by address.
 *
 * An address is in one of sixteen neighbouring entries of one of a few tables, most
 * often in the first two, which are one cache line.  Each table is four times as
 * large as the one before it and comes when that is full.  Nothing is ever moved,
 * and whoever has a block is the only one to touch its entry: so there is no lock,
 * a signal handler may come at any time, and a forked child finds what there was.
 */
#ifndef SHIM_HEAP_TABLE_H
#define SHIM_HEAP_TABLE_H

#include <shim/allocations.h>
#include <stdbool.h>

/* Puts @block in; block->note becomes the address of its word, with *@note in it.
 * False: no memory, and it is as it was. */
bool heap_table_add(struct shim_block *block, uint64_t note);

/* Soon there is going to be a question about @address, which is about to go back to
 * the allocator. */
void heap_table_fetch(uintptr_t address);

/* Takes the block at @address out; false: it is not there.  block->note is NULL,
 * *@note is what it was. */
bool heap_table_take(uintptr_t address, struct shim_block *block, uint64_t *note);

/* The one after *@position, which is 0 at first; false: there is none. */
bool heap_table_next(uint64_t *position, struct shim_block *block);

/* How many there may be before more memory is needed. */
uint64_t heap_table_room(void);

/* How long the ticks of the coarse clock are: blocks' clocks are kept by halves of
 * them or less.  Before there are any. */
void heap_table_set_clock(uint64_t tick);

#endif
