/*
 * The code of XRay's sleds: arch/x86_64/marks.c.
 */
#include "sources/mark_code.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#ifdef __x86_64__

#define ADDRESS	   0x200000000000
#define CALL_END   10
#define ENTRY_CALL 5
#define SIZE	   11
#define ENTRY	   0
#define LEAVE	   1
#define TAIL_CALL  2

static struct xray_sled sled_at(unsigned event, uintptr_t address,
				uintptr_t function)
{
	return (struct xray_sled){ .event = event,
				   .address = address,
				   .function = function };
}

/* The sled of a function that begins @depth bytes before it. */
static bool prepare_at(unsigned event, unsigned char *code, uintptr_t address,
		       uintptr_t depth, uintptr_t veneers)
{
	struct xray_sled sled = sled_at(event, address, address - depth);

	return xray_prepare(&sled, code, veneers);
}

static unsigned end_of(unsigned event, uintptr_t address, uintptr_t depth)
{
	struct xray_sled sled = sled_at(event, address, address - depth);

	return xray_end(&sled);
}

/* As clang has made it. */
static void make_sled(unsigned event, unsigned char code[SIZE])
{
	memset(code, 0x90, SIZE);
	code[0] = event == LEAVE ? 0xc3 : 0xeb;
	if (event != LEAVE)
		code[1] = 9;
}

/* @depth: of the end of the call; @distance: from there to the veneers. */
static bool prepare(unsigned event, unsigned char code[SIZE], int64_t depth,
		    int64_t distance)
{
	make_sled(event, code);
	return prepare_at(event, code, ADDRESS, (uintptr_t)(depth - CALL_END),
			  (uintptr_t)(ADDRESS + CALL_END + distance));
}

/* --- veneers --- */

static uintptr_t slots[VENEER_SLOTS];
static unsigned char veneers[VENEERS_SIZE] __attribute__((aligned(4096)));

/* The number of the slot that the veneer jumps through. */
static unsigned slot_of(const unsigned char *veneer)
{
	int32_t distance;

	cr_assert(ge(ptr, (void *)veneer, (void *)veneers));
	cr_assert(lt(ptr, (void *)veneer, (void *)(veneers + VENEERS_SIZE)));
	cr_assert(eq(u8, veneer[0], 0xff));
	cr_assert(eq(u8, veneer[1], 0x25));
	memcpy(&distance, veneer + 2, sizeof(distance));
	return (unsigned)((const uintptr_t *)(veneer + 6 + distance) - slots);
}

static const unsigned char *target(const unsigned char *call)
{
	int32_t distance;

	memcpy(&distance, call + 1, sizeof(distance));
	return call + 5 + distance;
}

/* A sled in the memory behind the veneers, at any even address. */
static unsigned char code_of_entries[1024] __attribute__((aligned(4096)));

Test(xray, a_sled_at_an_entry_calls_a_veneer_of_its_depth)
{
	veneers_put(veneers, slots);
	for (unsigned depth = 0; depth <= 4; depth += 4)
		for (unsigned at = 0; at < 512; at += 2) {
			unsigned char *code = &code_of_entries[at];
			uintptr_t address = (uintptr_t)code;
			const unsigned char *veneer;

			make_sled(ENTRY, code);
			cr_assert(prepare_at(ENTRY, code, address, depth,
					     (uintptr_t)veneers));
			cr_assert(eq(u8, code[0], 0xeb));
			cr_assert(eq(u8, code[1], 9), "depth %u, %u", depth,
				  at);
			veneer = target(code);
			cr_assert(eq(u32, slot_of(veneer),
				     MARK_EVENTS + depth / 4));
			cr_assert(eq(sz,
				     veneers_pushed((size_t)(veneer - veneers)),
				     8));
			cr_assert(eq(u32, end_of(ENTRY, address, depth),
				     ENTRY_CALL));
		}
}

