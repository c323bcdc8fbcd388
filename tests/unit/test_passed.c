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

/* Name, code, arguments that must be found, arguments that must not. */
#define CALLS \
	P(copied, \
	  "mov %rbx, %rdi; lea 5(%r12), %rsi; mov %r13d, %edx; " \
	  "mov %r14, %r8; sub $7, %r8; movslq %r15d, %r9", \
	  "DSx89", "y") \
	P(constants, \
	  "mov $-5, %rdi; mov $-5, %esi; xor %edx, %edx; " \
	  "sub %rcx, %rcx; lea state(%rip), %r8; mov $7, %r9b", \
	  "DSxy89", "") \
	P(addresses, \
	  "lea 8(%rsp), %rdi; mov %rsp, %rsi; add $24, %rsi; " \
	  "sub $32, %rsp; lea 40(%rsp), %rdx; push %rbx", \
	  "DSx", "") \
	P(loaded, \
	  "mov 8(%rsp), %rdi; mov 20(%rsp), %esi; " \
	  "movzbl 9(%rsp), %edx; movsbl 10(%rsp), %ecx; " \
	  "mov 16(%rsp), %r8; inc %r8; mov (%rbx), %r9", \
	  "DSxy", "89") \
	P(stored_over, \
	  "mov 8(%rsp), %rdi; mov 16(%rsp), %rsi; " \
	  "mov 24(%rsp), %rdx; movl $3, 12(%rsp); " \
	  "movups %xmm0, 8(%rsp)", \
	  "x", "DS") \
	P(stored_anywhere, \
	  "mov 8(%rsp), %rdi; lea 8(%rsp), %rax; " \
	  "mov %rbx, %rsi; movq $9, (%rax, %r13); " \
	  "mov 8(%rsp), %rdx", \
	  "Sx", "D") \
	P(stored_by_bytes, \
	  "mov 8(%rsp), %rdx; lea 8(%rsp), %rdi; " \
	  "mov $3, %ecx; rep stosb; mov 8(%rsp), %rsi", \
	  "S", "Dxy") \
	P(stored_to_globals, "mov 8(%rsp), %rdi; movl $4, elsewhere(%rip)", \
	  "D", "") \
	P(stored_and_had, \
	  "mov (%rbx), %rdi; mov %rdi, 8(%rsp); " \
	  "mov (%rbx), %esi; mov %rsi, 16(%rsp); " \
	  "mov (%rbx), %rdx; mov %rdx, %r13; " \
	  "mov %dl, 24(%rsp)", \
	  "DSx", "") \
	P(pushed, \
	  "push %rbx; push 16(%rsp); push $4; mov (%rsp), %rdi; " \
	  "mov 8(%rsp), %rsi; pop %rdx; pop %rcx", \
	  "xyDS", "") \
	P(popped_away, "push (%rbx); mov (%rsp), %rdi; pop %rax", "", "D") \
	P(changed, \
	  "mov %rbx, %rdi; inc %rbx; mov %r12, %rsi; " \
	  "mov $1, %r12d; mov %r13, %rdx; mov $2, %r13b", \
	  "", "DSx") \
	P(jumped_between, \
	  "mov %rbx, %rdi; test %rbx, %rbx; jne 7f; " \
	  "mov %r12, %rdi; 7: mov %r13, %rsi", \
	  "S", "D") \
	P(jumped_from_behind, \
	  "jmp 7f; 8: mov %r12, %rdi; 9: mov %r13, %rsi; " \
	  "jmp 6f; 7: mov %rbx, %rdi; jmp 9b; 6:", \
	  "", "DS") \
	P(jumps_away, "mov %rbx, %rdi; cmp $5, %rbx; je 0b; mov %r12, %rsi", \
	  "DS", "") \
	P(table, "lea 7f(%rip), %rax; jmp *%rax; 7: mov %rbx, %rdi", "", "D") \
	P(called_before, "mov %rbx, %rdi; call nothing; mov %rbx, %rsi", "S", \
	  "D") \
	P(computed, \
	  "mov %rbx, %rdi; add %r12, %rdi; imul $3, %rbx, %rsi; " \
	  "mov %r12, %rdx; cmovne %r13, %rdx; mov %rbx, %rcx; " \
	  "xchg %ecx, %r8d; mov %rbx, %r9; bswap %r9", \
	  "", "DSx9") \
	P(high_bytes, "mov %rbx, %rdx; mov $3, %dh; mov %bh, %cl", "", "xy") \
	P(part_only, "mov 8(%rsp), %rdi; mov $3, %di; mov %bx, %si", "", "") \
	P(added_to_memory, "mov %rbx, %rdi; add 8(%rsp), %rdi", "", "D") \
	P(aligned, \
	  "and $-32, %rsp; lea 8(%rsp), %rdi; mov %rbx, (%rsp); " \
	  "mov (%rsp), %rsi", \
	  "DS", "") \
	P(vectors, \
	  "movsd 8(%rsp), %xmm0; movss 12(%rsp), %xmm1; " \
	  "movups 8(%rsp), %xmm2; movq %rbx, %xmm3; " \
	  "pxor %xmm4, %xmm4; movaps %xmm2, %xmm5; " \
	  "movd %r12d, %xmm6; movq %xmm3, %xmm7", \
	  "abcdefghijklmnop", "") \
	P(parts_of_vectors, \
	  "movups 8(%rsp), %xmm0; movsd 24(%rsp), %xmm1; " \
	  "movsd %xmm1, %xmm0; movhps 16(%rsp), %xmm1; " \
	  "movups 8(%rsp), %xmm2; punpcklqdq %xmm1, %xmm2; " \
	  "movlps 32(%rsp), %xmm2; movups 8(%rsp), %xmm3; " \
	  "movss %xmm1, %xmm3", \
	  "abcijkd", "") \
	P(vectors_computed, \
	  "movsd 8(%rsp), %xmm0; addsd %xmm0, %xmm0; " \
	  "cvtsi2sd %rbx, %xmm1; xorps %xmm3, %xmm2; " \
	  "pshufd $1, %xmm3, %xmm3", \
	  "", "abcdl") \
	P(vectors_stored, \
	  "movups (%rbx), %xmm0; movups %xmm0, 8(%rsp); " \
	  "movq (%rbx), %xmm1; movq %xmm1, %rdi; " \
	  "mov %rdi, %r12; movups %xmm1, (%rsp); " \
	  "movhps %xmm0, (%rsp)", \
	  "ibjD", "a") \
	P(frame_pointer_lost, "mov -8(%rbp), %rdi", "", "D") \
	P(not_for_arguments, \
	  "mov %rbx, %rax; mov %rbx, %r10; mov %rbx, %r11; " \
	  "movups 8(%rsp), %xmm8; movups 8(%rsp), %xmm15", \
	  "", "DSxy89abcdefghijklmnop")

