/*
 * The live blocks of memory, by address.
 *
 * An address is in one of sixteen neighbouring entries of one of a few tables, most
 * often in the first two, which share a cache line.  Each table is four times as large
 * as the one before it and is created when the previous one is full.  Entries never
 * move, and only the thread that owns a block changes its entry.  So there is no lock,
 * a signal handler may run at any time, and a fork child has its parent's blocks.
 */
#ifndef SHIM_HEAP_TABLE_H
#define SHIM_HEAP_TABLE_H

#include <shim/allocations.h>
#include <stdbool.h>

/* Adds @block; Stores @note in the word of the block, and the word's address in
 * block->note.  Without memory, returns false and leaves @block unchanged. */
bool heap_table_add(struct shim_block *block, uint64_t note);

/* Prefetches the entry of @address, before the block is freed. */
void heap_table_fetch(uintptr_t address);

/* Removes the block at @address; false if the table does not have it.  Sets block->note
 * to NULL, and *@note to the value of the block's word. */
bool heap_table_take(uintptr_t address, struct shim_block *block,
		     uint64_t *note);

/* Finds the block after *@position, which is 0 at first; false after the last block. */
bool heap_table_next(uint64_t *position, struct shim_block *block);

/* Forgets all blocks, and gives the memory of the tables back to the system; the tables
 * stay mapped, because a thread may be adding or removing a block. */
void heap_table_forget(void);

/* The number of blocks that fit without more memory. */
uint64_t heap_table_room(void);

/* Sets the tick of the coarse clock.  Blocks store their clock in units of at most half
 * a tick.  Called before the first block is added. */
void heap_table_set_clock(uint64_t tick);

#endif
