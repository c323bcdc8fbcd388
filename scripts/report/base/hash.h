/* The hash function of maps and name tables. */
#ifndef REPORT_BASE_HASH_H
#define REPORT_BASE_HASH_H

#include <stdint.h>

/* Differs in each process.  Keys come from the recording: the seed keeps its
 * author from choosing keys that all collide. */
extern uint64_t hash_seed;

/* Spreads the bits of @key over the whole hash. */
static inline uint64_t hash_mix(uint64_t key)
{
	key = (key ^ hash_seed) * 0x9e3779b97f4a7c15ull;
	key = (key ^ key >> 32) * 0xd6e8feb86659fd93ull;
	return key ^ key >> 32;
}

#endif