Test(xray, other_sleds_call_the_veneer_of_their_event)
{
	unsigned char *code = code_of_entries;
	uintptr_t address = (uintptr_t)code;

	veneers_put(veneers, slots);
	for (unsigned event = ENTRY; event <= TAIL_CALL; event++) {
		const unsigned char *veneer;

		make_sled(event, code);
		cr_assert(prepare_at(event, code, address, 1 << 17,
				     (uintptr_t)veneers));
		cr_assert(eq(u8, code[5], 0xe8));
		veneer = target(code + 5);
		cr_assert(eq(u32, slot_of(veneer), event));
		cr_assert(
			eq(sz, veneers_pushed((size_t)(veneer - veneers)), 16));
	}
}

/* No alignment is guaranteed, nor the place of a sled in its function. */
Test(xray, only_an_even_sled_near_the_beginning_of_its_function_is_one_call)
{
	static const struct {
		unsigned event;
		uintptr_t address, depth;
		uint8_t end;
	} cases[] = {
		{ ENTRY, ADDRESS, 0, ENTRY_CALL },
		{ ENTRY, ADDRESS, 4, ENTRY_CALL },
		{ ENTRY, ADDRESS, 2, CALL_END },
		{ ENTRY, ADDRESS, 8, CALL_END },
		{ ENTRY, ADDRESS, -4ul, CALL_END },
		{ ENTRY, ADDRESS + 1, 0, CALL_END },
		{ LEAVE, ADDRESS, 0, CALL_END },
		{ LEAVE, ADDRESS, 4, CALL_END },
		{ TAIL_CALL, ADDRESS, 0, ENTRY_CALL },
		{ TAIL_CALL, ADDRESS, (1 << 16) - ENTRY_CALL, ENTRY_CALL },
		{ TAIL_CALL, ADDRESS, (1 << 16) - ENTRY_CALL + 1, CALL_END },
		{ TAIL_CALL, ADDRESS, -6ul, CALL_END },
		{ TAIL_CALL, ADDRESS + 1, 0, CALL_END },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uintptr_t address = cases[i].address;
		unsigned char code[SIZE];

		cr_expect(eq(u32,
			     end_of(cases[i].event, address, cases[i].depth),
			     cases[i].end),
			  "%zu", i);
		make_sled(cases[i].event, code);
		cr_assert(prepare_at(cases[i].event, code, address,
				     cases[i].depth, address + 0x10000));
		cr_expect(eq(int, code[5] == 0xe8, cases[i].end == CALL_END),
			  "%zu", i);
	}
}

Test(xray, an_entry_that_is_too_far_from_the_veneers_is_refused)
{
	static const int64_t away[] = { 0x7fff0000, -0x7fff0000l, 0x80000000,
					-0x80010000l, 1l << 40 };

	for (size_t i = 0; i < sizeof(away) / sizeof(*away); i++) {
		unsigned char code[SIZE], before[SIZE];

		make_sled(ENTRY, before);
		make_sled(ENTRY, code);
		cr_expect(eq(int,
			     prepare_at(ENTRY, code, ADDRESS, 0,
					(uintptr_t)(ADDRESS + away[i])),
			     i < 2),
			  "%zu", i);
		if (i >= 2)
			cr_expect(eq(int, memcmp(code, before, SIZE), 0), "%zu",
				  i);
	}
}

/* The veneer of an event is behind those of other sleds. */
#define EVENT_VENEER(event) (3848 + 8 * (int64_t)(event))

