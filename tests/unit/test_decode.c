/*
 * What code does after a hook, and before a call: small pieces of code in assembly, which
 * never run.
 */
#include "inspect/decode/decode.c"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

/* --- the other parts of the library, which are tested by themselves --- */

void decode_arguments(const struct decode_location *location,
		      struct decode_frame *frame, struct decode_places *places)
{
	(void)location;
	(void)frame;
	(void)places;
}

bool passed_find(struct decode_passed *passed)
{
	(void)passed;
	return false;
}

bool decode_result(const struct decode_leaving *leaving,
		   struct decode_recipe *recipe, uint32_t room)
{
	(void)leaving;
	(void)recipe;
	(void)room;
	return false;
}

enum shim_unavailable decode_run(const struct decode_recipe *recipe,
				 struct decode_machine *machine, uintptr_t site,
				 uintptr_t *start)
{
	(void)recipe;
	(void)machine;
	(void)site;
	(void)start;
	return SHIM_UNAVAILABLE_CODE;
}

size_t decode_copy(struct decode_copy *copy)
{
	(void)copy;
	return 0;
}

void decode_entries(const struct decode_entries *question)
{
	(void)question;
}

bool loads_are_called(const struct decode_load *load)
{
	(void)load;
	return false;
}

/* --- the end of a function --- */

#define EXIT   "*__cyg_profile_func_exit@GOTPCREL(%rip)"
#define RESUME "*_Unwind_Resume@GOTPCREL(%rip)"

/* The target of a tail call is unknown. */
#define NOBODY ((const char *)1)

