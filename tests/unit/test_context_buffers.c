/*
 * Buffers of call contexts: signals between any two steps of taking a buffer.
 */
#define _GNU_SOURCE
#include "inspect/context_buffers.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>

#ifdef __x86_64__

static volatile sig_atomic_t steps, faults;

/* Keeps the second buffer until the next step: the code that the signal
 * interrupted while it took the first one must not get the same buffer. */
static void on_step(int number)
{
	static uint32_t random = 1;
	static char *kept;
	char *first, *second;

	(void)number;
	steps = steps + 1;
	random = random * 1103515245u + 12345u;
	/* not at each step, or the test would never end */
	if (random >> 16 & 15)
		return;
	first = context_buffer_take(8);
	second = context_buffer_take(8);
	if (kept && memcmp(kept, "handler", 8) != 0)
		faults = faults + 1;
	if (kept)
		context_buffer_give_back(kept);
	if (second)
		memcpy(second, "handler", 8);
	kept = second;
	if (first)
		context_buffer_give_back(first);
}

/* Switches on or off a signal after each instruction. */
static inline __attribute__((always_inline)) void switch_steps(void)
{
	__asm__ volatile("lea -128(%%rsp), %%rsp\n\t"
			 "pushfq\n\t"
			 "xorq $0x100, (%%rsp)\n\t"
			 "popfq\n\t"
			 "lea 128(%%rsp), %%rsp" ::
				 : "memory", "cc");
}

/* This was seen to fail without the count next to the head of the list. */
Test(context_buffers, a_signal_never_makes_one_buffer_two, .timeout = 300)
{
	struct sigaction action = { .sa_handler = on_step };
	char *buffers[8];

	for (int i = 0; i < 8; i++) /* goes into the list */
		buffers[i] = context_buffer_take(8);
	for (int i = 0; i < 8; i++)
		context_buffer_give_back(buffers[i]);
	sigaction(SIGTRAP, &action, NULL);
	for (int n = 0; n < 100; n++) {
		switch_steps();
		for (int i = 0; i < 3; i++)
			buffers[i] = context_buffer_take(8);
		switch_steps();
		for (int i = 0; i < 3; i++)
			memcpy(buffers[i], "program", 8);
		switch_steps();
		for (int i = 0; i < 3; i++)
			context_buffer_give_back(buffers[n & 1 ? 2 - i : i]);
		switch_steps();
	}
	cr_expect(eq(int, faults, 0));
	cr_expect(gt(int, steps, 5000));
}

#endif

Test(context_buffers, each_size_has_its_room)
{
	static const size_t sizes[] = { 1,    31,   32,	  33,	 4096,
					8192, 8193, 5000, 524288 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		unsigned char *a = context_buffer_take(sizes[i]);
		unsigned char *b = context_buffer_take(sizes[i]);

		cr_assert(ne(ptr, a, NULL));
		cr_assert(ne(ptr, b, NULL));
		memset(a, 1, sizes[i]);
		memset(b, 2, sizes[i]);
		cr_expect(eq(int, a[0] + a[sizes[i] - 1], 2));
		cr_expect(eq(sz, context_buffer_size(a), sizes[i]));
		cr_expect(eq(int, context_buffer_give_back(a), 1));
		cr_expect(eq(int, context_buffer_give_back(a), 0));
		cr_expect(eq(int, context_buffer_give_back(b), 1));
	}
	cr_expect(eq(ptr, context_buffer_take(CONTEXT_BUFFER_MAX + 1), NULL));
}

/* 4 MiB of each size, from 32 bytes to 512 KiB by factors of 4; smaller buffers may take
 * larger blocks. */
Test(context_buffers, all_blocks_of_all_sizes_can_be_taken)
{
	unsigned char *large[8], *last = NULL;
	unsigned count = 0;

	for (unsigned i = 0; i < 8; i++) {
		large[i] = context_buffer_take(CONTEXT_BUFFER_MAX);
		cr_assert(ne(ptr, large[i], NULL));
		memset(large[i], (int)i, CONTEXT_BUFFER_MAX);
	}
	cr_assert(eq(ptr, context_buffer_take(CONTEXT_BUFFER_MAX), NULL));
	for (unsigned i = 0; i < 8; i++) {
		cr_assert(eq(uint, large[i][0], i));
		cr_assert(eq(uint, large[i][CONTEXT_BUFFER_MAX - 1], i));
		cr_assert(eq(int, context_buffer_give_back(large[i]), 1));
	}
	for (void *buffer; (buffer = context_buffer_take(1)); count++)
		last = buffer;
	cr_assert(eq(uint, count,
		     131072 + 32768 + 8192 + 2048 + 512 + 128 + 32 + 8));
	cr_assert(eq(int, context_buffer_give_back(last), 1));
	cr_assert(eq(ptr, context_buffer_take(CONTEXT_BUFFER_MAX), last));
}
