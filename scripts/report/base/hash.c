/*
 * The hash for all keys that a recording supplies.  A random seed keeps a
 * recording from choosing keys that all collide.
 */
#include <stdint.h>
#include <time.h>

#include "base/hash.h"

/* Keys come from the recording: the seed keeps its author from choosing keys
 * that all collide. */
uint64_t hash_seed(void)
{
	static uint64_t value;
	struct timespec now;

	if (!value) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		value = ((uint64_t)now.tv_nsec << 32 ^ (uintptr_t)&value) | 1;
	}
	return value;
}

uint64_t hash_mix(uint64_t key)
{
	key = (key ^ hash_seed()) * 0x9e3779b97f4a7c15ull;
	key = (key ^ key >> 32) * 0xd6e8feb86659fd93ull;
	return key ^ key >> 32;
}