/* The return address is @at words above the stack pointer at the hook; 9: nowhere. */
#define ENDS \
	E(returns, "pop %rbx; ret", 9, RETURN, NULL) \
	E(after_pop, "pop %rbx; jmp away", 1, TAIL_CALL, away) \
	E(after_push, "push %rbx; jmp away", -1, TAIL_CALL, away) \
	E(after_add, "add $24, %rsp; jmp away", 3, TAIL_CALL, away) \
	E(after_sub, "sub $16, %rsp; jmp away", -2, TAIL_CALL, away) \
	E(after_both, "sub $8, %rsp; add $24, %rsp; jmp away", 2, TAIL_CALL, \
	  away) \
	E(after_lea, "lea 32(%rsp), %rsp; jmp away", 4, TAIL_CALL, away) \
	E(after_lea_down, "lea -8(%rsp), %rsp; jmp away", -1, TAIL_CALL, away) \
	E(sp_is_read, "cmp %rax, %rsp; jmp 7f; 7: nop; ret", 0, TAIL_CALL, \
	  NULL) \
	E(other_add, "add $8, %rax; jmp 7f; 7: nop; ret", 0, TAIL_CALL, NULL) \
	E(inside, "add $8, %rsp; jmp 7f; call away; 7: ret", 0, RETURN, NULL) \
	/* A stack pointer that is not known. */ \
	E(after_leave, "leave; jmp away", 9, TAIL_CALL, away) \
	E(after_mov, "mov %rbp, %rsp; jmp away", 9, TAIL_CALL, away) \
	E(after_add_of, "add %rax, %rsp; jmp away", 9, TAIL_CALL, away) \
	E(after_sub_of, "sub %rax, %rsp; jmp away", 9, TAIL_CALL, away) \
	E(after_and, "and $-16, %rsp; jmp away", 9, TAIL_CALL, away) \
	E(after_lea_of, "lea 8(%rbp), %rsp; jmp away", 9, TAIL_CALL, away) \
	E(after_index, "lea 8(%rsp, %rax), %rsp; jmp away", 9, TAIL_CALL, \
	  away) \
	E(known_again, "add $8, %rsp; jmp away", 9, RETURN, NULL) \
	E(leave_inside, "leave; jmp 7f; 7: nop; ret", 0, RETURN, NULL) \
	E(leave_to_start, "leave; jmp leave_to_start", 0, RETURN, NULL) \
	E(leave_page, "leave; jmp leave_page_code + 4096; .skip 4090; ret", 9, \
	  RETURN, NULL) \
	E(leave_beyond, \
	  "leave; jmp leave_beyond_code + 4097; .skip 4091; ret", 9, \
	  TAIL_CALL, leave_beyond_code + 4097) \
	E(leave_slot, "leave; jmp *slot(%rip)", 0, UNKNOWN, NULL) \
	/* A `ret` that several paths share, and what is another function. */ \
	E(shared, "jmp 7f; nop; 7: ret", 0, RETURN, NULL) \
	E(shared_start, "jmp shared_start", 0, TAIL_CALL, shared_start) \
	E(shared_far, "jmp shared_far_code + 4095; .skip 4090; ret", 0, \
	  RETURN, NULL) \
	E(shared_too_far, "jmp shared_too_far_code + 4096; .skip 4091; ret", \
	  0, TAIL_CALL, shared_too_far_code + 4096) \
	E(back, "jmp away", 0, TAIL_CALL, away) \
	/* Jumps through slots. */ \
	E(by_slot, "jmp *slot(%rip)", 0, TAIL_CALL, NULL) \
	E(by_stub, "jmp stub", 0, TAIL_CALL, NULL) \
	E(by_register, "jmp *%rax", 0, TAIL_CALL, NULL) \
	E(by_table, "jmp *%rax; ret", 9, UNKNOWN, NULL) \
	E(by_table_later, "je 7f; ret; 7: jmp *%rax", 9, DEPENDS, NULL) \
	E(to_hook, "jmp " EXIT, 0, RETURN, NULL) \
	E(to_hook_stub, "jmp exit_stub", 0, RETURN, NULL) \
	/* Calls. */ \
	E(goes_on, "call away; ret", 9, UNKNOWN, NULL) \
	E(goes_on_if, "je 7f; call away; 7: ret", 9, RETURN, NULL) \
	E(resumes, "call " RESUME, 9, UNWIND, NULL) \
	E(resumes_stub, "call resume_stub", 9, UNWIND, NULL) \
	E(calls_hook, "call " EXIT "; ret", 9, UNKNOWN, NULL) \
	/* Several ends. */ \
	E(returns_twice, "je 7f; ret; 7: ret", 9, RETURN, NULL) \
	E(resumes_twice, "je 7f; call " RESUME "; 7: call " RESUME, 9, UNWIND, \
	  NULL) \
	E(returns_or_resumes, "je 7f; ret; 7: call " RESUME, 9, DEPENDS, NULL) \
	E(resumes_or_returns, "je 7f; call " RESUME "; 7: ret", 9, DEPENDS, \
	  NULL) \
	E(tail_or_resumes, "je 7f; jmp away; 7: call " RESUME, 0, DEPENDS, \
	  NULL) \
	E(tail_or_returns, "je 7f; jmp away; 7: ret", 0, RETURN, NULL) \
	E(returns_or_tail, "je 7f; ret; 7: jmp away", 0, RETURN, NULL) \
	E(own_stack, "je 7f; pop %rbx; jmp away; 7: pop %rbx; jmp away", 1, \
	  TAIL_CALL, away) \
	E(calls_either, "je 7f; jmp away; 7: jmp other", 0, TAIL_CALL, NOBODY) \
	E(calls_any, "je 7f; je 8f; jmp away; 8: jmp other; 7: jmp away", 0, \
	  TAIL_CALL, NOBODY) \
	E(calls_or_ends, "je 7f; je 8f; jmp away; 8: call " RESUME "; 7: ret", \
	  0, DEPENDS, NULL) \
	E(calls_or_is_unknown, \
	  "je 7f; jl 7f; js 7f; jb 7f; jo 8f; 7: jmp away; 8: ret", 0, \
	  DEPENDS, NULL) \
	E(four_ways, "je 7f; jl 7f; js 7f; jb 7f; ret; 7: ret", 9, RETURN, \
	  NULL) \
	E(five_ways, "je 7f; jl 7f; js 7f; jb 7f; jo 7f; ret; 7: ret", 9, \
	  DEPENDS, NULL) \
	/* What cannot be followed. */ \
	E(damaged, ".byte 6", 9, UNKNOWN, NULL) \
	E(damaged_way, "je 7f; .byte 6; 7: ret", 9, RETURN, NULL) \
	E(longest, ".rept 95; nop; .endr; ret", 9, RETURN, NULL) \
	E(too_long, ".rept 96; nop; .endr; ret", 9, UNKNOWN, NULL) \
	E(too_long_later, "je 7f; ret; 7: .rept 96; nop; .endr; ret", 9, \
	  DEPENDS, NULL) \
	E(endless, "7: jmp 7b", 9, UNKNOWN, NULL)

