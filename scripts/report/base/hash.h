/* The hash behind maps and names. */
#ifndef REPORT_BASE_HASH_H
#define REPORT_BASE_HASH_H

#include <stdint.h>

/* Another one in each process. */
uint64_t hash_seed(void);

/* Spreads the bits of @key over all of the hash. */
uint64_t hash_mix(uint64_t key);

#endif
