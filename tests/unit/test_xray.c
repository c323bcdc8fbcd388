/*
 * The code of XRay's sleds: arch/x86_64/marks.c.
 */
#include "sources/mark_code.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#ifdef __x86_64__

#define ADDRESS	  0x200000000000
#define CALL_END  10
#define SIZE	  11
#define ENTRY	  0
#define LEAVE	  1
#define TAIL_CALL 2

/* As clang has made it. */
static void make_sled(unsigned event, unsigned char code[SIZE])
{
	memset(code, 0x90, SIZE);
	code[0] = event == LEAVE ? 0xc3 : 0xeb;
	if (event != LEAVE)
		code[1] = 9;
}

static bool prepare(unsigned event, unsigned char code[SIZE], int64_t depth,
		    int64_t distance)
{
	make_sled(event, code);
	return xray_prepare(event, code, ADDRESS,
			    (uintptr_t)(ADDRESS + CALL_END - depth),
			    (uintptr_t)(ADDRESS + CALL_END + distance));
}

Test(xray, distances_that_do_not_fit_are_refused)
{
	static const struct {
		int64_t depth, distance;
		bool fits;
	} cases[] = {
		{ 10, 1000, true },
		{ 1 << 23, 1000, true },
		{ (1 << 23) + 1, 1000, false },
		{ 1 - (1 << 23), 1000, true },
		{ -(1 << 23), 1000, false },
		{ 10, INT32_MAX, true },
		{ 10, INT32_MAX + 1l, false },
		{ 10, INT32_MIN, true },
		{ 10, INT32_MIN - 1l, false },
		{ -(1 << 23), INT32_MAX + 1l, false },
		{ 1l << 40, 1000, false },
		{ -(1l << 40), 1000, false },
		{ 10, 1l << 40, false },
		{ 10, -(1l << 40), false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		for (unsigned event = ENTRY; event <= TAIL_CALL; event++) {
			unsigned char code[SIZE], before[SIZE];
			bool fits = prepare(event, code, cases[i].depth,
					    cases[i].distance);
			int32_t words[2];

			cr_expect(eq(int, fits, cases[i].fits), "%zu", i);
			make_sled(event, before);
			if (!fits) {
				cr_expect(
					eq(int, memcmp(code, before, SIZE), 0),
					"%zu", i);
				continue;
			}
			memcpy(&words[0], code + 1, 4);
			memcpy(&words[1], code + 6, 4);
			cr_expect(eq(u8, code[0], before[0]), "%zu", i);
			cr_expect(eq(i64, words[0],
				     -cases[i].depth * 256 +
					     (event == LEAVE ? 0 : 9)),
				  "%zu", i);
			cr_expect(eq(u8, code[5], 0xe8), "%zu", i);
			cr_expect(eq(i64, words[1], cases[i].distance), "%zu",
				  i);
			cr_expect(
				eq(u8, code[10], event == LEAVE ? 0xc3 : 0x90),
				"%zu", i);
		}
}

/* The compiler's runtime asks the processor as well. */
Test(xray, the_vector_registers_that_a_hook_keeps_are_the_largest_ones)
{
	uint32_t wanted = __builtin_cpu_supports("avx512f") ? 64 :
			  __builtin_cpu_supports("avx")	    ? 32 :
							      16;

	cr_expect(eq(u32, mark_vector_size(), wanted));
}

Test(xray, a_sled_is_on_or_off_or_of_another_tool)
{
	for (unsigned event = ENTRY; event <= TAIL_CALL; event++) {
		unsigned char code[SIZE];

		make_sled(event, code);
		cr_expect(eq(int, (int)xray_state(event, code), MARK_OFF));
		cr_assert(prepare(event, code, 10, 1000));
		cr_expect(eq(int, (int)xray_state(event, code), MARK_OFF));
		xray_switch(event, code, true);
		cr_expect(eq(int, (int)xray_state(event, code), MARK_ON));
		code[5] = 0xe9;
		cr_expect(eq(int, (int)xray_state(event, code), MARK_OTHER));
		code[5] = 0xe8;
		xray_switch(event, code, false);
		cr_expect(eq(int, (int)xray_state(event, code), MARK_OFF));
		code[0] = 0xcc;
		cr_expect(eq(int, (int)xray_state(event, code), MARK_OTHER));
		make_sled(event, code);
		code[1]++;
		cr_expect(eq(int, (int)xray_state(event, code),
			     event == LEAVE ? MARK_OFF : MARK_OTHER));
		memcpy(code, "\x41\xba\x01\x00\x00\x00\xe8", 7);
		cr_expect(eq(int, (int)xray_state(event, code), MARK_OTHER));
		cr_expect(xray_is_llvms(code));
		code[1] = 0xbb;
		cr_expect(not(xray_is_llvms(code)));
	}
	cr_expect(eq(u64, xray_return(ADDRESS), ADDRESS + CALL_END));
}

#endif