/* Earlier code cannot be seen: it may have run elsewhere. */
#define P(name, code, found, lost) \
	"\n" #name ":\n\t" \
	"push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n\t" \
	"mov %rsp, 264+state(%rip)\n\t" \
	"sub $256, %rsp; lea 64(%rsp), %rbp; lea 16(%rsp), %rbx\n\t" \
	"movabs $0x8182838485868788, %rax; mov %rax, (%rsp)\n\t" \
	"rol $8, %rax; mov %rax, 8(%rsp); rol $8, %rax; mov %rax, 16(%rsp)\n\t" \
	"rol $8, %rax; mov %rax, 24(%rsp); rol $8, %rax; mov %rax, 32(%rsp)\n\t" \
	"rol $8, %rax; mov %rax, 56(%rsp)\n\t" \
	"mov $0xf2f3f4f5, %r12d; mov $8, %r13d; mov $9, %r14d\n\t" \
	"mov $-7, %r15; cld; jmp 0f; 0:\n\t" code "\n\t" \
	"call called\n" #name "_end:\n"
__asm__(".text\nnothing: ret\n" CALLS ".bss\nelsewhere: .quad 0\n.text\n");
#undef P

#define P(name, code, found, lost) \
	void name(void); \
	extern const char name##_end[];
CALLS
#undef P

static const struct {
	const char *name;
	void (*call)(void);
	const char *end, *found, *lost;
} calls[] = {
#define P(name, code, found, lost) { #name, name, name##_end, found, lost },
	CALLS
#undef P
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

static bool is_found(const struct decode_passed *passed, unsigned i)
{
	for (uint32_t n = 0; n < passed->count; n++)
		if (passed->values[n].entry == entries[i])
			return true;
	return false;
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
	for (unsigned i = 0; letters[i]; i++) {
		if (strchr(calls[current].found, letters[i]))
			cr_expect(is_found(&passed, i), "%s: %c is found",
				  calls[current].name, letters[i]);
		if (strchr(calls[current].lost, letters[i]))
			cr_expect(not(is_found(&passed, i)), "%s: %c is lost",
				  calls[current].name, letters[i]);
	}
}

Test(passed, no_code_makes_a_value_wrong)
{
	for (current = 0; current < sizeof(calls) / sizeof(calls[0]); current++)
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
