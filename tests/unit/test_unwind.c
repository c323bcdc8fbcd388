/*
 * Steps by rules that the test gives: by the rules themselves, and by the rows that are
 * kept of them.
 */
#define _GNU_SOURCE
#include "unwind_stubs.h"

#include <sys/mman.h>

TestSuite(unwind, .init = make_rules);

/* Steps by the tables, and by the row that was kept: both have the same result. */
static bool step_twice(struct unwind *walk)
{
	struct unwind again = *walk;
	bool done = unwind_step(walk);

	cr_assert(eq(int, unwind_step(&again), done));
	if (done) {
		cr_assert(eq(uint, again.known, walk->known));
		for (unsigned i = 0; i < WALK_REGISTERS; i++)
			if (walk->known >> i & 1)
				cr_assert(eq(ulong, again.registers[i],
					     walk->registers[i]));
		cr_assert(eq(ulong, again.function, walk->function));
		cr_assert(eq(int, again.is_exact, walk->is_exact));
	}
	cr_assert(eq(int, again.is_last, walk->is_last));
	return done;
}

/* The value of @number in the caller; -1: unknown. */
static uintptr_t in_caller(unsigned number, struct rule rule)
{
	struct unwind walk = frame();

	rules.row.rules[number] = rule;
	row_cache_clear();
	cr_assert(step_twice(&walk));
	cr_assert(eq(ulong, walk.registers[RSP], (uintptr_t)(stack + 16)));
	cr_assert(eq(ulong, walk.registers[WALK_IP], 0x500000 + 15));
	return walk.known >> number & 1 ? walk.registers[number] : -1ul;
}

/* --- steps --- */

Test(unwind, registers_come_from_where_the_rules_say)
{
	for (unsigned i = 0; i < 6; i++) {
		unsigned number = row_registers[i];

		cr_assert(eq(ulong, in_caller(number, (struct rule){ 0 }),
			     0x600000 + number));
		cr_assert(eq(ulong,
			     in_caller(number, (struct rule){ HOW_AT, 0, -24 }),
			     0x500000 + 13));
		cr_assert(eq(ulong,
			     in_caller(number, (struct rule){ HOW_AT, 0, 32 }),
			     0x500000 + 20));
		cr_assert(eq(ulong,
			     in_caller(number, (struct rule){ HOW_IS, 0, -8 }),
			     (uintptr_t)(stack + 15)));
		cr_assert(eq(ulong,
			     in_caller(number,
				       (struct rule){ HOW_REGISTER, 0, RSP }),
			     (uintptr_t)(stack + 8)));
		/* What is in no memory, or in no known register. */
		cr_assert(eq(
			ulong,
			in_caller(number, (struct rule){ HOW_AT, 0, -8 * 200 }),
			-1ul));
		cr_assert(eq(ulong,
			     in_caller(number,
				       (struct rule){ HOW_REGISTER, 0, RAX }),
			     -1ul));
		cr_assert(eq(
			ulong,
			in_caller(number, (struct rule){ HOW_REGISTER, 0, 17 }),
			-1ul));
		cr_assert(eq(
			ulong,
			in_caller(number, (struct rule){ HOW_UNDEFINED, 0, 0 }),
			-1ul));
		rules.row.rules[number] = (struct rule){ 0 };
	}
}

Test(unwind, other_registers_are_unknown_after_a_call)
{
	struct unwind walk = frame();

	walk.known = (1u << WALK_REGISTERS) - 1;
	cr_assert(step_twice(&walk));
	cr_assert(eq(uint, walk.known, KEPT | 1u << RSP | 1u << WALK_IP));
	walk = frame();
	walk.known &= ~(1u << R12);
	cr_assert(step_twice(&walk));
	cr_assert(eq(uint, walk.known,
		     (KEPT & ~(1u << R12)) | 1u << RSP | 1u << WALK_IP));
	/* With a rule they are known. */
	rules.row.rules[RDX] = (struct rule){ HOW_AT, 0, -16 };
	row_cache_clear();
	walk = frame();
	cr_assert(step_twice(&walk));
	cr_assert(walk.known >> RDX & 1);
	cr_assert(eq(ulong, walk.registers[RDX], 0x500000 + 14));
}

