/*
 * Random gaps between samples, exponentially distributed, in integer
 * arithmetic: code inside the program must not touch floating point registers.
 */
#include "heap/poisson.h"

#include "os/random.h"

#include <shim/banned.h>

typedef unsigned __int128 uint128;

#define LN2_63 0x58b90bfbe8e7bcd5ull /* ln 2, times 2^63 */

/* log2(@x) times 2^32; @x is not 0.  For each bit it squares the mantissa: the bit is 1
 * if the square is at least 2. */
static uint64_t log2_32(uint64_t x)
{
	unsigned zeros = (unsigned)__builtin_clzll(x);
	uint64_t mantissa = x << zeros, log = 63 - zeros;

	for (unsigned i = 0; i < 32; i++) {
		uint128 square = (uint128)mantissa * mantissa;
		unsigned bit = (unsigned)(square >> 127);

		mantissa = (uint64_t)(square >> (63 + bit));
		log = log << 1 | bit;
	}
	return log;
}

uint64_t poisson_gap(uint64_t *state, uint64_t period)
{
	uint64_t log = (64ull << 32) - log2_32(random_next(state) | 1);
	uint128 gap = (uint128)log * LN2_63 >> 55; /* times 2^40 */

	return (uint64_t)(gap * period >> 40) + 1;
}

#define ONE (1ull << 62)

/* @part / @whole, times 2^62; less than 1. */
static uint64_t divide_62(uint64_t part, uint64_t whole)
{
	uint64_t quotient = 0;

	for (unsigned i = 0; i < 62; i++) {
		part *= 2;
		quotient *= 2;
		if (part >= whole) {
			part -= whole;
			quotient++;
		}
	}
	return quotient;
}

/* 1 - exp(-x) for an @x of at most 1, both times 2^62: x - x^2/2! + x^3/3! ... */
static uint64_t one_minus_exp_62(uint64_t x)
{
	uint64_t term = x, sum = 0;

	for (unsigned i = 2; term != 0; i++) {
		sum += i % 2 ? -term : term;
		term = (uint64_t)((uint128)term * x >> 62) / i;
	}
	return sum;
}

/* The probability that a block is sampled, times 2^62. */
static uint64_t probability_62(uint64_t size, uint64_t period)
{
	uint64_t whole = size / period;
	uint64_t found = one_minus_exp_62(divide_62(size % period, period));
	uint64_t missed = ONE - found;

	if (whole == 0)
		return found;
	if (whole > 43)
		return ONE;
	while (whole-- > 0)
		missed = (uint64_t)((uint128)missed *
					    (ONE - one_minus_exp_62(ONE)) >>
				    62);
	return ONE - missed;
}

struct poisson_weight poisson_weight(uint64_t size, uint64_t period,
				     uint64_t dice)
{
	uint64_t probability = probability_62(size, period);
	unsigned zeros;
	uint128 weight; /* times 2^32 */

	if (probability == 0) /* such a block is too small to be sampled */
		return (struct poisson_weight){ period, period };
	zeros = (unsigned)__builtin_clzll(probability);
	weight = UINT64_MAX / (probability << zeros >> 32) + 1;
	weight = weight << zeros >> 2;
	return (struct poisson_weight){
		(uint64_t)((weight + (uint32_t)dice) >> 32),
		(uint64_t)((weight * size + (1u << 31)) >> 32),
	};
}