/* Each function begins with a `ret`, and has no instruction behind its end. */
#define E(name, code, at, end, target) \
#name ": ret\n" #name "_code: " code "\n.byte 6\n"
__asm__(".text\n"
	"away: ret\nother: ret\n"
	"stub: endbr64; jmp *slot(%rip)\n"
	"plain_stub: jmp *slot(%rip)\n"
	"unbound_stub: jmp *unbound_slot(%rip)\n"
	"exit_stub: jmp " EXIT "\n"
	"resume_stub: jmp " RESUME "\n"
	/* In a PLT, before a slot is bound. */
	"pushes: push $0x12345; jmp away\n"
	"endbr_pushes: endbr64; push $0x12345; jmp away\n"
	"endbr_returns: endbr64; ret\n" ENDS);
#undef E

extern const char away[], other[], stub[], plain_stub[], unbound_stub[],
	exit_stub[], pushes[], endbr_pushes[], endbr_returns[];
#define E(name, code, at, end, target) extern const char name[], name##_code[];
ENDS
#undef E

	/* The assembly above names them. */
	extern const void *slot,
	*unbound_slot;
const void *slot = away, *unbound_slot = pushes;

static const struct {
	const char *name, *function, *code;
	int at;
	enum decode_end end;
	const char *target;
} ends[] = {
#define E(name, code, at, end, target) \
	{ #name, name, name##_code, at, DECODE_##end, target },
	ENDS
#undef E
};

static struct decode_answer follow(const char *function, const char *code,
				   int at)
{
	uintptr_t stack[32] = { 0 };
	struct decode_question question = {
		.code = (uintptr_t)code,
		.sp = (uintptr_t)&stack[16],
		.site = 0x1234,
		.function = (uintptr_t)function,
	};
	struct decode_answer answer;

	stack[16 + at] = question.site;
	shim_decode.follow(&question, &answer);
	return answer;
}

Test(decode, the_code_behind_a_hook_tells_how_a_function_ends)
{
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		struct decode_answer answer = follow(ends[i].function,
						     ends[i].code, ends[i].at);

		cr_expect(eq(uint, answer.end, ends[i].end), "%s",
			  ends[i].name);
		if (ends[i].target)
			cr_expect(eq(u64, answer.target,
				     ends[i].target == NOBODY ?
					     0 :
					     (uintptr_t)ends[i].target),
				  "%s", ends[i].name);
		if (answer.end != DECODE_TAIL_CALL)
			cr_expect(eq(u64, answer.target, 0), "%s",
				  ends[i].name);
	}
}

Test(decode, a_tail_call_through_a_slot_has_the_slot_instead_of_a_target)
{
	struct decode_answer by[] = {
		follow(by_slot, by_slot_code, 0),
		follow(by_stub, by_stub_code, 0),
		follow(by_register, by_register_code, 0),
		follow(back, back_code, 0),
	};

	for (size_t i = 0; i < 4; i++)
		cr_expect(eq(ptr, (void *)by[i].slot,
			     i < 2 ? (void *)&slot : NULL),
			  "%zu", i);
	for (size_t i = 0; i < 3; i++)
		cr_expect(eq(u64, by[i].target, 0), "%zu", i);
}

Test(decode, a_slot_that_is_not_bound_has_no_target)
{
	static const struct {
		const char *code;
		bool is_bound;
	} slots[] = {
		{ away, true },
		{ endbr_returns, true },
		{ pushes, false },
		{ endbr_pushes, false },
	};

	for (size_t i = 0; i < 4; i++) {
		uintptr_t value = (uintptr_t)slots[i].code;

		cr_expect(eq(u64, shim_decode.bound(&value),
			     slots[i].is_bound ? value : 0),
			  "%zu", i);
	}
}

/* --- the call of a function --- */

