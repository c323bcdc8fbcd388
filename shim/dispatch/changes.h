/*
 * Which of the many places in an image's code may differ from what they shall be: the range
 * that has all, and blocks of places, in each of which is one.
 */
#ifndef SHIM_CHANGES_H
#define SHIM_CHANGES_H

#include <stdint.h>

#define CHANGES_BLOCKS 1024

struct changes {
	uint32_t first, end; /* 0, 0: no place */
	uint64_t blocks[CHANGES_BLOCKS / 64];
};

/* The size of a block of @count places. */
static inline uint32_t changes_block(uint32_t count)
{
	return count / CHANGES_BLOCKS + 1;
}

static inline void changes_add(struct changes *changes, uint32_t number,
			       uint32_t count)
{
	uint32_t block = number / changes_block(count);

	changes->blocks[block / 64] |= 1ull << block % 64;
	if (changes->end == 0 || number < changes->first)
		changes->first = number;
	if (number >= changes->end)
		changes->end = number + 1;
}

static inline void changes_add_all(struct changes *changes, uint32_t count)
{
	for (unsigned i = 0; i < CHANGES_BLOCKS / 64; i++)
		changes->blocks[i] = ~0ull;
	changes->first = 0;
	changes->end = count;
}

static inline void changes_clear(struct changes *changes)
{
	for (unsigned i = 0; i < CHANGES_BLOCKS / 64; i++)
		changes->blocks[i] = 0;
	changes->first = changes->end = 0;
}

/* The first place from @number on, and before @end, that may differ; @end: none. */
static inline uint32_t changes_next(const struct changes *changes,
				    uint32_t number, uint32_t end,
				    uint32_t count)
{
	uint32_t size = changes_block(count);

	while (number < end) {
		uint32_t block = number / size;
		uint64_t rest = changes->blocks[block / 64] >> block % 64;

		if (rest & 1)
			return number;
		block += rest ? (uint32_t)__builtin_ctzll(rest) :
				64 - block % 64;
		number = block * size;
	}
	return end;
}

#endif
