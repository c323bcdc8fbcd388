/*
 * Poisson sampling of bytes, without floating point: the gaps between samples, and the
 * weight of a sampled block.
 *
 * Each byte is sampled with the same small probability, independently of the others. So
 * the gaps are exponential, and a block of s bytes is sampled with probability 1 -
 * exp(-s / period).  Each sampled block has the inverse of that probability as its
 * weight, so that the sums of any blocks are right on average.
 */
#ifndef SHIM_POISSON_H
#define SHIM_POISSON_H

#include <stdint.h>

/* The number of bytes until the next sample.  @state: of os/random.h. */
uint64_t poisson_gap(uint64_t *state, uint64_t period);

/* The weight of a sampled block of @size. */
struct poisson_weight {
	/* rounded by the random number @dice, so that the mean is right */
	uint64_t blocks;
	uint64_t bytes;
};
struct poisson_weight poisson_weight(uint64_t size, uint64_t period,
				     uint64_t dice);

#endif
