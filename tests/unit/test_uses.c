/*
 * Which registers code reads and writes: small pieces of code in assembly.
 */
#include "inspect/decode/uses.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

/* A piece of code that is never run, and what is behind its end. */
#define CODES \
	C(reads_rax, "mov %rax, %rbx; ret", "mov %r12, %r13") \
	C(reads_vector, "cvttsd2si %xmm0, %eax; ret", "") \
	C(reads_after_jump, "jmp 7f; 8: mov %rax, %rbx; ret; 7: jmp 8b", "") \
	C(reads_if, "test %rcx, %rcx; je 7f; ret; 7: mov %rax, %rbx; ret", "") \
	C(reads_far, "jmp far; ret", "mov %rdx, %rdi") \
	C(writes_rax, "xor %eax, %eax; mov %rax, %rbx; ret", "mov %r12, %r13") \
	C(reads_after_call, "call far; mov %rax, %rbx; ret", "") \
	C(nothing, "ret", "mov %rax, %rbx") \
	C(unknown, ".byte 6; mov %rax, %rbx", "") \
	C(unknown_later, "mov %rcx, %rbx; .byte 6; mov %rcx, %rax", "")

#define C(name, code, behind) \
	"\n" #name ": " code "\n" #name "_end: " behind "; ret\n"
__asm__(".text\n" CODES "far: mov %rax, %rbx; ret\n"
	/* Instructions that were moved from the beginning of a function. */
	"moved: mov %rdi, %rbx; jmp moved_back\n"
	"moved_away: mov %rdi, %rbx; jmp far\n"
	"moved_if: test %rdi, %rdi; je far; mov %rdi, %r13; jmp moved_back\n"
	"moved_function: int3; int3; int3; int3; int3\n"
	"moved_back: mov %rsi, %r12; jmp far; mov %rdx, %r14\n"
	"moved_end: mov %rdx, %r15; ret\n"
	/* A mark behind the frame: a call, or a jump and a byte in its place. */
	"framed: push %rbp; mov %rsp, %rbp; push %rbx; sub $8, %rsp;"
	"mov %rdi, %rbx; mov 16(%rbp), %eax; call far\n"
	"framed_end: mov %rsi, %rbx\n"
	"marked: push %rbp; mov %rsp, %rbp; jmp far; nop\n"
	"marked_end: ret\n"
	"loads: push %rbp; mov 16(%rbp), %r9d; call far\n"
	"loads_end: ret\n"
	"converts: push %rbp; cvttsd2si %xmm0, %eax; movaps %xmm0, %xmm7; call far\n"
	"converts_end: ret\n"
	"decides: push %rbp; test %rdi, %rdi; je 7f; 7: call far\n"
	"decides_end: ret\n"
	"calls_before: push %rbp; call far; call far\n"
	"calls_before_end: ret\n");
#undef C

#define C(name, code, behind) extern const char name[], name##_end[];
CODES
#undef C
extern const char moved[], moved_away[], moved_if[], moved_function[],
	moved_back[], moved_end[];
extern const char framed[], framed_end[], marked[], marked_end[], loads[],
	loads_end[], converts[], converts_end[], decides[], decides_end[],
	calls_before[], calls_before_end[];

#define VECTOR 16

Test(uses, code_behind_a_call_reads_a_result)
{
	cr_expect(uses_after_call((uintptr_t)reads_rax, 0));
	cr_expect(not(uses_after_call((uintptr_t)reads_rax, 3)));
	cr_expect(uses_after_call((uintptr_t)reads_vector, VECTOR));
	cr_expect(not(uses_after_call((uintptr_t)reads_vector, 0)));
	cr_expect(not(uses_after_call((uintptr_t)reads_vector, VECTOR + 1)));
	cr_expect(uses_after_call((uintptr_t)reads_after_jump, 0));
	cr_expect(uses_after_call((uintptr_t)reads_if, 0));
	cr_expect(uses_after_call((uintptr_t)reads_far, 0));
	cr_expect(not(uses_after_call((uintptr_t)writes_rax, 0)));
	cr_expect(not(uses_after_call((uintptr_t)reads_after_call, 0)));
	cr_expect(not(uses_after_call((uintptr_t)nothing, 0)));
	cr_expect(not(uses_after_call((uintptr_t)unknown, 0)));
}

static bool writes(const char *entry, const char *function, const char *end,
		   unsigned number)
{
	const struct decode_location location = {
		.entry = (uintptr_t)entry,
		.function = (uintptr_t)function,
		.end = (uintptr_t)end,
	};

	return uses_write(&location, number);
}

Test(uses, code_up_to_the_end_writes_a_register)
{
	cr_expect(writes(reads_rax, reads_rax, reads_rax_end, 3));
	cr_expect(not(writes(reads_rax, reads_rax, reads_rax_end, 0)));
	cr_expect(not(writes(reads_rax, reads_rax, reads_rax_end, 13)));
	cr_expect(writes(writes_rax, writes_rax, writes_rax_end, 0));
	cr_expect(writes(writes_rax, writes_rax, writes_rax_end, 3));
	cr_expect(writes(unknown_later, unknown_later, unknown_later_end, 3));
	cr_expect(not(
		writes(unknown_later, unknown_later, unknown_later_end, 0)));
}

Test(uses, code_that_was_moved_continues_in_its_function)
{
	cr_expect(writes(moved, moved_function, moved_end, 3));
	cr_expect(writes(moved, moved_function, moved_end, 12));
	/* In the order of addresses, without regard to jumps. */
	cr_expect(writes(moved, moved_function, moved_end, 14));
	cr_expect(not(writes(moved, moved_function, moved_end, 15)));
	cr_expect(not(writes(moved, moved_function, moved_end, 13)));
	cr_expect(writes(moved_if, moved_function, moved_end, 13));
	cr_expect(writes(moved_if, moved_function, moved_end, 12));
	cr_expect(writes(moved_away, moved_function, moved_end, 3));
	cr_expect(not(writes(moved_away, moved_function, moved_end, 12)));
	/* The instruction at the end is another function's. */
	cr_expect(not(writes(moved, moved_function, moved_back, 12)));
}

Test(uses, arguments_of_moved_code_are_those_up_to_a_call)
{
	struct decode_location location = {
		.entry = (uintptr_t)moved,
		.function = (uintptr_t)moved_function,
		.end = (uintptr_t)moved_end,
	};

	cr_expect(eq(u32, uses_at_entry(&location), 1u << 7 | 1u << 6));
	location.entry = (uintptr_t)moved_away;
	cr_expect(eq(u32, uses_at_entry(&location), 1u << 7));
	location.entry = (uintptr_t)moved_if;
	cr_expect(eq(u32, uses_at_entry(&location), 1u << 7 | 1u << 6));
	location.entry = (uintptr_t)moved;
	location.end = (uintptr_t)moved_back;
	cr_expect(eq(u32, uses_at_entry(&location), 1u << 7));
}

static bool keep(const char *function, const char *behind)
{
	const struct decode_location location = {
		.function = (uintptr_t)function,
		.hook = (uintptr_t)behind,
	};

	return uses_keep_arguments(&location);
}

Test(uses, code_before_a_late_mark_may_keep_the_arguments)
{
	cr_expect(keep(framed, framed_end));
	cr_expect(keep(marked, marked_end));
	cr_expect(not(keep(loads, loads_end)));
	cr_expect(not(keep(converts, converts_end)));
	cr_expect(not(keep(decides, decides_end)));
	cr_expect(not(keep(calls_before, calls_before_end)));
}