Test(xray, distances_that_do_not_fit_are_refused)
{
	static const struct {
		int64_t depth, distance;
		bool fits;
	} cases[] = {
		{ 12, 1000, true },
		{ 1 << 23, 1000, true },
		{ (1 << 23) + 1, 1000, false },
		{ 1 - (1 << 23), 1000, true },
		{ -(1 << 23), 1000, false },
		{ 12, INT32_MAX, true },
		{ 12, INT32_MAX + 1l, false },
		{ 12, INT32_MIN, true },
		{ 12, INT32_MIN - 1l, false },
		{ -(1 << 23), INT32_MAX + 1l, false },
		{ 1l << 40, 1000, false },
		{ -(1l << 40), 1000, false },
		{ 12, 1l << 40, false },
		{ 12, -(1l << 40), false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		for (unsigned event = ENTRY; event <= LEAVE; event++) {
			unsigned char code[SIZE], before[SIZE];
			bool fits = prepare(event, code, cases[i].depth,
					    cases[i].distance -
						    EVENT_VENEER(event));
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

/* --- tail calls --- */

static int from_bytes(const unsigned char *low, const unsigned char *high)
{
	return (int16_t)(*low | *high << 8);
}

Test(xray, a_sled_at_a_tail_call_has_the_distance_to_its_function)
{
	veneers_put(veneers, slots);
	for (unsigned at = 0; at < 512; at += 2) {
		unsigned char *code = &code_of_entries[at];
		const unsigned char *veneer;

		make_sled(TAIL_CALL, code);
		cr_assert(prepare_at(TAIL_CALL, code, (uintptr_t)code, 10 * at,
				     (uintptr_t)veneers));
		cr_assert(eq(u8, code[0], 0xeb));
		cr_assert(eq(u8, code[1], 9), "%u", at);
		veneer = target(code);
		cr_assert(eq(u32, slot_of(veneer), VENEER_TAILCALL));
		cr_assert(
			eq(sz, veneers_pushed((size_t)(veneer - veneers)), 8));
		cr_assert(eq(int, memcmp(code + 5, "\x66\x0f\x1f\x44", 4), 0));
		cr_assert(eq(int, from_bytes(code + 9, code + 10),
			     -(int)(10 * at + ENTRY_CALL)));
	}
}

Test(xray, the_jump_behind_a_sled_has_a_condition)
{
	static const struct {
		unsigned char behind[XRAY_BEHIND];
		uint8_t condition;
	} cases[] = {
		{ { 0x0f, 0x84 }, 0x74 }, { { 0x0f, 0x80 }, 0x70 },
		{ { 0x0f, 0x8f }, 0x7f }, { { 0x75, 0x84 }, 0x75 },
		{ { 0xe9, 0x84 }, 0 },	  { { 0xeb, 0x74 }, 0 },
		{ { 0x0f, 0x1f }, 0 },	  { { 0xff, 0xe0 }, 0 },
		{ { 0x41, 0xff }, 0 },	  { { 0x0f, 0x90 }, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		cr_expect(eq(u8, xray_condition(cases[i].behind),
			     cases[i].condition),
			  "%zu", i);
}

Test(xray, a_sled_before_a_conditional_jump_jumps_on_the_inverse_condition)
{
	veneers_put(veneers, slots);
	for (unsigned jump = 0x70; jump <= 0x7f; jump++) {
		unsigned char *code = code_of_entries;
		struct xray_sled sled = sled_at(TAIL_CALL, (uintptr_t)code,
						(uintptr_t)code - 16 * jump);

		sled.jump = (uint8_t)jump;
		make_sled(TAIL_CALL, code);
		cr_assert(eq(u8, xray_end(&sled), 7));
		cr_assert(xray_prepare(&sled, code, (uintptr_t)veneers));
		cr_assert(eq(int, (int)xray_state(&sled, code), MARK_OFF));
		cr_assert(eq(u32, slot_of(target(code + 2)), VENEER_CONDITION));
		xray_switch(&sled, code, true);
		cr_assert(eq(u8, code[0], (uint8_t)(jump ^ 1)));
		cr_assert(eq(u8, code[1], 9));
		cr_assert(eq(u8, code[7], (uint8_t)(jump ^ 1)));
		cr_assert(eq(u8, code[9], (uint8_t)(jump ^ 1)));
		cr_assert(eq(int, from_bytes(code + 8, code + 10),
			     -(int)(16 * jump + 7)));
		cr_assert(eq(int, (int)xray_state(&sled, code), MARK_ON));
		code[0] = (unsigned char)jump;
		cr_assert(eq(int, (int)xray_state(&sled, code), MARK_OTHER));
		xray_switch(&sled, code, false);
		cr_assert(eq(u8, code[0], 0xeb));
	}
}

/* Two bytes cannot have the distance. */
Test(xray, a_sled_before_a_conditional_jump_in_a_large_function_is_refused)
{
	struct xray_sled sled = sled_at(TAIL_CALL, ADDRESS, ADDRESS - 65529);
	unsigned char code[SIZE], before[SIZE];

	sled.jump = 0x74;
	make_sled(TAIL_CALL, code);
	make_sled(TAIL_CALL, before);
	cr_expect(xray_prepare(&sled, code, ADDRESS + 0x10000));
	make_sled(TAIL_CALL, code);
	sled.function--;
	cr_expect(not(xray_prepare(&sled, code, ADDRESS + 0x10000)));
	sled.function = ADDRESS + 7;
	cr_expect(not(xray_prepare(&sled, code, ADDRESS + 0x10000)));
	sled.function = ADDRESS - 4;
	cr_expect(not(xray_prepare(&sled, code, ADDRESS + (1l << 40))));
	cr_expect(eq(int, memcmp(code, before, SIZE), 0));
}

/* --- states --- */

static int state_of(const struct xray_sled *sled, const unsigned char *code)
{
	return (int)xray_state(sled, code);
}

/* @depth: of the sled; 0 makes it one call if it is not at a return. */
static void check_states(unsigned event, uintptr_t depth)
{
	struct xray_sled sled = sled_at(event, ADDRESS, ADDRESS - depth);
	bool is_call = event != LEAVE && depth == 0;
	unsigned char code[SIZE];

	make_sled(event, code);
	cr_expect(eq(int, state_of(&sled, code), MARK_OFF));
	cr_assert(xray_prepare(&sled, code, ADDRESS + 0x10000));
	cr_expect(eq(int, state_of(&sled, code), MARK_OFF));
	xray_switch(&sled, code, true);
	cr_expect(eq(u8, code[0], is_call ? 0xe8 : 0x68));
	cr_expect(eq(int, state_of(&sled, code), MARK_ON));
	code[5] ^= 1;
	cr_expect(eq(int, state_of(&sled, code), MARK_OTHER));
	code[5] ^= 1;
	xray_switch(&sled, code, false);
	cr_expect(eq(u8, code[0],
		     is_call	    ? 0xa9 :
		     event == LEAVE ? 0xc3 :
				      0xeb));
	cr_expect(eq(int, state_of(&sled, code),
		     is_call ? MARK_READY : MARK_OFF));
	xray_release(&sled, code);
	cr_expect(eq(int, state_of(&sled, code), MARK_OFF));
	code[0] = 0xcc;
	cr_expect(eq(int, state_of(&sled, code), MARK_OTHER));
	/* Another tool has switched it off. */
	code[0] = event == LEAVE ? 0xc3 : 0xeb;
	cr_expect(eq(int, state_of(&sled, code), MARK_OFF));
	make_sled(event, code);
	code[1]++;
	cr_expect(eq(int, state_of(&sled, code),
		     event == LEAVE ? MARK_OFF : MARK_OTHER));
	memcpy(code, "\x41\xba\x01\x00\x00\x00\xe8", 7);
	cr_expect(eq(int, state_of(&sled, code), MARK_OTHER));
	cr_expect(xray_is_llvms(code));
	code[1] = 0xbb;
	cr_expect(not(xray_is_llvms(code)));
}

Test(xray, a_sled_is_on_or_off_or_of_another_tool)
{
	for (unsigned event = ENTRY; event <= TAIL_CALL; event++) {
		check_states(event, 0);
		check_states(event, 1 << 17);
	}
}

/* Its second byte need not be 9, for it is no jump any more. */
Test(xray, an_entry_that_is_ready_calls_a_counter)
{
	unsigned char *code = code_of_entries;
	struct xray_sled sled = sled_at(ENTRY, (uintptr_t)code,
					(uintptr_t)code);

	cr_assert(xray_counts(&sled));
	make_sled(ENTRY, code);
	cr_assert(xray_prepare(&sled, code, (uintptr_t)veneers));
	xray_switch(&sled, code, false);
	cr_assert(eq(int, state_of(&sled, code), MARK_READY));
	for (unsigned i = 0; i < 512; i++) {
		sled.counter = (uintptr_t)(veneers + i);
		cr_assert(xray_prepare(&sled, code, (uintptr_t)veneers));
		cr_assert(eq(int, state_of(&sled, code), MARK_READY));
		xray_switch(&sled, code, true);
		cr_assert(eq(u64, (uintptr_t)target(code), sled.counter));
		cr_assert(eq(int, state_of(&sled, code), MARK_ON));
		xray_switch(&sled, code, false);
	}
	sled.counter = (uintptr_t)veneers + (1ul << 40);
	cr_assert(not(xray_prepare(&sled, code, (uintptr_t)veneers)));
	xray_release(&sled, code);
	cr_assert(eq(u8, code[0], 0xeb));
	cr_assert(eq(u8, code[1], 9));
	cr_assert(eq(int, state_of(&sled, code), MARK_OFF));
}

Test(xray, only_entries_count)
{
	struct xray_sled tail = sled_at(TAIL_CALL, ADDRESS, ADDRESS - 20);
	struct xray_sled leave = sled_at(LEAVE, ADDRESS, ADDRESS - 20);
	struct xray_sled deep = sled_at(ENTRY, ADDRESS, ADDRESS - 20);

	cr_expect(not(xray_counts(&tail)));
	cr_expect(not(xray_counts(&leave)));
	cr_expect(not(xray_counts(&deep)));
}

/* What clang 14 to 19 make of a sled. */
static const unsigned char compiled[SIZE] = { 0xeb, 0x09, 0x66, 0x0f,
					      0x1f, 0x84, 0x00, 0x00,
					      0x02, 0x00, 0x00 };

Test(xray, a_sled_that_idles_is_one_instruction)
{
	for (unsigned event = ENTRY; event <= TAIL_CALL; event++)
		for (unsigned odd = 0; odd <= 1; odd++) {
			struct xray_sled sled = sled_at(event, ADDRESS + odd,
							ADDRESS);

			cr_expect(eq(int, xray_idles(&sled),
				     event != LEAVE && !odd));
		}
	for (unsigned event = ENTRY; event <= TAIL_CALL; event += TAIL_CALL) {
		struct xray_sled sled = sled_at(event, ADDRESS, ADDRESS);
		unsigned char code[SIZE];

		memcpy(code, compiled, SIZE);
		cr_assert(xray_idle(code, true));
		cr_expect(eq(
			int,
			memcmp(code, "\x66\x66\x66\x0f\x1f\x84\x00\x00\x02", 9),
			0));
		cr_expect(eq(int, state_of(&sled, code), MARK_IDLE));
		cr_assert(xray_idle(code, false));
		cr_expect(eq(int, memcmp(code, compiled, SIZE), 0));
	}
}

Test(xray, other_bytes_than_the_compilers_do_not_idle)
{
	struct xray_sled sled = sled_at(ENTRY, ADDRESS, ADDRESS);

	for (unsigned i = 2; i < SIZE; i++) {
		unsigned char code[SIZE], before[SIZE];

		memcpy(code, compiled, SIZE);
		code[i]++;
		memcpy(before, code, SIZE);
		cr_expect(not(xray_idle(code, true)));
		cr_expect(eq(int, memcmp(code, before, SIZE), 0), "%u", i);
		code[0] = code[1] = 0x66;
		cr_expect(eq(int, state_of(&sled, code), MARK_OTHER), "%u", i);
	}
}

#endif
