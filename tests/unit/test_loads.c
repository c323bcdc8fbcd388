/*
 * What code does with an address that it loads from a GOT slot: small pieces of code in
 * assembly.
 */
#include "inspect/decode/loads.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

/* A function that is never run; its first instruction loads the register. */
#define LOAD(register) "mov slot(%rip), %" #register "; "
#define CODES \
	C(calls, LOAD(r14) "call *%r14; call *%r14; pop %r14; ret") \
	C(calls_others, LOAD(rbx) "call far; call *%rbx; pop %rbx; ret") \
	C(calls_once, LOAD(rax) "call *%rax; mov %rax, %rbx; ret") \
	C(loops, LOAD(r12) "7: call *%r12; dec %ebp; jne 7b; pop %r12; ret") \
	C(jumps, LOAD(rax) "jmp *%rax") \
	C(scratch, LOAD(r11) "test %edi, %edi; je 7f; call *%r11; 7: ret") \
	C(writes_half, \
	  LOAD(rbp) "call *%rbp; xor %ebp, %ebp; mov %rbp, %rax; ret") \
	C(ends_with_call, LOAD(r14) "call *%r14; call far") \
	C(other_value, \
	  LOAD(r14) "call *%r14; mov %rsi, %r14; cmp %r14, %rax; ret") \
	C(switches, LOAD(r14) "call *%r14; jmp *%rcx; pop %r14; ret") \
	C(compares, LOAD(r14) "call *%r14; cmp %r14, %rax; ret") \
	C(compares_later, LOAD(r14) "test %edi, %edi; jne 7f; pop %r14; ret;" \
				    "7: cmp %r14, %rax; pop %r14; ret") \
	C(copies, LOAD(r14) "call *%r14; mov %r14, %rdi; ret") \
	C(stores, LOAD(rax) "mov %rax, 8(%rsp); call *8(%rsp); ret") \
	C(reads_code, LOAD(rbx) "mov (%rbx), %eax; call *%rbx; ret") \
	C(passes, LOAD(rdi) "call far; ret") \
	C(passes_by_jump, LOAD(rdi) "jmp far") \
	C(passes_and_calls, LOAD(rax) "call *%rdi; ret") \
	C(returns, LOAD(rax) "ret") \
	C(writes_part, LOAD(rbx) "mov $0, %bl; call *%rbx; ret") \
	C(writes_sometimes, LOAD(rbx) "cmove %rax, %rbx; call *%rbx; ret") \
	C(calls_through, LOAD(rbx) "call *8(%rbx); ret") \
	C(switches_and_compares, \
	  LOAD(r14) "call *%r14; jmp *%rcx; cmp %r14, %rax; ret") \
	C(half, "mov slot(%rip), %r14d; call *%r14; ret") \
	C(unknown, LOAD(r14) "call *%r14; .byte 6; ret")

#define C(name, code) "\n" #name ": " code "\n" #name "_end:\n"
__asm__(".text\nslot: .quad 0\n" CODES "far: ret\n"
	/* Only an exception leads to the second part. */
	"handles: " LOAD(r14) "call *%r14; pop %r14; ret; pop %r14; ret\n"
			      "handles_end:\n"
			      "handles_and_tells: " LOAD(
				      r14) "call *%r14; pop %r14; ret;"
					   "mov %r14, %rdi; jmp far\n"
					   "handles_and_tells_end:\n");
#undef C

#define C(name, code) extern const char name[], name##_end[];
CODES
C(handles, )
C(handles_and_tells, )
#undef C

static bool are_called(const char *start, const char *end, bool has_handlers)
{
	unsigned char seen[64];
	const struct decode_load load = {
		.at = (uintptr_t)start,
		.start = (uintptr_t)start,
		.end = (uintptr_t)end,
		.copy = (const unsigned char *)start,
		.seen = seen,
		.has_handlers = has_handlers,
	};

	memset(seen, 0xff, sizeof(seen));
	return loads_are_called(&load);
}

#define EXPECT_CALLED(name) \
	cr_expect(are_called(name, name##_end, false), "%s", #name)
#define EXPECT_TOLD(name) \
	cr_expect(not(are_called(name, name##_end, false)), "%s", #name)

Test(loads, an_address_that_is_only_called_is_found)
{
	EXPECT_CALLED(calls);
	EXPECT_CALLED(calls_others);
	EXPECT_CALLED(calls_once);
	EXPECT_CALLED(loops);
	EXPECT_CALLED(jumps);
	EXPECT_CALLED(scratch);
	EXPECT_CALLED(writes_half);
	EXPECT_CALLED(ends_with_call);
	EXPECT_CALLED(other_value);
	EXPECT_CALLED(switches);
}

Test(loads, any_other_use_may_tell_the_address)
{
	EXPECT_TOLD(compares);
	EXPECT_TOLD(compares_later);
	EXPECT_TOLD(copies);
	EXPECT_TOLD(stores);
	EXPECT_TOLD(reads_code);
	EXPECT_TOLD(passes);
	EXPECT_TOLD(passes_by_jump);
	EXPECT_TOLD(passes_and_calls);
	EXPECT_TOLD(returns);
	EXPECT_TOLD(writes_part);
	EXPECT_TOLD(writes_sometimes);
	EXPECT_TOLD(calls_through);
	EXPECT_TOLD(switches_and_compares);
	EXPECT_TOLD(half);
	EXPECT_TOLD(unknown);
}

Test(loads, code_that_exceptions_reach_counts)
{
	cr_expect(are_called(handles, handles_end, true));
	cr_expect(not(
		are_called(handles_and_tells, handles_and_tells_end, true)));
	cr_expect(are_called(handles_and_tells, handles_and_tells_end, false));
}
