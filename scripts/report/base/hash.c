/* The seed of the hash for all keys that a recording supplies. */
#include <stdint.h>
#include <time.h>

#include "base/hash.h"

uint64_t hash_seed;

/* Before main, so that no look-up has to ask. */
__attribute__((constructor)) static void choose_seed(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	hash_seed = ((uint64_t)now.tv_nsec << 32 ^ (uintptr_t)&hash_seed) | 1;
}