Test(unwind, without_frame_or_return_address_there_is_no_step)
{
	static const struct rule frames[] = { { HOW_IS, RAX, 0 },
					      { HOW_IS, WALK_REGISTERS, 0 },
					      { HOW_AT, RSP, 64 },
					      { HOW_UNDEFINED, RSP, 64 },
					      { HOW_IS, RSP, 4096 } };
	struct unwind walk;

	for (unsigned i = 0; i < sizeof(frames) / sizeof(*frames); i++) {
		rules.row.cfa = frames[i];
		row_cache_clear();
		walk = frame();
		cr_assert(not(step_twice(&walk)));
		cr_assert(not(walk.is_last));
		cr_assert(eq(ulong, walk.registers[WALK_IP], IP));
		cr_assert(
			eq(ulong, walk.registers[RSP], (uintptr_t)(stack + 8)));
	}
	rules.row.cfa = (struct rule){ HOW_IS, RSP, 64 };
	rules.row.rules[WALK_IP] = (struct rule){ HOW_SAME, 0, 0 };
	row_cache_clear();
	walk = frame();
	cr_assert(not(step_twice(&walk)));
}

Test(unwind, a_stack_ends_where_the_tables_or_a_zero_say)
{
	struct unwind walk = frame();

	rules.row.rules[WALK_IP].how = HOW_UNDEFINED;
	cr_assert(not(step_twice(&walk)));
	cr_assert(walk.is_last);
	make_rules();
	walk = frame();
	walk.registers[WALK_IP] = 0;
	readings = 0;
	cr_assert(not(unwind_step(&walk)));
	cr_assert(walk.is_last);
	cr_assert(eq(uint, readings, 0));
	/* An interrupted thread that has jumped to 0 may have a caller. */
	walk = frame();
	walk.registers[WALK_IP] = 0;
	walk.is_exact = true;
	cr_assert(not(unwind_step(&walk)));
	cr_assert(not(walk.is_last));
}

Test(unwind, a_step_that_changes_nothing_is_none)
{
	struct unwind walk = frame();

	rules.row.cfa.value = 0;
	stack[7] = IP;
	cr_assert(not(step_twice(&walk)));
	/* Recursion without a frame, and a frame without a stack. */
	rules.row.cfa.value = 64;
	row_cache_clear();
	stack[15] = IP;
	walk = frame();
	cr_assert(step_twice(&walk));
	rules.row.cfa.value = 0;
	row_cache_clear();
	stack[7] = IP + 1;
	walk = frame();
	cr_assert(step_twice(&walk));
}

Test(unwind, a_return_address_is_looked_up_in_its_call)
{
	struct unwind walk = frame();

	cr_assert(unwind_step(&walk));
	cr_assert(eq(ulong, asked, IP - 1));
	walk = frame();
	walk.is_exact = true;
	cr_assert(unwind_step(&walk));
	cr_assert(eq(ulong, asked, IP));
	cr_assert(not(walk.is_exact));
	cr_assert(eq(ulong, walk.function, CODE));
	walk = frame();
	cr_assert(eq(ulong, unwind_function(&walk), CODE));
	cr_assert(eq(ulong, asked, IP - 1));
	walk.registers[WALK_IP] = CODE;
	cr_assert(eq(ulong, unwind_function(&walk), 0));
	walk.is_exact = true;
	cr_assert(eq(ulong, unwind_function(&walk), CODE));
}

Test(unwind, a_common_row_is_read_once)
{
	struct unwind walk;

	for (unsigned i = 0; i < 3; i++) {
		walk = frame();
		cr_assert(unwind_step(&walk));
	}
	cr_assert(eq(uint, readings, 1));
	rules.row.rules[RDX] = (struct rule){ HOW_AT, 0, -16 };
	unwind_closed();
	cr_assert(eq(uint, cleared, 1));
	cr_assert(eq(uint, closed, 1));
	for (unsigned i = 0; i < 3; i++) {
		walk = frame();
		cr_assert(unwind_step(&walk));
	}
	cr_assert(eq(uint, readings, 4));
}

Test(unwind, tables_that_are_not_understood_are_no_guess)
{
	struct unwind walk = frame();

	walk.may_guess = can_guess = true;
	rules.fde.return_register = R15;
	cr_assert(not(unwind_step(&walk)));
	rules.fde.return_register = WALK_IP;
	has_row = false;
	cr_assert(not(unwind_step(&walk)));
	cr_assert(eq(uint, guesses, 0));
	has_rules = false;
	cr_assert(unwind_step(&walk));
	cr_assert(eq(uint, guesses, 1));
	walk.may_guess = false;
	cr_assert(not(unwind_step(&walk)));
	cr_assert(eq(uint, guesses, 1));
}

