/*
 * Compares the integer arithmetic of random gaps with floating point.
 */
#include "heap/poisson.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <inttypes.h>
#include <math.h>

static const uint64_t periods[] = { 2, 100, 4096, 524288, 1ull << 40 };
static const uint64_t sizes[] = { 1,	   16,	       100,
				  4096,	   100000,     524288,
				  5000000, 1ull << 35, 1ull << 41 };

Test(chance, a_block_stands_for_one_over_the_chance_that_it_is_found)
{
	for (unsigned i = 0; i < 5; i++)
		for (unsigned j = 0; j < 9; j++) {
			double wanted = -1 / expm1(-(double)sizes[j] /
						   (double)periods[i]);
			double blocks = 0, bytes = 0;

			for (uint64_t k = 0; k < 4096; k++) {
				struct poisson_weight weight = poisson_weight(
					sizes[j], periods[i],
					k << 20 | 1 << 19);

				blocks += (double)weight.blocks / 4096;
				bytes = (double)weight.bytes;
			}
			cr_assert(lt(dbl, fabs(blocks - wanted),
				     wanted * 1e-8 + 1.0 / 4096));
			cr_assert(lt(dbl,
				     fabs(bytes - wanted * (double)sizes[j]),
				     bytes * 1e-8 + 1));
		}
}

/* Whatever the random number is. */
Test(chance, a_block_that_is_always_found_stands_for_itself)
{
	for (uint64_t size = 128; size <= 1ull << 44; size *= 2) {
		struct poisson_weight weight = poisson_weight(size, 2, 0);

		cr_assert(eq(u64, weight.blocks, 1), "size %" PRIu64, size);
		cr_assert(eq(u64, weight.bytes, size), "size %" PRIu64, size);
		weight = poisson_weight(size, 2, UINT32_MAX);
		cr_assert(eq(u64, weight.blocks, 1), "size %" PRIu64, size);
	}
}

/* Checks mean, variance, and the median, which distinguishes an exponential
 * distribution from others. */
Test(chance, gaps_are_exponential)
{
	uint64_t state = 1;

	for (unsigned i = 1; i < 5; i++) {
		const unsigned count = 200000;
		double period = (double)periods[i], sum = 0, squares = 0;
		unsigned below = 0;

		for (unsigned k = 0; k < count; k++) {
			double gap = (double)poisson_gap(&state, periods[i]);

			gap -= 0.5;
			sum += gap / period;
			squares += gap / period * (gap / period);
			below += gap < period * log(2);
		}
		sum /= count;
		cr_assert(lt(dbl, fabs(sum - 1), 0.01));
		cr_assert(lt(dbl, fabs(squares / count - sum * sum - 1), 0.03));
		cr_assert(lt(dbl, fabs((double)below / count - 0.5), 0.006));
	}
}
