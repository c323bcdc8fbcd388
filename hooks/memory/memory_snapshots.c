/*
 * Takes heap snapshots on request (<shim/heap.h>): live blocks by path.  The note of
 * each block has its memory node.  During a snapshot, the memory node points to the sum
 * of its path.  The sums are in a separate file.
 */
#include "memory/memory.h"
#include "path/times.h"

#include <shim/allocations.h>
#include <shim/reach.h>

#include <shim/banned.h>

static struct {
	struct shim_record *record;
	char *next;
	size_t left;
} room;

static uint32_t is_busy;
static uint32_t count;
static struct shim_snapshot_node *current;

static void *allocate(size_t size)
{
	enum shim_lost cause;
	void *memory;

	if (size > room.left) {
		memory = room.record ? shim_record_grow(room.record, size,
							&room.left, &cause) :
				       NULL;
		if (!room.record)
			room.record = shim_record_open("calltree", &memory,
						       &room.left, &cause);
		room.next = memory;
		if (!memory)
			room.left = 0;
	}
	if (size > room.left)
		return NULL;
	memory = room.next;
	room.next += size;
	room.left -= size;
	return memory;
}

/* --- sums --- */

static struct shim_alive_node *alive_of(struct shim_memory_node *memory)
{
	struct shim_alive_node *alive = (struct shim_alive_node *)memory->alive;
	uint64_t function = SHIM_NODE_ALIVE | count;

	if (alive && alive->function == function)
		return alive;
	alive = allocate(sizeof(*alive));
	if (!alive)
		return NULL;
	alive->node = (uint64_t)memory;
	__atomic_store_n(&alive->function, function, __ATOMIC_RELEASE);
	memory->alive = (uint64_t)alive;
	return alive;
}

static struct shim_alive_node *add_sum(const struct shim_block *block)
{
	struct shim_memory_node *memory = memory_of_note(*block->note);
	struct shim_alive_node *alive;

	if (!memory)
		return NULL;
	alive = alive_of(memory);
	if (!alive) {
		current->missing++;
		return NULL;
	}
	alive->bytes += block->weight_bytes;
	alive->blocks += block->weight;
	return alive;
}

static enum shim_result on_block(const struct shim_block *block, void *data)
{
	(void)data;
	add_sum(block);
	return SHIM_OK;
}

static enum shim_result on_reach(const struct shim_block *block,
				 enum shim_reach reach, void *data)
{
	struct shim_alive_node *alive = add_sum(block);

	(void)data;
	if (alive && reach == SHIM_REACH_LOST) {
		alive->lost_bytes += block->size;
		alive->lost_blocks++;
	} else if (alive && reach == SHIM_REACH_FROM_LOST) {
		alive->below_bytes += block->size;
		alive->below_blocks++;
	}
	return SHIM_OK;
}

/* --- a snapshot --- */

enum shim_leaks memory_leaks_of(enum shim_result result)
{
	return result == SHIM_OK		  ? SHIM_LEAKS_KNOWN :
	       result == SHIM_E_NOT_YET_AVAILABLE ? SHIM_LEAKS_LATE :
						    SHIM_LEAKS_FAILED;
}

static void add_blocks(uint64_t limit_ms)
{
	current->leaks = SHIM_LEAKS_OFF;
	if (limit_ms)
		current->leaks = memory_leaks_of(shim_heap_find_leaks(
			on_reach, NULL, limit_ms * 1000000));
	if (current->leaks != SHIM_LEAKS_KNOWN)
		shim_block_walk(on_block, NULL);
}

uint32_t memory_snapshot_take(uint64_t limit_ms)
{
	uint32_t number = 0;

	if (__atomic_exchange_n(&is_busy, 1, __ATOMIC_ACQUIRE))
		return 0;
	current = allocate(sizeof(*current));
	if (current) {
		number = ++count;
		current->clock = now();
		__atomic_store_n(&current->function,
				 SHIM_NODE_SNAPSHOT | number, __ATOMIC_RELEASE);
		add_blocks(limit_ms);
		current->duration = now() - current->clock;
		__atomic_store_n(&current->is_complete, 1, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&is_busy, 0, __ATOMIC_RELEASE);
	return number;
}

/* The child starts without snapshots: the parent's belong to the parent. */
void memory_snapshots_forked(void)
{
	room.record = NULL;
	room.left = 0;
	count = 0;
	is_busy = 0;
}
