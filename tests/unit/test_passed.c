/*
 * Arguments found from handwritten code before calls.  The test runs each piece
 * of code; when the called function is entered, each argument found must be in
 * its register.
 */
#include "inspect/decode/passed.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

/* The assembly below uses these offsets. */
struct state {
	uint64_t registers[16]; /* by register number */
	uint64_t vectors[8][2];
	uint64_t site;
	uint64_t sp; /* the test's own */
};

extern struct state state;
struct state state;

void check(void);

/* The code aligns the stack before it calls check, whatever the caller did. */
__asm__(".text\n"
	"called:\n\t"
	"mov %rax, state(%rip); mov %rcx, 8+state(%rip)\n\t"
	"mov %rdx, 16+state(%rip); mov %rbx, 24+state(%rip)\n\t"
	"mov %rbp, 40+state(%rip); mov %rsi, 48+state(%rip)\n\t"
	"mov %rdi, 56+state(%rip); mov %r8, 64+state(%rip)\n\t"
	"mov %r9, 72+state(%rip); mov %r12, 96+state(%rip)\n\t"
	"mov %r13, 104+state(%rip); mov %r14, 112+state(%rip)\n\t"
	"mov %r15, 120+state(%rip)\n\t"
	"movups %xmm0, 128+state(%rip); movups %xmm1, 144+state(%rip)\n\t"
	"movups %xmm2, 160+state(%rip); movups %xmm3, 176+state(%rip)\n\t"
	"movups %xmm4, 192+state(%rip); movups %xmm5, 208+state(%rip)\n\t"
	"movups %xmm6, 224+state(%rip); movups %xmm7, 240+state(%rip)\n\t"
	"mov (%rsp), %rax; mov %rax, 256+state(%rip)\n\t"
	"lea 8(%rsp), %rax; mov %rax, 32+state(%rip)\n\t"
	"and $-16, %rsp\n\t"
	"call check\n\t"
	"mov 264+state(%rip), %rsp\n\t"
	"pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx; ret\n");

/* Letters: D, S, x, y, 8, 9 for rdi, rsi, rdx, rcx, r8, r9; a to h for the lower
 * halves of the vector registers, i to p for the upper ones. */
static const char letters[] = "DSxy89abcdefghijklmnop";
static const uint8_t entries[] = { 8,  7,  3,  2,  9,  10, 17, 18, 19, 20, 21,
				   22, 23, 24, 33, 34, 35, 36, 37, 38, 39, 40 };

/* Earlier code cannot be seen: it may have run elsewhere. */
#define P(name, code, found, lost) \
	CALL(name, "sub $256, %rsp; lea 64(%rsp), %rbp", code)
#define F(name, code, found, lost) \
	CALL(name, "mov %rsp, %rbp; sub $8448, %rsp", code)
#define CALL(name, frame, code) \
	"\n" #name ":\n\t" \
	"push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n\t" \
	"mov %rsp, 264+state(%rip)\n\t" frame "; lea 16(%rsp), %rbx\n\t" \
	"movabs $0x8182838485868788, %rax; mov %rax, (%rsp)\n\t" \
	"rol $8, %rax; mov %rax, 8(%rsp); rol $8, %rax; mov %rax, 16(%rsp)\n\t" \
	"rol $8, %rax; mov %rax, 24(%rsp); rol $8, %rax; mov %rax, 32(%rsp)\n\t" \
	"rol $8, %rax; mov %rax, 56(%rsp)\n\t" \
	"mov $0xf2f3f4f5, %r12d; mov $8, %r13d; mov $9, %r14d\n\t" \
	"mov $-7, %r15; cld; jmp 0f; 0:\n\t" code "\n\t" \
	"call called\n" #name "_end:\n"
__asm__(".text\nnothing: ret\n"
#include "passed_calls.def"
	".bss\nelsewhere: .quad 0, 0\n.text\n");
#undef P
#undef F

#define P(name, code, found, lost) \
	void name(void); \
	extern const char name##_end[];
#define F P
#include "passed_calls.def"
#undef P

static const struct {
	const char *name;
	void (*call)(void);
	const char *end, *found, *lost;
} calls[] = {
#define P(name, code, found, lost) { #name, name, name##_end, found, lost },
#include "passed_calls.def"
#undef P
#undef F
};

static size_t current;

static uint64_t combine(unsigned operation, uint64_t a, uint64_t b)
{
	cr_assert(eq(uint, operation, CALLSITE_PLUS));
	return a + b;
}

static uint64_t evaluate(const struct callsite_value *value)
{
	uint64_t stack[CALLSITE_DEPTH_MAX], *top = stack - 1;

	for (unsigned i = 0; i < value->count; i++) {
		const struct callsite_step *step = &value->steps[i];

		switch (step->operation) {
		case CALLSITE_CONSTANT: *++top = 0; break;
		case CALLSITE_REGISTER:
			*++top = state.registers[step->number];
			break;
		case CALLSITE_SP: *++top = state.registers[4]; break;
		case CALLSITE_LOAD: {
			const void *at = (const void *)*top;

			*top = 0;
			memcpy(top, at, step->number);
			break;
		}
		default: top--, *top = combine(step->operation, *top, top[1]);
		}
		*top += (uint64_t)step->value;
	}
	return *top;
}

static uint64_t passed_in(unsigned entry)
{
	if (entry <= 16)
		return state.registers[entry - 1];
	if (entry < 17 + CALLSITE_UPPER)
		return state.vectors[entry - 17][0];
	return state.vectors[entry - 17 - CALLSITE_UPPER][1];
}

