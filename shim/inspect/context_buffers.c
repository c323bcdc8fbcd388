/*
 * Allocates buffers from one region, which has an equal part for each size of block.
 * The free blocks of a size form a list, whose head is changed by compare-and-swap.
 * The head contains a count of changes, against the ABA problem.  The state of blocks
 * is in a separate table, so writes of a profiler beyond its buffer do not reach it.
 */
#include "inspect/context_buffers.h"

#include "os/sys.h"
#include "runtime/log.h"

#include <stdint.h>

#include <shim/banned.h>

#define PART	 ((size_t)4 << 20)
#define SMALLEST 5 /* 2^5 bytes; each further size is 4 times as large */
#define PARTS	 8

/* 32 bytes to 512 KiB. */
static unsigned shift_of(unsigned part)
{
	return SMALLEST + 2 * part;
}

struct block {
	uint32_t size; /* bytes that the caller wants; 0: free */
	uint32_t next; /* of a free block: the next free one, from 1 */
};

struct part {
	uint64_t head;	/* count of changes, and the first block */
	uint32_t fresh; /* number of blocks used so far */
};

struct pool {
	struct part parts[PARTS];
	struct block *blocks[PARTS];
	unsigned char *memory;
};

static struct pool *pool;

static uint32_t count_of(unsigned part)
{
	return (uint32_t)(PART >> shift_of(part));
}

/* Each smaller size has four times as many blocks as the next one. */
#define TABLE_SIZE \
	(sizeof(struct pool) + \
	 (PART >> SMALLEST) * sizeof(struct block) * 4 / 3)

/* Maps the pool; its pages take memory when they are touched.  If two threads map a
 * pool at once, the second mapping is dropped. */
static struct pool *get_pool(void)
{
	struct pool *made = __atomic_load_n(&pool, __ATOMIC_ACQUIRE);
	struct pool *before = NULL;
	struct block *blocks;
	void *memory;

	if (made)
		return made;
	if (sys_map(PARTS * PART + TABLE_SIZE, &memory) < 0)
		return NULL;
	made = (struct pool *)((char *)memory + PARTS * PART);
	made->memory = memory;
	blocks = (struct block *)(made + 1);
	for (unsigned i = 0; i < PARTS; i++) {
		made->blocks[i] = blocks;
		blocks += count_of(i);
	}
	if (__atomic_compare_exchange_n(&pool, &before, made, false,
					__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return made;
	sys_unmap(memory, PARTS * PART + TABLE_SIZE);
	return before;
}

/* Takes a block from the list.  Returns its number from 1; 0 if the list is empty. */
static uint32_t pop(struct part *part, const struct block *blocks)
{
	uint64_t head = __atomic_load_n(&part->head, __ATOMIC_ACQUIRE), next;
	uint32_t first;

	do {
		first = (uint32_t)head;
		if (first == 0)
			return 0;
		next = __atomic_load_n(&blocks[first - 1].next,
				       __ATOMIC_RELAXED);
		next |= ((head >> 32) + 1) << 32;
	} while (!__atomic_compare_exchange_n(&part->head, &head, next, false,
					      __ATOMIC_ACQ_REL,
					      __ATOMIC_ACQUIRE));
	return first;
}

static void push(struct part *part, struct block *blocks, uint32_t number)
{
	uint64_t head = __atomic_load_n(&part->head, __ATOMIC_RELAXED), next;

	do {
		__atomic_store_n(&blocks[number - 1].next, (uint32_t)head,
				 __ATOMIC_RELAXED);
		next = ((head >> 32) + 1) << 32 | number;
	} while (!__atomic_compare_exchange_n(&part->head, &head, next, false,
					      __ATOMIC_ACQ_REL,
					      __ATOMIC_RELAXED));
}

static uint32_t take_fresh(struct part *part, uint32_t count)
{
	uint32_t fresh = __atomic_load_n(&part->fresh, __ATOMIC_RELAXED);

	do {
		if (fresh == count)
			return 0;
	} while (!__atomic_compare_exchange_n(&part->fresh, &fresh, fresh + 1,
					      false, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	return fresh + 1;
}

static void log_once(uint32_t *is_logged, const char *what)
{
	if (!__atomic_exchange_n(is_logged, 1, __ATOMIC_RELAXED))
		log_line("call contexts: %s", what);
}

void *context_buffer_take(size_t size)
{
	static uint32_t is_logged;
	struct pool *in = size > CONTEXT_BUFFER_MAX ? NULL : get_pool();

	for (unsigned i = 0; in && i < PARTS; i++) {
		uint32_t number;

		if (size > (size_t)1 << shift_of(i))
			continue;
		number = pop(&in->parts[i], in->blocks[i]);
		if (number == 0)
			number = take_fresh(&in->parts[i], count_of(i));
		if (number == 0)
			continue;
		__atomic_store_n(&in->blocks[i][number - 1].size,
				 (uint32_t)size, __ATOMIC_RELEASE);
		return in->memory + PART * i +
		       ((size_t)(number - 1) << shift_of(i));
	}
	if (in)
		log_once(&is_logged, "no buffer is left: profilers do not "
				     "release them");
	return NULL;
}

/* The block that begins at @buffer, with its part and number; NULL if @buffer is no
 * buffer. */
static struct block *find_block(const void *buffer, unsigned *part,
				uint32_t *number)
{
	const struct pool *in = __atomic_load_n(&pool, __ATOMIC_ACQUIRE);
	size_t at = in ? (size_t)((uintptr_t)buffer - (uintptr_t)in->memory) :
			 SIZE_MAX;

	if (at >= PART * PARTS)
		return NULL;
	*part = (unsigned)(at / PART);
	at %= PART;
	*number = (uint32_t)(at >> shift_of(*part)) + 1;
	if (at & (((size_t)1 << shift_of(*part)) - 1))
		return NULL;
	return &in->blocks[*part][*number - 1];
}

bool context_buffer_give_back(void *buffer)
{
	static uint32_t is_logged;
	uint32_t number;
	unsigned part;
	struct block *block = find_block(buffer, &part, &number);

	if (!block ||
	    __atomic_exchange_n(&block->size, 0, __ATOMIC_ACQ_REL) == 0) {
		log_once(&is_logged,
			 "a profiler released a buffer that is not in use");
		return false;
	}
	push(&pool->parts[part], pool->blocks[part], number);
	return true;
}

size_t context_buffer_size(const void *buffer)
{
	uint32_t number;
	unsigned part;
	const struct block *block = find_block(buffer, &part, &number);

	return block ? __atomic_load_n(&block->size, __ATOMIC_ACQUIRE) : 0;
}