#define CALLS \
	C(direct, "call away", true, 0) \
	C(direct_other, "call other", false, 0) \
	C(of_stub, "call stub", true, 0) \
	C(of_plain_stub, "call plain_stub", true, 0) \
	C(of_unbound_stub, "call unbound_stub", false, 0) \
	C(of_slot, "call *slot(%rip)", false, 0) \
	C(with_prefix, ".byte 0x40; call away", true, 0) \
	C(jump, "jmp away; nop", false, 0) \
	C(of_rax, "call *%rax", false, 0) \
	C(of_rcx, "call *%rcx", false, 0) \
	C(of_rdx, "call *%rdx", false, 0) \
	C(of_rbx, "call *%rbx", true, 3) \
	C(of_rsp, "call *%rsp", false, 0) \
	C(of_rbp, "call *%rbp", true, 5) \
	C(of_rsi, "call *%rsi", false, 0) \
	C(of_rdi, "call *%rdi", false, 0) \
	C(of_r8, "call *%r8", false, 0) \
	C(of_r9, "call *%r9", false, 0) \
	C(of_r10, "call *%r10", false, 0) \
	C(of_r12, "call *%r12", true, 12) \
	C(of_r13, "call *%r13", true, 13) \
	C(of_r14, "call *%r14", true, 14) \
	C(of_r15, "call *%r15", true, 15) \
	C(of_memory, "call *8(%rbx)", false, 0) \
	C(of_memory_at, "call *(%rbx)", false, 0) \
	C(of_far_memory, "call *0x1000(%rbx)", false, 0)

#define C(name, code, is_call, number) \
	"nop; nop; nop; nop; " #name ": " code "\n" #name "_site: nop\n"
__asm__(".text\n" CALLS);
#undef C
#define C(name, code, is_call, number) extern const char name##_site[];
CALLS
#undef C

static const struct {
	const char *name, *site;
	bool is_call;
	uint8_t number;
} calls[] = {
#define C(name, code, is_call, number) { #name, name##_site, is_call, number },
	CALLS
#undef C
};

Test(decode, a_call_is_of_its_target_or_of_a_register_that_callees_keep)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		struct decode_call call = {
			.function = (uintptr_t)away,
			.end = (uintptr_t)away + 1,
			.site = (uintptr_t)calls[i].site,
			.number = 77,
		};

		cr_expect(eq(int, shim_decode.calls(&call), calls[i].is_call),
			  "%s", calls[i].name);
		cr_expect(eq(u8, call.number, calls[i].number), "%s",
			  calls[i].name);
	}
}

/* Functions, and whether a jump may leave them. */
#define FUNCTIONS \
	F(stays, "nop; ret", false) \
	F(jumps_inside, "7: je 7f; nop; 7: jmp 7b; ret", false) \
	F(jumps_to_start, "nop; jmp jumps_to_start", false) \
	F(jumps_before, "nop; jmp jumps_before - 1", true) \
	F(jumps_to_end, "jmp jumps_to_end_end", true) \
	F(jumps_out, "jmp away; nop", true) \
	F(jumps_out_if, "je away; ret", true) \
	F(calls_out, "call away; ret", false) \
	F(has_table, "add %rcx, %rax; jmp *%rax", false) \
	F(has_other_table, "add %rcx, %rdx; jmp *%rax", true) \
	F(has_no_sum, "mov %rcx, %rax; jmp *%rax", true) \
	F(has_table_before, "add %rcx, %rax; nop; jmp *%rax", true) \
	F(has_slots, "jmp *0x100(, %rax, 8)", false) \
	F(has_small_slots, "jmp *0x100(, %rax, 4)", true) \
	F(has_pointer, "jmp *8(%rax)", true) \
	F(jumps_to_hook, "jmp " EXIT, false) \
	F(jumps_to_hook_stub, "jmp exit_stub", false) \
	F(jumps_through_slot, "jmp *slot(%rip)", true) \
	F(jumps_to_stub, "jmp stub", true) \
	F(is_damaged, "nop; .byte 6; ret", true)

#define F(name, code, may_leave) \
	"nop\n" #name ": " code "\n" #name "_end: nop; ret\n"
__asm__(".text\n" FUNCTIONS
	/* The last instruction begins in the function and ends behind it. */
	"overlaps: nop; mov $1, %eax\n"
	".set overlaps_middle, . - 1\n"
	"overlaps_end: ret\n"
	/* The first instructions were moved. */
	"first: mov %rdi, %rbx; jmp first_back\n"
	"first_away: mov %rdi, %rbx; jmp away\n"
	"first_function: jmp away\n"
	"first_back: nop; ret\n"
	"first_end: ret\n");
#undef F
#define F(name, code, may_leave) extern const char name[], name##_end[];
FUNCTIONS
F(overlaps, , )
F(first, , )
extern const char overlaps_middle[], first_away[], first_function[];
#undef F

static const struct {
	const char *name, *function, *end;
	bool may_leave;
} functions[] = {
#define F(name, code, may_leave) { #name, name, name##_end, may_leave },
	FUNCTIONS
#undef F
};

