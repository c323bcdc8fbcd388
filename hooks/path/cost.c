/*
 * Measures the cost of a call: the time of a function instrumented as compilers do it,
 * minus the time of the same function without hooks.  The cost excludes lost
 * optimizations of real functions, and cache misses of nodes.
 */
#include "path/opening.h"

#include <shim/banned.h>

struct measured {
	shim_site_hook enter, leave;
};

static __attribute__((noinline)) uint64_t
call_plain(const struct measured *hooks, uint64_t value)
{
	__asm__ volatile("" : "+r"(hooks), "+r"(value));
	return value * 3 + 1;
}

static __attribute__((noinline)) uint64_t
call_hooked(const struct measured *hooks, uint64_t value)
{
	const void *site = __builtin_return_address(0);

	hooks->enter(1, site);
	value = call_plain(hooks, value);
	hooks->leave(1, site);
	return value;
}

static uint64_t time_calls(uint64_t (*function)(const struct measured *hooks,
						uint64_t value),
			   const struct measured *hooks, uint64_t calls)
{
	uint64_t before, value = 1, best = ~0ull;

	/* The shortest of 4 rounds counts, because interruptions only add time. */
	for (int round = 0; round < 4; round++) {
		before = shim_clock_read();
		for (uint64_t i = 0; i < calls; i++)
			value = function(hooks, value);
		before = shim_clock_read() - before;
		if (before < best)
			best = before;
	}
	__asm__ volatile("" ::"r"(value));
	return best;
}

static void measure_cost(enum clock clock, struct shim_cost *cost)
{
	static struct shim_node root = { .frame = ~0ull }, node;
	static struct shim_node *cache[1] = { &node };
	static struct shim_extra_node extra;
	const shim_site_hook *pair = path_writer ? path_writer->hooks[clock] :
						   tree_hooks[clock];
	const struct measured hooks = { pair[0], pair[1] };
	const uint64_t calls = 128;
	uint64_t signals = shim_signals_block();
	struct hot saved = tree_hot;
	uint64_t total, bare;

	node = (struct shim_node){ .function = 1,
				   .parent = (uint64_t)&root,
				   .extra = (uint64_t)&extra };
	extra = (struct shim_extra_node){ .min = ~0ull };
	node_widen(&extra, 1);
	tree_hot = (struct hot){ .current = &root,
				 .cache = cache,
				 .trace = path_writer ? path_writer->measure() :
							NULL,
				 .tick = &cost_no_tick,
				 .recording = tree_recording };
	bare = time_calls(call_plain, &hooks, calls);
	total = time_calls(call_hooked, &hooks, calls);
	tree_hot = saved;
	shim_signals_restore(signals);
	total = total > bare ? (total - bare) * 1000 / calls : 0;
	/* The coarse clock cannot time itself, but nearly no time passes between its
	 * two readings: while enter waits for its node, before the first reading, the
	 * processor already executes the later instructions. */
	cost->inside = 0;
	if (clock == TRACED)
		cost->inside = (uint32_t)total / 2;
	if (clock == EXACT)
		cost->inside = (uint32_t)(node.time * 1000 / (4 * calls));
	if (cost->inside > total)
		cost->inside = (uint32_t)total;
	cost->outside = (uint32_t)total - cost->inside;
}

/*
 * In both hooks, the time before the first reading of the tick and after the last one
 * counts as the program's: the call, the linker's stub, and the code before the tick;
 * and a comparison and the return.  These instructions do not wait, so their number
 * determines the time, which is that of three readings.
 */
#define LOOKS_OUTSIDE 3

static uint64_t look(const volatile uint64_t *const volatile *tick,
		     const volatile uint64_t *last)
{
	return **tick != *last;
}

static void measure_unseen(struct shim_cost *cost)
{
	const volatile uint64_t *const volatile *tick = &tree_hot.tick;
	const volatile uint64_t *last = &tree_hot.last;
	const uint64_t rounds = 64, looks = 16;
	uint64_t best = ~0ull, before, ticked = 0;

	for (int round = 0; round < 8; round++) {
		before = shim_clock_read();
		for (uint64_t i = 0; i < rounds; i++) {
#pragma GCC unroll 16
			for (uint64_t j = 0; j < looks; j++)
				if (UNLIKELY(look(tick, last)))
					ticked++;
		}
		before = shim_clock_read() - before;
		if (before < best)
			best = before;
	}
	__asm__ volatile("" ::"r"(ticked));
	cost->inside = (uint32_t)(LOOKS_OUTSIDE * best * 1000 /
				  (rounds * looks));
	cost->outside = cost->inside;
}

void tree_describe_cost(struct shim_meta *meta)
{
	static struct shim_cost coarse, exact, unseen;

	/* A fork child that may not read the clock keeps its parent's figures. */
	if (!shim_clock_is_closed()) {
		if (tree_mode != COUNTS)
			measure_cost(tree_is_traced ? tree_mode : EXACT,
				     &exact);
		coarse = exact;
		if (tree_mode < EXACT)
			measure_cost(tree_mode, &coarse);
		if (tree_mode == COARSE)
			measure_unseen(&unseen);
	}
	meta->has_self = tree_mode == COARSE;
	meta->is_cpu = tree_is_cpu;
	meta->cost_unseen = unseen;
	meta->cost_coarse = coarse;
	meta->cost_exact = exact;
}