/* --- signal frames --- */

static unsigned interrupted;
static uintptr_t interrupted_sp;

static void note_interrupted(uintptr_t *ip, uintptr_t *sp)
{
	interrupted++;
	interrupted_sp = *sp;
	*ip += 0x1000;
	*sp += 8;
}

SUBSCRIBE(unwind_interrupted, note_interrupted);

Test(unwind, the_caller_of_a_signal_frame_was_interrupted)
{
	struct unwind walk = frame(), again = frame();

	cr_assert(not(unwind_is_signal_frame(&walk)));
	rules.fde.is_signal_frame = true;
	cr_assert(not(unwind_is_signal_frame(&walk)));
	row_cache_clear();
	cr_assert(unwind_is_signal_frame(&walk));
	cr_assert(unwind_is_signal_frame(&walk));
	again.is_exact = true;
	cr_assert(not(unwind_is_signal_frame(&again)));
	again.is_exact = false;
	again.registers[WALK_IP] = 0;
	cr_assert(not(unwind_is_signal_frame(&again)));
	for (unsigned i = 1; i < 3; i++) {
		walk = frame();
		cr_assert(unwind_step(&walk));
		cr_assert(walk.is_exact);
		cr_assert(eq(uint, interrupted, i));
		cr_assert(eq(ulong, walk.registers[WALK_IP], 0x501000 + 15));
		cr_assert(eq(ulong, walk.registers[RSP],
			     (uintptr_t)(stack + 17)));
	}
}

Test(unwind, tables_that_are_not_understood_are_no_signal_frame)
{
	struct unwind walk = frame();

	rules.fde.is_signal_frame = true;
	rules.fde.return_register = R15;
	cr_assert(not(unwind_is_signal_frame(&walk)));
	rules.fde.return_register = WALK_IP;
	has_row = false;
	cr_assert(not(unwind_is_signal_frame(&walk)));
	has_row = true;
	has_rules = false;
	cr_assert(not(unwind_is_signal_frame(&walk)));
	has_rules = true;
	cr_assert(unwind_is_signal_frame(&walk));
}

/* --- functions whose end is recorded --- */

Test(unwind, a_function_that_returns_to_shim_has_its_real_caller)
{
	struct unwind walk = frame();
	uintptr_t slot = (uintptr_t)(stack + 15);

	stack[15] = (uintptr_t)arch_returned;
	mirrored_at = ARCH_RETURNS_MIRROR(slot);
	returned_to = 0x700007;
	cr_assert(step_twice(&walk));
	cr_assert(eq(ulong, walk.registers[WALK_IP], 0x700007));
	/* Without the mirror there is no caller. */
	mirrored_at = 0;
	walk = frame();
	cr_assert(not(unwind_step(&walk)));
}

Test(unwind, the_mirror_of_the_own_stack_is_read_directly)
{
	uintptr_t at = ARCH_RETURNS_MIRROR((uintptr_t)(stack + 15));
	void *page = (void *)(at & ~4095ul);
	struct unwind walk = frame();

	cr_assert(eq(ptr,
		     mmap(page, 8192, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
			  0),
		     page));
	*(uintptr_t *)at = 0x700008;
	stack[15] = (uintptr_t)arch_returned;
	walk.stack_low = (uintptr_t)(stack + 15);
	walk.stack_high = (uintptr_t)(stack + 16);
	cr_assert(step_twice(&walk));
	cr_assert(eq(ulong, walk.registers[WALK_IP], 0x700008));
	cr_assert(eq(uint, peeks, 0));
}

/* --- memory --- */

Test(unwind, only_the_given_part_of_the_stack_is_read_directly)
{
	struct unwind walk = { .stack_low = (uintptr_t)(stack + 8),
			       .stack_high = (uintptr_t)(stack + 16) };
	uintptr_t value;

	for (unsigned i = 6; i < 18; i++) {
		peeks = 0;
		cr_assert(unwind_read(&walk, (uintptr_t)(stack + i), &value));
		cr_assert(eq(ulong, value, 0x500000 + i));
		cr_assert(eq(uint, peeks, i < 8 || i >= 16));
	}
	peeks = 0;
	cr_assert(unwind_read(&walk, (uintptr_t)(stack + 15) + 1, &value));
	cr_assert(eq(uint, peeks, 1));
	cr_assert(not(unwind_read(&walk, 8, &value)));
}

