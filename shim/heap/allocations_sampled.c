/*
 * Samples allocations.  Each thread counts down the bytes to its next sample
 * (heap/poisson.c), so an allocation beyond the sample costs one subtraction.
 */
#include "heap/allocations_sampled.h"

#include "heap/poisson.h"
#include "os/random.h"

#include <shim/cpu.h>

#include <shim/banned.h>

uint64_t sampled_period;
__thread int64_t sampled_until;
uint16_t sampled_counts[1u << (64 - SAMPLED_SHIFT)];

static uint64_t first_state, threads;
static __thread uint64_t state;

void sampled_start(uint64_t period, uint64_t seed)
{
	first_state = seed ? seed : shim_clock_read() ^ (uintptr_t)&seed << 20;
	first_state = random_next(&first_state); /* mixes similar seeds */
	sampled_period = period;
}

void sampled_forget(void)
{
	for (size_t i = 0; i < sizeof(sampled_counts) / sizeof(*sampled_counts);
	     i++)
		__atomic_store_n(&sampled_counts[i], 0, __ATOMIC_RELAXED);
}

/* Each thread has its own random numbers.  Runs with the same seed have the same
 * numbers, if the threads first allocate in the same order. */
static void seed_thread(void)
{
	uint64_t number = __atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED);
	uint64_t mixed = first_state + number * 0xd1342543de82ef95ull;

	state = random_next(&mixed) | 1;
}

bool sampled_is_due(size_t size)
{
	bool is_first = state == 0;

	if (is_first)
		seed_thread();
	sampled_until = (int64_t)poisson_gap(&state, sampled_period);
	if (!is_first)
		return true;
	sampled_until -= (int64_t)(size | (size == 0));
	return sampled_until <= 0 && sampled_is_due(size);
}

void sampled_work_out_weight(struct shim_block *block)
{
	uint64_t mixed = block->serial ^ first_state;
	struct poisson_weight weight = poisson_weight(
		block->size | (block->size == 0), sampled_period,
		random_next(&mixed));

	block->weight = weight.blocks;
	block->weight_bytes = block->size ? weight.bytes : 0;
}

/* A counter at its maximum stays there.  A release at its addresses then searches the
 * table in vain. */
void sampled_change(uintptr_t address, int by)
{
	uint16_t *place = sampled_place(address);
	uint16_t count = __atomic_load_n(place, __ATOMIC_RELAXED);

	while (count != UINT16_MAX &&
	       !__atomic_compare_exchange_n(place, &count,
					    (uint16_t)(count + by), false,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}
