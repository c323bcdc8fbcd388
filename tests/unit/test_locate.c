/*
 * The places of parameters after unusual, handwritten prologues.  The test runs
 * each prologue; every value that is found must be the argument that was
 * passed.
 *
 * probe() sets all argument registers and two words on the stack, and calls a
 * function.  The hook that this function calls saves all registers and returns
 * to probe().
 */
#include "inspect/decode/decode.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>

#define INTEGERS 6
#define VECTORS	 8
#define WORDS	 2
#define COUNT	 (1 + INTEGERS + VECTORS + WORDS)

/* The assembly below uses these offsets. */
struct state {
	uint64_t registers[16]; /* by register number */
	uint64_t vectors[16][2];
	uint64_t hook;		   /* where its call returns to */
	uint64_t sp;		   /* probe's */
	unsigned char stack[4096]; /* the stack above the hook's frame */
};

extern struct state state;
struct state state;

void probe(uintptr_t function);
void note(void);

__attribute__((used)) void note(void)
{
	size_t size = state.sp - state.registers[4];

	if (size > sizeof(state.stack))
		size = sizeof(state.stack);
	memcpy(state.stack, (void *)state.registers[4], size);
}

__asm__(".text\n"
	"probe:\n\t"
	"push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n\t"
	"mov %rdi, %rax\n\t"
	"mov %rsp, 392+state(%rip)\n\t"
	"pushq $107; pushq $106\n\t"
	"mov $100, %edi; mov $101, %esi; mov $102, %edx; mov $103, %ecx\n\t"
	"mov $104, %r8d; mov $105, %r9d\n\t"
	"mov $200, %ebx; movq %rbx, %xmm0\n\t"
	"mov $201, %ebx; movq %rbx, %xmm1\n\t"
	"mov $202, %ebx; movq %rbx, %xmm2\n\t"
	"mov $203, %ebx; movq %rbx, %xmm3\n\t"
	"mov $204, %ebx; movq %rbx, %xmm4\n\t"
	"mov $205, %ebx; movq %rbx, %xmm5\n\t"
	"mov $206, %ebx; movq %rbx, %xmm6\n\t"
	"mov $207, %ebx; movq %rbx, %xmm7\n\t"
	"call *%rax\n\t"
	"ud2\n"
	"hook:\n\t"
	"mov %rax, state(%rip); mov %rcx, 8+state(%rip)\n\t"
	"mov %rdx, 16+state(%rip); mov %rbx, 24+state(%rip)\n\t"
	"mov %rbp, 40+state(%rip)\n\t"
	"mov %rsi, 48+state(%rip); mov %rdi, 56+state(%rip)\n\t"
	"mov %r8, 64+state(%rip); mov %r9, 72+state(%rip)\n\t"
	"mov %r12, 96+state(%rip); mov %r13, 104+state(%rip)\n\t"
	"mov %r14, 112+state(%rip); mov %r15, 120+state(%rip)\n\t"
	"movups %xmm0, 128+state(%rip); movups %xmm1, 144+state(%rip)\n\t"
	"movups %xmm2, 160+state(%rip); movups %xmm3, 176+state(%rip)\n\t"
	"movups %xmm4, 192+state(%rip); movups %xmm5, 208+state(%rip)\n\t"
	"movups %xmm6, 224+state(%rip); movups %xmm7, 240+state(%rip)\n\t"
	"popq 384+state(%rip)\n\t"
	"mov %rsp, 32+state(%rip)\n\t"
	"and $-16, %rsp\n\t"
	"call note\n\t"
	"mov 392+state(%rip), %rsp\n\t"
	"pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n\t"
	"ret\n");

/*
 * Prologues in assembly.  @lost: arguments that must not be found, of "DC89"
 * (rdx, rcx, r8, r9), "0" to "7" (vectors) and "ab" (the stack).  @kept:
 * arguments that must be found.  Every value that is found must be right.
 */