Test(unwind, the_own_stack_is_found_once_and_read_from_below_its_pointer)
{
	static struct thread self;
	struct unwind walk = frame();

	unwind_begin(&walk, NULL);
	cr_assert(eq(uint, searches, 0));
	unwind_begin(&walk, &self);
	unwind_begin(&walk, &self);
	cr_assert(eq(uint, searches, 1));
	cr_assert(eq(ulong, walk.stack_low, walk.registers[RSP] - 128));
	cr_assert(eq(ulong, walk.stack_high, (uintptr_t)(stack + WORDS)));
	walk = frame();
	walk.registers[RSP] = (uintptr_t)(stack + WORDS);
	unwind_begin(&walk, &self);
	cr_assert(eq(ulong, walk.stack_high, 0));
	walk.registers[RSP] = (uintptr_t)stack - 1;
	unwind_begin(&walk, &self);
	cr_assert(eq(ulong, walk.stack_high, 0));
	walk.registers[RSP] = (uintptr_t)stack;
	unwind_begin(&walk, &self);
	cr_assert(eq(ulong, walk.stack_high, (uintptr_t)(stack + WORDS)));
}

Test(unwind, the_search_for_the_own_stack_ends)
{
	static struct thread other, signal;
	struct unwind walk = frame();

	is_own_stack = false;
	for (unsigned i = 0; i < 20; i++)
		unwind_begin(&walk, &other);
	cr_assert(eq(uint, searches, TRIES_MAX));
	cr_assert(eq(ulong, walk.stack_high, 0));
	is_own_stack = true;
	kind_of_stack = SHIM_STACK_SIGNAL;
	for (unsigned i = 0; i < 3; i++)
		unwind_begin(&walk, &signal);
	cr_assert(eq(ulong, walk.stack_high, 0));
	kind_of_stack = SHIM_STACK_THREAD;
	unwind_begin(&walk, &signal);
	cr_assert(ne(ulong, walk.stack_high, 0));
}

Test(unwind, rules_have_expressions)
{
	static const char plus_8[] = "\x23\x08", at_rsp[] = "\x77\x28";
	int64_t plus = (int64_t)(uintptr_t)plus_8;
	struct unwind walk = frame();

	cr_assert(eq(ulong,
		     in_caller(RBX, (struct rule){ HOW_EXPRESSION, 2, plus }),
		     0x500000 + 17));
	cr_assert(
		eq(ulong,
		   in_caller(RBX, (struct rule){ HOW_EXPRESSION_IS, 2, plus }),
		   (uintptr_t)(stack + 17)));
	cr_assert(eq(ulong,
		     in_caller(RBX, (struct rule){ HOW_EXPRESSION, 1, plus }),
		     -1ul));
	/* Of the frame; the callee's frame address is not on its stack. */
	rules.row.rules[RBX] = (struct rule){ 0 };
	rules.row.cfa = (struct rule){ HOW_EXPRESSION_IS, 2,
				       (int64_t)(uintptr_t)at_rsp };
	row_cache_clear();
	cr_assert(step_twice(&walk));
	cr_assert(eq(ulong, walk.registers[RSP], (uintptr_t)(stack + 13)));
	cr_assert(eq(ulong, walk.registers[WALK_IP], 0x500000 + 12));
	rules.row.cfa = (struct rule){ HOW_EXPRESSION_IS, 2, plus };
	row_cache_clear();
	walk = frame();
	cr_assert(not(step_twice(&walk)));
}

/* --- libunwind --- */

Test(unwind, libunwind_helps_or_replaces_the_tables)
{
	struct unwind walk = frame();

	wanted = SHIM_UNWINDER_BOTH;
	second_can = true;
	/* Walks that may not guess are shim's alone. */
	has_rules = false;
	cr_assert(not(unwind_step(&walk)));
	cr_assert(eq(uint, seconds, 0));
	walk.may_guess = true;
	walk.is_guess = true;
	cr_assert(unwind_step(&walk));
	cr_assert(eq(uint, seconds, 1));
	cr_assert(not(walk.is_guess));
	/* Not where shim's has a caller, or knows that there is none. */
	has_rules = true;
	walk = frame();
	walk.may_guess = true;
	cr_assert(unwind_step(&walk));
	rules.row.rules[WALK_IP].how = HOW_UNDEFINED;
	row_cache_clear();
	walk = frame();
	walk.may_guess = true;
	cr_assert(not(unwind_step(&walk)));
	cr_assert(eq(uint, seconds, 1));
	second_can = false;
	has_row = false;
	row_cache_clear();
	walk = frame();
	walk.may_guess = true;
	cr_assert(not(unwind_step(&walk)));
	cr_assert(eq(uint, seconds, 2));
}