/* Whether a call through a register can be one of the function that it leads to. */
static bool stays_in(const char *function, const char *end, const char *entry)
{
	struct decode_call call = {
		.function = (uintptr_t)function,
		.end = (uintptr_t)end,
		.site = (uintptr_t)of_rbx_site,
		.entry = (uintptr_t)entry,
		.may_tail_call = true,
	};

	return shim_decode.calls(&call);
}

Test(decode, a_function_that_may_jump_away_may_not_be_the_one_that_returns)
{
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		cr_expect(eq(int,
			     stays_in(functions[i].function, functions[i].end,
				      NULL),
			     !functions[i].may_leave),
			  "%s", functions[i].name);
	cr_expect(stays_in(overlaps, overlaps_end, NULL));
	cr_expect(not(stays_in(overlaps, overlaps_middle, NULL)));
}

Test(decode, a_function_without_tail_calls_is_not_looked_at)
{
	struct decode_call call = {
		.function = (uintptr_t)jumps_out,
		.end = (uintptr_t)jumps_out_end,
		.site = (uintptr_t)of_rbx_site,
	};

	cr_expect(shim_decode.calls(&call));
}

Test(decode, instructions_that_were_moved_belong_to_the_function)
{
	cr_expect(stays_in(first_function, first_end, first));
	cr_expect(not(stays_in(first_function, first_end, NULL)));
	cr_expect(not(stays_in(first_function, first_end, first_away)));
}

/* --- the code before a call --- */

__asm__(".text\n"
	"way: mov 8(%r13), %r12\n\t" /* 7 before the call */
	"mov %rdi, %rax\n\t"
	/* These write the flags, and a register of another kind. */
	"test %r10, %r10\n\t"
	"movq %r11, %mm0\n\t"
	"lea 8(%rsi, %rdx), %rcx\n\t"
	"mov %rbx, (%r8)\n\t"	  /* writes memory only */
	"cvtsi2sd %r9, %xmm3\n\t" /* 1 before */
	"call away\n"
	"way_site: nop\n"
	"way_damaged: nop; .byte 6; call away\n"
	"way_damaged_site: nop\n");
extern const char way[], way_site[], way_damaged[], way_damaged_site[];

Test(decode, each_register_has_the_distance_and_the_sources_of_its_last_value)
{
	static const uint32_t written[32] = {
		[0] = 6, [1] = 3, [12] = 7, [16 + 3] = 1
	};
	static const uint32_t sources[32] = { [0] = 1 << 7,
					      [1] = 1 << 6 | 1 << 2,
					      [12] = 1 << 13,
					      [16 + 3] = 1 << 9 };
	struct decode_way found = { .caller = (uintptr_t)way,
				    .site = (uintptr_t)way_site };

	memset(found.written, 0xff, sizeof(found.written));
	memset(found.sources, 0xff, sizeof(found.sources));
	cr_assert(shim_decode.way(&found));
	cr_expect(eq(u64, found.site, (uintptr_t)way_site));
	for (size_t i = 0; i < 32; i++) {
		/* As if those that are not written were so before the code. */
		cr_expect(
			eq(u32, found.written[i], written[i] ? written[i] : 8),
			"%zu", i);
		if (i != 16 + 3)
			cr_expect(eq(u32, found.sources[i], sources[i]), "%zu",
				  i);
		else
			cr_expect(
				eq(u32, found.sources[i] & 0xffff, sources[i]));
	}
}

Test(decode, code_that_does_not_lead_to_the_call_says_nothing)
{
	struct decode_way found = { .caller = (uintptr_t)way_damaged,
				    .site = (uintptr_t)way_damaged_site };

	cr_expect(not(shim_decode.way(&found)));
	found = (struct decode_way){ .caller = (uintptr_t)way,
				     .site = (uintptr_t)way_site - 1 };
	cr_expect(not(shim_decode.way(&found)));
	found = (struct decode_way){ .caller = (uintptr_t)way_site,
				     .site = (uintptr_t)way_site };
	cr_expect(not(shim_decode.way(&found)));
	/* A call alone. */
	found = (struct decode_way){ .caller = (uintptr_t)way_site - 5,
				     .site = (uintptr_t)way_site };
	cr_expect(shim_decode.way(&found));
	cr_expect(eq(u32, found.written[0], 1));
}