#define PROLOGUES \
	P(nothing, "nop", "", "DC89") \
	P(exchanged, "xchg %rdx, %rcx", "DC", "89") \
	P(exchanged_memory, "mov %rdx, -8(%rsp); xchg %rcx, -8(%rsp)", "C", \
	  "D89") \
	P(moved_if, "test %rdi, %rdi; cmovne %rcx, %rdx", "D", "C89") \
	P(counted_zeros, "lzcnt %rdx, %rdx", "D", "C89") \
	P(trailing_zeros, "tzcnt %rcx, %rcx", "C", "D89") \
	P(stored_again, \
	  "sub $64, %rsp; mov %rcx, (%rsp); mov %rdx, 8(%rsp); " \
	  "lea (%rsp), %rdi; mov $2, %ecx; xor %eax, %eax; " \
	  "rep stosq; xor %edx, %edx", \
	  "DC", "") \
	P(stored_one, \
	  "sub $64, %rsp; mov %rdx, (%rsp); lea (%rsp), %rdi; " \
	  "xor %eax, %eax; stosq; xor %edx, %edx", \
	  "D", "") \
	P(pushed, "push %rdx; push %rcx; pop %rdx; pop %rcx", "", "DC89") \
	P(pushed_and_lost, "push %rdx; pop %rcx", "C", "D89") \
	P(pushed_short, "push %dx; push %cx; push %r8; xor %r8d, %r8d", "", \
	  "") \
	P(popped_short, "sub $16, %rsp; pop %cx; push %rdx; xor %edx, %edx", \
	  "C", "") \
	P(pushed_flags, \
	  "mov %rsp, %rbp; mov %rdx, -8(%rsp); pushf; " \
	  "xor %edx, %edx", \
	  "D", "C89") \
	P(lowest_byte, "mov $7, %dl", "D", "C89") \
	P(second_byte, "mov $7, %dh", "D", "C89") \
	P(lower_half, "mov %edx, %edx; mov $7, %cx", "C", "89") \
	P(byte_of_memory, "push %rdx; movb $9, 3(%rsp); xor %edx, %edx", "D", \
	  "C89") \
	P(multiplied, "mov $1000, %eax; mul %rcx", "D", "C89") \
	P(identified, "xor %eax, %eax; cpuid", "DC", "89") \
	P(timed, "rdtsc", "D", "") \
	P(called, "call 7f; jmp 8f; 7: xor %edx, %edx; ret; 8:", "D", "") \
	P(looped, "loop 7f; 7:", "C", "D89") \
	P(jumped_by_count, "jrcxz 7f; nop; 7:", "", "D89") \
	P(either_way, "test %rdi, %rdi; je 7f; mov $1, %edx; 7:", "D", "C89") \
	P(sign_of_rax, "cqo", "D", "C89") \
	P(compared, \
	  "xor %eax, %eax; lock cmpxchg %rcx, -16(%rsp); " \
	  "xadd %rdx, %rcx", \
	  "DC", "89") \
	P(left, "push %rbp; mov %rsp, %rbp; push %rdx; leave; xor %edx, %edx", \
	  "D", "") \
	P(wrote_elsewhere, \
	  "push %rdx; lea (%rsp), %rbx; add $0, %rbx; " \
	  "movq $5, (%rbx); xor %edx, %edx", \
	  "D", "C89") \
	P(wrote_by_index, \
	  "push %rdx; xor %eax, %eax; movq $5, (%rsp,%rax,8); " \
	  "xor %edx, %edx", \
	  "D", "C89") \
	P(wrote_an_argument, "movq $5, 8(%rsp)", "a", "DC89") \
	P(zeroed, "pxor %xmm0, %xmm0; xorps %xmm1, %xmm1", "01", "DC89234567") \
	P(merged, "movss %xmm1, %xmm0; movlhps %xmm3, %xmm2", "0", "1") \
	P(inserted, \
	  "movlps %xmm1, -16(%rsp); movhps -16(%rsp), %xmm2; " \
	  "pinsrw $0, %edx, %xmm3", \
	  "3", "1") \
	P(restored, \
	  "sub $520, %rsp; and $-16, %rsp; fxsave (%rsp); " \
	  "movq $0, 160(%rsp); fxrstor (%rsp)", \
	  "0", "") \
	P(saved_over, \
	  "sub $528, %rsp; and $-16, %rsp; mov %rdx, 160(%rsp); " \
	  "fxsave (%rsp); xor %edx, %edx", \
	  "D", "C89") \
	P(by_half_an_address, \
	  "push %rdx; xor %edx, %edx; push %rcx; " \
	  "pop %rcx; pop %rax; mov %rax, %rbx", \
	  "", "DC89") \
	P(swapped_bytes, "bswap %rdx; shl $1, %rcx; neg %r8; not %r9", "DC89", \
	  "") \
	P(bits_set, "bts $3, %rdx; sete %cl; adc $1, %r8; inc %r9", "DC89", \
	  "") \
	P(doubled, "shld $3, %rcx, %rdx", "D", "C89") \
	P(aligned_twice, \
	  "push %rdx; and $-32, %rsp; push %rcx; " \
	  "and $-64, %rsp; push %r8; xor %edx, %edx; " \
	  "xor %ecx, %ecx", \
	  "", "") \
	P(stack_elsewhere, \
	  "mov %rsp, %rbx; lea -256(%rsp), %rsp; push %rdx; " \
	  "xchg %rbx, %rsp; xor %edx, %edx; mov %rbx, %rsp", \
	  "", "C89")