Test(unwind, libunwind_alone_guesses_only_without_tables)
{
	struct unwind walk = frame();

	wanted = SHIM_UNWINDER_LIBUNWIND;
	walk.may_guess = second_can = can_guess = true;
	cr_assert(unwind_step(&walk));
	cr_assert(eq(ulong, walk.registers[WALK_IP], IP + 2));
	cr_assert(eq(uint, guesses + readings, 0));
	second_can = false;
	cr_assert(not(unwind_step(&walk)));
	cr_assert(eq(uint, guesses, 0));
	has_rules = false;
	cr_assert(unwind_step(&walk));
	cr_assert(eq(uint, guesses, 1));
	can_guess = false;
	cr_assert(not(unwind_step(&walk)));
	walk.registers[WALK_IP] = 0;
	seconds = 0;
	cr_assert(not(unwind_step(&walk)));
	cr_assert(walk.is_last);
	cr_assert(eq(uint, seconds, 0));
	walk.is_exact = true;
	walk.registers[WALK_IP] = 0;
	cr_assert(not(unwind_step(&walk)));
	cr_assert(eq(uint, seconds, 1));
}

/* --- others --- */

Test(unwind, code_has_its_function_and_its_handlers)
{
	uintptr_t lsda = 0;

	rules.fde.lsda = 0x480000;
	cr_assert(eq(ulong, unwind_code(CODE, &lsda), CODE));
	cr_assert(eq(ulong, lsda, 0x480000));
	cr_assert(eq(ulong, asked, CODE));
	cr_assert(eq(ulong, unwind_code(CODE + 1, NULL), CODE));
	cr_assert(eq(ulong, unwind_code(CODE - 1, &lsda), 0));
}

static uintptr_t read_register(void *argument, int number)
{
	*(unsigned *)argument |= 1u << number;
	return number == RBP ? (uintptr_t)(stack + 20) : 0;
}

Test(unwind, the_end_of_a_frame_is_its_callers_stack_pointer)
{
	unsigned read = 0;

	cr_assert(
		eq(ulong,
		   unwind_end(IP, (uintptr_t)(stack + 8), read_register, &read),
		   (uintptr_t)(stack + 16)));
	cr_assert(eq(uint, read, KEPT));
	cr_assert(eq(ulong, asked, IP));
	rules.row.cfa = (struct rule){ HOW_IS, RBP, 16 };
	row_cache_clear();
	cr_assert(
		eq(ulong,
		   unwind_end(IP, (uintptr_t)(stack + 8), read_register, &read),
		   (uintptr_t)(stack + 22)));
	has_rules = false;
	row_cache_clear();
	cr_assert(
		eq(ulong,
		   unwind_end(IP, (uintptr_t)(stack + 8), read_register, &read),
		   0));
}

Test(unwind, a_walk_begins_where_the_thread_was_interrupted)
{
	static struct thread self;
	ucontext_t context = { 0 };
	struct unwind walk;

	context.uc_mcontext.gregs[REG_RIP] = (long long)IP;
	context.uc_mcontext.gregs[REG_RSP] = (long long)(uintptr_t)stack;
	context.uc_mcontext.gregs[REG_RBX] = 3;
	cr_assert(eq(ulong, unwind_interrupted_ip(&context), IP + 0x1000));
	/* Where code of shim was interrupted, the return address is on the stack. */
	cr_assert(eq(ulong, interrupted_sp, (uintptr_t)stack));
	unwind_from_context(&walk, &context, &self);
	cr_assert(walk.is_exact && walk.may_guess);
	cr_assert(eq(uint, walk.known, 0x1ffff));
	cr_assert(eq(ulong, walk.registers[WALK_IP], IP + 0x1000));
	cr_assert(eq(ulong, walk.registers[RSP], (uintptr_t)(stack + 1)));
	cr_assert(eq(ulong, walk.registers[RBX], 3));
	cr_assert(eq(ulong, walk.stack_high, (uintptr_t)(stack + WORDS)));
	cr_assert(eq(uint, interrupted, 2));
}