/* The bytes that are found of argument @i. */
static unsigned bytes_found(const struct decode_passed *passed, unsigned i)
{
	for (uint32_t n = 0; n < passed->count; n++)
		if (passed->values[n].entry == entries[i])
			return passed->values[n].size;
	return 0;
}

static void expect_found(const struct decode_passed *passed, unsigned i)
{
	const char *found = strchr(calls[current].found, letters[i]);
	unsigned bytes = 8;

	if (strchr(calls[current].lost, letters[i]))
		cr_expect(zero(uint, bytes_found(passed, i)), "%s: %c is lost",
			  calls[current].name, letters[i]);
	if (!found)
		return;
	if (found[1] && strchr("124", found[1]))
		bytes = (unsigned)(found[1] - '0');
	cr_expect(eq(uint, bytes_found(passed, i), bytes), "%s: %c is found",
		  calls[current].name, letters[i]);
}

static bool is_argument(unsigned entry)
{
	return memchr(entries, (int)entry, sizeof(entries)) != NULL;
}

__attribute__((used)) void check(void)
{
	struct decode_range range = { (uintptr_t)calls[current].call,
				      (uintptr_t)calls[current].end };
	struct decode_passed passed = { .site = state.site,
					.ranges = &range,
					.range_count = 1 };

	passed_find(&passed);
	for (uint32_t i = 0; i < passed.count; i++) {
		const struct callsite_value *value = &passed.values[i];
		unsigned shift = 64 - value->size * 8u;

		cr_assert(value->size > 0 && value->size <= 8);
		cr_assert(is_argument(value->entry), "%s: %u",
			  calls[current].name, value->entry);
		cr_expect(eq(u64, evaluate(value) << shift,
			     passed_in(value->entry) << shift),
			  "%s: %u", calls[current].name, value->entry);
	}
	for (unsigned i = 0; letters[i]; i++)
		expect_found(&passed, i);
}

Test(passed, no_code_makes_a_value_wrong)
{
	for (current = 0; current < sizeof(calls) / sizeof(calls[0]); current++)
		if (strncmp(calls[current].name, "avx_", 4) != 0 ||
		    __builtin_cpu_supports("avx"))
			calls[current].call();
}

/* Another function jumps into the middle of this one: it is a part of this
 * function in another place. */
Test(passed, all_parts_of_a_function_are_looked_at)
{
	struct decode_passed passed = { .site = (uintptr_t)copied_end };
	struct decode_range range = { (uintptr_t)copied,
				      (uintptr_t)copied_end };

	passed.ranges = &range;
	passed.range_count = 1;
	cr_assert(passed_find(&passed));
	cr_assert(gt(u32, passed.count, 4));
	passed.site--;
	cr_assert(not(passed_find(&passed)));
	passed.site = (uintptr_t)changed_end;
	cr_assert(not(passed_find(&passed)));
}

static uint32_t count_passed(const struct decode_range *ranges, uint32_t count,
			     uintptr_t site, uint32_t age)
{
	struct decode_passed passed = {
		.site = site, .ranges = ranges, .range_count = count, .age = age
	};

	return passed_find(&passed) ? passed.count : 0;
}

Test(passed, a_call_in_any_part_is_understood)
{
	struct decode_range ranges[17] = {
		{ (uintptr_t)changed, (uintptr_t)changed_end },
		{ (uintptr_t)constants, (uintptr_t)constants_end },
		{ (uintptr_t)copied, (uintptr_t)copied_end },
	};
	uint32_t count = count_passed(&ranges[1], 1, ranges[1].end, 0);

	cr_assert(gt(u32, count, 4));
	cr_expect(eq(u32, count_passed(ranges, 3, ranges[1].end, 0), count));
	cr_expect(eq(u32, count_passed(ranges, 3, ranges[2].end, 0),
		     count_passed(&ranges[2], 1, ranges[2].end, 0)));
	cr_expect(zero(u32, count_passed(ranges, 1, ranges[1].end, 0)));
	/* Not the beginning of an instruction, or not behind a call. */
	cr_expect(zero(u32, count_passed(ranges, 3, ranges[1].end - 1, 0)));
	cr_expect(zero(u32, count_passed(ranges, 3, ranges[1].end - 5, 0)));
	for (unsigned i = 3; i < 17; i++)
		ranges[i] = ranges[0];
	cr_expect(eq(u32, count_passed(ranges, 16, ranges[1].end, 0), count));
	cr_expect(zero(u32, count_passed(ranges, 17, ranges[1].end, 0)));
}

/* Other code at the same address, as after an unload: it jumps to its last move. */
Test(passed, a_caller_is_read_again_after_a_change)
{
	static const unsigned char before[] = "\xeb\0\x48\x89\xdf\x48\x89\xde"
					      "\xe8\0\0\0";
	static const unsigned char after[] = "\xeb\3\x48\x89\xdf\x48\x89\xde"
					     "\xe8\0\0\0";
	static unsigned char code[13];
	struct decode_range range = { (uintptr_t)code,
				      (uintptr_t)code + sizeof(code) };

	memcpy(code, before, sizeof(before));
	cr_expect(eq(u32, count_passed(&range, 1, range.end, 1), 2));
	memcpy(code, after, sizeof(after));
	cr_expect(eq(u32, count_passed(&range, 1, range.end, 1), 2));
	cr_expect(eq(u32, count_passed(&range, 1, range.end, 2), 1));
}
