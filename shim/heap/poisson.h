/*
 * Chance, without floating point: which bytes are looked at when not all are, and
 * what one that was stands for.
 *
 * Bytes are looked at one by one, each with the same small probability whatever
 * went before: so the gaps are exponential, a block of s bytes is found with
 * probability 1 - exp(-s / period), and counted 1 over that, sums are right on
 * average, of any blocks.
 */
#ifndef SHIM_POISSON_H
#define SHIM_POISSON_H

#include <stdint.h>

/* The next number; @state may begin with any, and never comes to an end. */
uint64_t poisson_next(uint64_t *state);

/* How many bytes go by until the next is looked at. */
uint64_t poisson_gap(uint64_t *state, uint64_t period);

/* What a found block of @size stands for. */
struct poisson_weight {
	uint64_t blocks;	/* rounded up or down by @dice, any number, so that the
				 * mean is right */
	uint64_t bytes;
};
struct poisson_weight poisson_weight(uint64_t size, uint64_t period,
				   uint64_t dice);

#endif