/* Nothing aligns the stack for the hook's call, so the hook uses no vectors on
 * the stack. */
#define P(name, code, lost, kept) \
	"\n" #name ":\n\t" code "\n\t" \
	"mov $0, %edi; mov $0, %esi\n\t" \
	"call hook\n" #name "_called:\n\tud2\n" #name "_end:\n"
__asm__(".text\n" PROLOGUES);
#undef P

#define P(name, code, lost, kept) \
	extern const char name[], name##_called[], name##_end[];
PROLOGUES
#undef P

static const struct {
	const char *name, *at, *hook, *end, *lost, *kept;
} prologues[] = {
#define P(name, code, lost, kept) \
	{ #name, name, name##_called, name##_end, lost, kept },
	PROLOGUES
#undef P
};

static const char letters[] = "dSDC8901234567ab";

static void read_stack(uintptr_t address, uint64_t *value)
{
	size_t at = address - state.registers[4];

	cr_assert(at <= sizeof(state.stack) - 8);
	memcpy(value, state.stack + at, 8);
}

/* Returns false if the value is not available. */
static bool find(const struct decode_frame *frame,
		 const struct decode_place *place, uint64_t *value)
{
	uintptr_t base = state.registers[frame->number] +
			 (uintptr_t)frame->offset;

	switch (place->where) {
	case DECODE_IN_REGISTER: *value = state.registers[place->number]; break;
	case DECODE_IN_VECTOR:
		memcpy(value,
		       (char *)state.vectors[place->number] + place->offset, 8);
		break;
	case DECODE_ON_STACK:
		if (!frame->is_known)
			return false;
		read_stack(base + (uintptr_t)place->offset, value);
		break;
	case DECODE_ABOVE_SP:
		read_stack(state.registers[4] + (uintptr_t)place->offset,
			   value);
		break;
	default: return false;
	}
	return true;
}

static void prepare(struct prototype_value *values)
{
	memset(values, 0, COUNT * sizeof(*values));
	values[0].kind = PROTOTYPE_NOTHING;
	for (int i = 1; i < COUNT; i++) {
		bool is_vector = i > INTEGERS && i <= INTEGERS + VECTORS;

		values[i].kind = PROTOTYPE_REGISTERS;
		values[i].size = 8;
		values[i].classes[0] = is_vector ? PROTOTYPE_SSE :
						   PROTOTYPE_INTEGER;
	}
}

static uint64_t passed(int i)
{
	if (i <= INTEGERS)
		return 99 + (uint64_t)i;
	if (i <= INTEGERS + VECTORS)
		return 199 + (uint64_t)(i - INTEGERS);
	return 105 + (uint64_t)(i - INTEGERS - VECTORS);
}

static void check(size_t n, const struct decode_frame *frame,
		  const struct decode_places *places)
{
	for (int i = 1; i < COUNT; i++) {
		const struct decode_place *place = &places[i].eightbytes[0];
		char letter = letters[i - 1];
		uint64_t value = 0;
		bool is_found = find(frame, place, &value);

		if (is_found)
			cr_expect(eq(u64, value, passed(i)), "%s: %c",
				  prologues[n].name, letter);
		if (strchr(prologues[n].lost, letter))
			cr_expect(not(is_found), "%s: %c is lost",
				  prologues[n].name, letter);
		if (strchr(prologues[n].kept, letter))
			cr_expect(is_found, "%s: %c is there",
				  prologues[n].name, letter);
	}
}

Test(locate, no_prologue_makes_a_value_wrong)
{
	static struct prototype_value values[COUNT];
	static struct decode_places places[COUNT];
	static struct decode_frame frame;

	prepare(values);
	for (size_t n = 0; n < sizeof(prologues) / sizeof(prologues[0]); n++) {
		struct decode_location location = {
			.function = (uintptr_t)prologues[n].at,
			.end = (uintptr_t)prologues[n].end,
			.hook = (uintptr_t)prologues[n].hook,
			.values = values,
			.count = COUNT,
		};

		decode_arguments(&location, &frame, places);
		memset(&state, 0, sizeof(state));
		probe(location.function);
		cr_assert(eq(u64, state.hook, location.hook));
		check(n, &frame, places);
	}
}
