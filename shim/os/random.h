/*
 * Random numbers that cost a few instructions, and need no data of the thread.
 */
#ifndef SHIM_RANDOM_H
#define SHIM_RANDOM_H

#include <stdint.h>

/* The next random number.  @state may start with any value. */
static inline uint64_t random_next(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

#endif
