/* The hash function of maps and name tables. */
#ifndef REPORT_BASE_HASH_H
#define REPORT_BASE_HASH_H

#include <stdint.h>

/* The seed differs in each process. */
uint64_t hash_seed(void);

/* Spreads the bits of @key over the whole hash. */
uint64_t hash_mix(uint64_t key);

#endif
