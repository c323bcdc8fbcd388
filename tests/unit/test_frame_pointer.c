/*
 * Steps to callers without tables, in code and on stacks that are simulated: nothing
 * else can be read.
 */
#include "os/maps.h"
#include "os/sys.h"
#include "runtime/state.h"
#include "unwind/frame_pointer.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <string.h>

#define RBP    6
#define CODE   0x400000ul /* two pages */
#define STACK  0x7000000ul
#define OTHER  0x10000000ul /* another stack */
#define CALLER (CODE + 0x800)
#define IP     (CODE + 0x100)
#define SP     (STACK + 0x40)

static unsigned char code[8192];
static uint64_t stack[64], other[64];
static bool is_listed; /* only the list of all mappings has the code */
static uint64_t time_ns = 5000000000;
static bool is_handler;
static unsigned looks;

int sys_peek(const void *from, void *to, size_t size)
{
	uintptr_t at = (uintptr_t)from - CODE;

	if (at > sizeof(code) || size > sizeof(code) - at)
		return -EFAULT;
	memcpy(to, code + at, size);
	return 0;
}

int sys_time_ns(int clock, uint64_t *ns)
{
	(void)clock;
	*ns = time_ns;
	return 0;
}

int state_call_locked(int (*work)(void *argument), void *argument)
{
	looks++;
	return work(argument);
}

int maps_find(uintptr_t address, uintptr_t *low, uintptr_t *high,
	      bool *executable, char name[64])
{
	name[0] = '\0';
	*low = CODE;
	*high = CODE + sizeof(code);
	*executable = !is_listed && address - CODE < sizeof(code);
	return is_listed ? -ENOSYS : 0;
}

int maps_read(bool (*each)(const struct map *map, void *argument),
	      void *argument)
{
	const struct map maps[] = {
		{ .start = 0x1000, .end = 0x2000, .executable = true },
		{ .start = CODE,
		  .end = CODE + sizeof(code),
		  .executable = true },
		{ .start = STACK, .end = STACK + sizeof(stack) },
	};

	for (int i = 0; i < 3 && each(&maps[i], argument); i++)
		;
	return 0;
}

bool unwind_read(const struct unwind *walk, uintptr_t at, uintptr_t *value)
{
	(void)walk;
	if (at - STACK < sizeof(stack))
		*value = stack[(at - STACK) / 8];
	else if (at - OTHER < sizeof(other))
		*value = other[(at - OTHER) / 8];
	else
		return false;
	return true;
}

bool unwind_is_signal_frame(const struct unwind *walk)
{
	cr_assert(not(walk->is_exact));
	return is_handler && walk->registers[WALK_IP] == CALLER + 0x200;
}

/* --- steps by code --- */

#define CALL "\xe8\1\2\3\4"

/* Code at the address, before the caller's return address, and what the step finds: the
 * stack pointer from the old one; 0: no caller. */
static const struct {
	const char *name, *code;
	size_t size;
	const char *call;
	size_t call_size;
	bool is_exact;
	int slot; /* of the return address */
	unsigned up;
} ends[] = {
#define P(name, code, call, is_exact, slot, up) \
	{ \
		name, code, sizeof(code) - 1, call, sizeof(call) - 1, \
			is_exact, slot, up \
	}
	P("a return", "\xc3", CALL, true, 0, 8),
	P("a return after a return", "\xc3", CALL, false, 0, 8),
	P("a return that removes", "\xc2\x08\0", CALL, true, 0, 8),
	P("a repeated return", "\xf3\xc3", CALL, true, 0, 8),
	P("a repeated return after a return", "\xf3\xc3", CALL, false, 0, 8),
	P("a removing return after a return", "\xc2\x08\0", CALL, false, 0, 8),
	P("a high pop after a return", "\x41\x5c\xc3", CALL, false, 1, 16),
	P("a sum after a return", "\x48\x83\xc4\x18\xc3", CALL, false, 3, 32),
	P("a prefix of something else", "\xf3\x90", CALL, true, 0, 0),
	P("a pop", "\x5b\xc3", CALL, true, 1, 16),
	P("a pop after a return", "\x5b\xc3", CALL, false, 1, 16),
	P("pops of all", "\x58\x59\x5a\x5b\x5d\x5e\x5f\xc3", CALL, true, 7, 64),
	P("pops of the others", "\x41\x58\x41\x5c\x41\x5f\xc3", CALL, true, 3,
	  32),
	P("a pop of the stack pointer", "\x5c\xc3", CALL, true, 1, 0),
	P("a sum", "\x48\x83\xc4\x18\xc3", CALL, true, 3, 32),
	P("a long sum", "\x48\x81\xc4\x20\0\0\0\xc3", CALL, true, 4, 40),
	P("a long sum of two bytes", "\x48\x81\xc4\0\1\0\0\xc3", CALL, true, 32,
	  264),
	P("a sum and pops", "\x48\x83\xc4\x08\x5b\x41\x5e\x5d\xc3", CALL, true,
	  4, 40),
	P("a difference of nothing", "\x48\x83\xc4\xf8\xc3", CALL, true, -1, 0),
	P("a difference", "\x48\x83\xc4\xf8\x5b\xc3", CALL, true, 0, 8),
	P("another sum", "\x48\x83\xc5\x18\xc3", CALL, true, 3, 0),
	P("other code", "\x90\xc3", CALL, true, 0, 0),
	P("no call", "\xc3", "\x90\x90\x90\x90\x90\x90\x90", true, 0, 0),
	P("a call of a register", "\xc3", "\xff\xd0", true, 0, 8),
	P("a jump of a register", "\xc3", "\x90\x90\x90\x90\x90\xff\xe0", true,
	  0, 0),
	P("a call of r12", "\xc3", "\x41\xff\xd4", true, 0, 8),
	P("a call through memory", "\xc3", "\xff\x50\x08", true, 0, 8),
	P("a call through a slot", "\xc3", "\xff\x15\1\2\3\4", true, 0, 8),
	P("a call through the stack", "\xc3", "\xff\x54\x24\x08", true, 0, 8),
	P("a call far in the stack", "\xc3", "\xff\x94\x24\1\2\3\4", true, 0,
	  8),
	P("a jump through a slot", "\xc3", "\x90\xff\x25\1\2\3\4", true, 0, 0),
	P("a push through memory", "\xc3", "\x90\x90\x90\x90\xff\x70\x08", true,
	  0, 0),

	P("a push", "\x55\x90", CALL, true, 0, 8),
	P("a push after a landing pad", "\xf3\x0f\x1e\xfa\x55", CALL, true, 0,
	  8),
	P("no landing pad", "\xf3\x0f\x1e\xfb\x55", CALL, true, 0, 0),
	P("no landing pad either", "\xf3\x0f\x1d\xfa\x55", CALL, true, 0, 0),
	P("another push", "\x53", CALL, true, 0, 0),
	P("a push after a call", "\x55", CALL, false, 0, 0),
	P("a copy", "\x48\x89\xe5", CALL, true, 1, 16),
	P("the other copy", "\x48\x8b\xec", CALL, true, 1, 16),
	P("a copy to another", "\x48\x89\xe6", CALL, true, 1, 0),
	P("a copy after a call", "\x48\x89\xe5", CALL, false, 1, 0),
#undef P
};

static struct unwind walk;

static void begin(const char *bytes, size_t size, const char *call,
		  size_t call_size)
{
	frame_pointer_clear();
	memset(code, 0x90, sizeof(code));
	memset(stack, 0x11, sizeof(stack));
	memset(other, 0x11, sizeof(other));
	memcpy(code + (IP - CODE), bytes, size);
	memcpy(code + (CALLER - CODE) - call_size, call, call_size);
	walk = (struct unwind){
		.known = 1u << WALK_SP | 1u << WALK_IP,
		.is_exact = true,
		.stack_low = STACK,
		.stack_high = STACK + sizeof(stack),
	};
	walk.registers[WALK_IP] = IP;
	walk.registers[WALK_SP] = SP;
}

Test(frame_pointer, ends_and_beginnings_of_functions_lead_to_the_caller)
{
	for (int listed = 0; listed < 2; listed++)
		for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
			bool found;

			is_listed = listed;
			begin(ends[i].code, ends[i].size, ends[i].call,
			      ends[i].call_size);
			stack[8 + ends[i].slot] = CALLER;
			walk.is_exact = ends[i].is_exact;
			if (!walk.is_exact) /* it is a return address itself */
				memcpy(code + (IP - CODE) - 5, CALL, 5);
			found = frame_pointer_step(&walk);
			cr_expect(eq(int, found, ends[i].up != 0), "%s",
				  ends[i].name);
			cr_expect(eq(u64, walk.registers[WALK_SP],
				     SP + ends[i].up),
				  "%s", ends[i].name);
			cr_expect(eq(u64, walk.registers[WALK_IP],
				     found ? CALLER : IP),
				  "%s", ends[i].name);
			cr_expect(eq(int, walk.is_exact,
				     !found && ends[i].is_exact));
			cr_expect(eq(int, walk.is_guess, found));
		}
}

/* The code ends where its page ends; or its last bytes are on the next page, which may
 * be another mapping. */
static bool step_at_end_of_page(size_t i, size_t cut)
{
	uintptr_t at = CODE + 4096 + cut - ends[i].size;

	begin("", 0, ends[i].call, ends[i].call_size);
	memcpy(code + (at - CODE), ends[i].code, ends[i].size);
	stack[8 + ends[i].slot] = CALLER;
	walk.is_exact = ends[i].is_exact;
	if (!walk.is_exact)
		memcpy(code + (at - CODE) - 5, CALL, 5);
	walk.registers[WALK_IP] = at;
	return frame_pointer_step(&walk);
}

Test(frame_pointer, code_at_the_end_of_a_page_is_whole_or_unknown)
{
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		bool is_whole = ends[i].code[0] == '\xc2' ||
				strcmp(ends[i].name, "a push") == 0;

		cr_expect(
			eq(int, step_at_end_of_page(i, false), ends[i].up != 0),
			"%s", ends[i].name);
		for (size_t cut = 1; cut < ends[i].size; cut++)
			cr_expect(
				eq(int, step_at_end_of_page(i, cut), is_whole),
				"%s, %zu bytes cut", ends[i].name, cut);
	}
}

Test(frame_pointer, a_caller_is_less_than_a_mebibyte_away)
{
	const int32_t distance = OTHER - SP;
	char sum[] = "\x48\x81\xc4....\xc3";

	memcpy(sum + 3, &distance, 4);
	begin(sum, 8, CALL, 5);
	walk.stack_low = walk.stack_high = 0;
	other[0] = CALLER;
	cr_assert(not(frame_pointer_step(&walk)));
}

/* The call before the address is in the code, the address may be its end. */
Test(frame_pointer, a_return_address_is_behind_executable_code)
{
	for (is_listed = false;; is_listed = true) {
		begin("\xc3", 1, CALL, 5);
		memcpy(code + sizeof(code) - 5, CALL, 5);
		stack[8] = CODE + sizeof(code);
		cr_expect(frame_pointer_step(&walk));
		begin("\xc3", 1, CALL, 5);
		stack[8] = CODE;
		cr_expect(not(frame_pointer_step(&walk)));
		begin("\xc3", 1, CALL, 5);
		stack[8] = CODE + 7;
		memcpy(code + 2, CALL, 5);
		cr_expect(frame_pointer_step(&walk));
		if (is_listed)
			break;
	}
}

Test(frame_pointer, popped_registers_are_known)
{
	begin("\x5b\x41\x5c\x5d\x41\x5f\x58\xc3", 8, CALL, 5);
	for (unsigned i = 0; i < 5; i++)
		stack[8 + i] = i + 100;
	stack[13] = CALLER;
	cr_assert(frame_pointer_step(&walk));
	cr_assert(eq(u64, walk.registers[3], 100));
	cr_assert(eq(u64, walk.registers[12], 101));
	cr_assert(eq(u64, walk.registers[RBP], 102));
	cr_assert(eq(u64, walk.registers[15], 103));
	/* Callees do not preserve rax. */
	cr_assert(eq(u32, walk.known,
		     1u << 3 | 1u << 12 | 1u << RBP | 1u << 15 | 1u << WALK_SP |
			     1u << WALK_IP));
}

Test(frame_pointer, code_behind_the_end_of_a_page_is_not_read)
{
	begin("", 0, CALL, 5);
	walk.registers[WALK_IP] = CODE + sizeof(code) - 1;
	code[sizeof(code) - 1] = 0xc3;
	stack[8] = CALLER;
	cr_assert(frame_pointer_step(&walk));
	walk.registers[WALK_IP] = CODE + 4095;
	walk.registers[WALK_SP] = SP;
	walk.is_exact = true;
	code[4095] = 0x5b;
	code[4096] = 0xc3;
	stack[9] = CALLER;
	cr_assert(not(frame_pointer_step(&walk)));
}

Test(frame_pointer, leave_needs_a_frame_pointer)
{
	begin("\xc9\xc3", 2, CALL, 5);
	walk.registers[RBP] = SP + 24;
	stack[11] = 77;
	stack[12] = CALLER;
	cr_assert(not(frame_pointer_step(&walk)));
	walk.known |= 1u << RBP;
	cr_assert(frame_pointer_step(&walk));
	cr_assert(eq(u64, walk.registers[RBP], 77));
	cr_assert(eq(u64, walk.registers[WALK_SP], SP + 40));
	/* The same after a call; no frame pointer leads from there. */
	begin("\xc9\xc3", 2, CALL, 5);
	memcpy(code + (IP - CODE) - 5, CALL, 5);
	walk.is_exact = false;
	walk.known |= 1u << RBP;
	walk.registers[RBP] = SP + 24;
	stack[11] = 77;
	stack[12] = CALLER;
	cr_assert(frame_pointer_step(&walk));
	cr_assert(zero(u64, walk.chained_ip));
}

/* --- calls of this function --- */

/* The return address is on top of the stack if the function has not set its frame
 * pointer since its beginning, which a call leads to. */
static const struct {
	const char *name, *begin;
	size_t size;
	long distance; /* from the beginning to the address */
	bool is_found;
} beginnings[] = {
#define P(name, begin, distance, is_found) \
	{ \
		name, begin, sizeof(begin) - 1, distance, is_found \
	}
	P("at the beginning", "\x90", 0, true),
	P("behind it", "\x90", 0x80, true),
	P("before it", "\x90", -1, false),
	P("frame pointer set", "\x55\x48\x89\xe5", 0x80, false),
	P("frame pointer set just before", "\x55\x48\x89\xe5", 4, false),
	P("frame pointer set afterwards", "\x55\x48\x89\xe5", 3, true),
	P("the other copy", "\x48\x8b\xec", 0x80, false),
	P("an address", "\x48\x8d\x6c\x24\x08", 0x80, false),
	P("a long address", "\x48\x8d\xac\x24", 0x80, false),
	P("another address", "\x48\x8d\x6d\x24", 0x80, true),
	P("another copy", "\x48\x89\xe6", 0x80, true),
	P("a copy from it", "\x48\x8b\xe5", 0x80, true),
	P("the other copy from it", "\x48\x89\xec", 0x80, true),
	P("another address of another", "\x48\x8d\x64", 0x80, true),
	P("4 bytes", "\x40\x89\xe5", 0x80, true),
#undef P
};

Test(frame_pointer, a_function_without_a_frame_has_its_caller_on_top)
{
	for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]);
	     i++) {
		unsigned char call[] = CALL;
		uintptr_t start = IP - (uintptr_t)beginnings[i].distance;
		int32_t distance = (int32_t)(start - CALLER);

		memcpy(call + 1, &distance, 4);
		begin("", 0, (char *)call, 5);
		memcpy(code + (start - CODE), beginnings[i].begin,
		       beginnings[i].size);
		stack[8] = CALLER;
		cr_expect(eq(int, frame_pointer_step(&walk),
			     beginnings[i].is_found),
			  "%s", beginnings[i].name);
	}
}

/* A call of the function that begins @distance before the address; its frame pointer is
 * set @set bytes after that; 0: never. */
static bool step_in_function(unsigned distance, unsigned set)
{
	unsigned char call[] = CALL;
	uintptr_t ip = CODE + 0x1800, start = ip - distance;
	int32_t back = (int32_t)(start - CALLER);

	memcpy(call + 1, &back, 4);
	begin("", 0, (char *)call, 5);
	if (set)
		memcpy(code + (start - CODE) + set, "\x48\x89\xe5", 3);
	walk.registers[WALK_IP] = ip;
	stack[8] = CALLER;
	return frame_pointer_step(&walk);
}

Test(frame_pointer, a_function_is_smaller_than_a_page)
{
	cr_expect(step_in_function(4095, 0));
	cr_expect(not(step_in_function(4096, 0)));
	cr_expect(not(step_in_function(4095, 189)));
	cr_expect(step_in_function(4095, 190));
	cr_expect(not(step_in_function(100, 97)));
	cr_expect(step_in_function(100, 98));
}

Test(frame_pointer, a_signal_handler_has_the_kernels_frame_on_top)
{
	begin("\x90", 1, CALL, 5);
	stack[8] = CALLER + 0x200;
	cr_assert(not(frame_pointer_step(&walk)));
	is_handler = true;
	cr_assert(frame_pointer_step(&walk));
	cr_assert(eq(u64, walk.registers[WALK_IP], CALLER + 0x200));
}

/* --- steps by frame pointers --- */

static void begin_frame(uintptr_t frame, uintptr_t next, uintptr_t to)
{
	begin("\x90", 1, CALL, 5);
	memcpy(code + (IP - CODE) - 5, CALL, 5);
	walk.is_exact = false;
	walk.known |= 1u << RBP | 1u << 3;
	walk.registers[RBP] = frame;
	if (frame - STACK < sizeof(stack) - 8) {
		stack[(frame - STACK) / 8] = next;
		stack[(frame - STACK) / 8 + 1] = to;
	}
}

Test(frame_pointer, a_frame_pointer_leads_to_the_caller)
{
	begin_frame(SP + 16, SP + 64, CALLER);
	cr_assert(frame_pointer_step(&walk));
	cr_assert(eq(u64, walk.registers[WALK_IP], CALLER));
	cr_assert(eq(u64, walk.registers[WALK_SP], SP + 32));
	cr_assert(eq(u64, walk.registers[RBP], SP + 64));
	cr_assert(eq(u64, walk.chained_ip, CALLER));
	cr_assert(
		eq(u32, walk.known, 1u << RBP | 1u << WALK_SP | 1u << WALK_IP));
}

Test(frame_pointer, a_wrong_frame_pointer_leads_nowhere)
{
	begin_frame(SP + 16, SP + 64, CALLER);
	walk.known &= ~(1u << RBP);
	cr_assert(not(frame_pointer_step(&walk)));
	begin_frame(SP + 16, SP + 64, CALLER);
	walk.registers[RBP] += 4;
	cr_assert(not(frame_pointer_step(&walk)));
	begin_frame(SP + 16, SP + 64, CALLER + 1);
	cr_assert(not(frame_pointer_step(&walk)));
	begin_frame(SP + 16, SP + 64, 0x9000);
	cr_assert(not(frame_pointer_step(&walk)));
	/* Below the stack pointer, on the same stack. */
	begin_frame(SP - 16, SP + 64, CALLER);
	cr_assert(not(frame_pointer_step(&walk)));
	/* The frame ends where the stack ends. */
	begin_frame(STACK + sizeof(stack) - 16, 0, CALLER);
	cr_assert(frame_pointer_step(&walk));
	/* Unreadable. */
	begin_frame(STACK + sizeof(stack), 0, CALLER);
	cr_assert(not(frame_pointer_step(&walk)));
	/* Not after a call. */
	begin_frame(SP + 16, SP + 64, CALLER);
	code[IP - CODE - 5] = 0x90;
	cr_assert(not(frame_pointer_step(&walk)));
}

Test(frame_pointer, the_outermost_frame_may_begin_anywhere_in_code)
{
	begin_frame(SP + 16, 0, CODE + 0x900);
	cr_assert(frame_pointer_step(&walk));
	cr_assert(not(walk.is_last));
	cr_assert(not(frame_pointer_step(&walk)));
	cr_assert(walk.is_last);
	begin_frame(SP + 16, 8, CODE + 0x900);
	cr_assert(not(frame_pointer_step(&walk)));
	begin_frame(SP + 16, 0, STACK);
	cr_assert(not(frame_pointer_step(&walk)));
}

/* As if Go calls C. */
static void begin_other(uint64_t next, uint64_t to)
{
	begin_frame(OTHER + 16, 0, 0);
	other[2] = next;
	other[3] = to;
}

Test(frame_pointer, a_frame_pointer_leads_to_another_stack_four_times)
{
	begin_other(OTHER + 64, CALLER);
	cr_assert(frame_pointer_step(&walk));
	cr_assert(eq(u64, walk.registers[WALK_SP], OTHER + 32));
	cr_assert(eq(uint, walk.switches, 1));
	begin_other(OTHER + 64, CALLER);
	walk.switches = 3;
	cr_assert(frame_pointer_step(&walk));
	begin_other(OTHER + 64, CALLER);
	walk.switches = 4;
	cr_assert(not(frame_pointer_step(&walk)));
	begin_other(0, CALLER);
	cr_assert(frame_pointer_step(&walk));
	/* 0 and the address of a function. */
	begin_other(0, CODE + 0x900);
	cr_assert(not(frame_pointer_step(&walk)));
	begin_other(OTHER + 16 + (1u << 20), CALLER);
	cr_assert(frame_pointer_step(&walk));
	begin_other(OTHER + 24 + (1u << 20), CALLER);
	cr_assert(not(frame_pointer_step(&walk)));
	begin_other(OTHER + 64, CALLER);
	walk.is_exact = true;
	cr_assert(not(frame_pointer_step(&walk)));
}

/* --- what is known about addresses --- */

Test(frame_pointer, a_return_address_is_looked_at_once)
{
	begin_frame(SP + 16, SP + 64, CALLER);
	looks = 0;
	for (int i = 0; i < 3; i++) {
		struct unwind again = walk;

		cr_assert(frame_pointer_step(&again));
		time_ns += 2000000000;
	}
	cr_assert(eq(uint, looks, 2)); /* the address, and the caller's */
	frame_pointer_clear();
	cr_assert(frame_pointer_step(&walk));
	cr_assert(eq(uint, looks, 4));
}

Test(frame_pointer, what_is_no_return_address_is_looked_at_each_second)
{
	begin_frame(SP + 16, SP + 64, CALLER + 1);
	looks = 0;
	for (int i = 0; i < 3; i++)
		cr_assert(not(frame_pointer_step(&walk)));
	cr_assert(eq(uint, looks, 2));
	time_ns += 999999999;
	cr_assert(not(frame_pointer_step(&walk)));
	cr_assert(eq(uint, looks, 2));
	time_ns += 1;
	memcpy(code + (CALLER + 1 - CODE) - 5, CALL, 5);
	cr_assert(frame_pointer_step(&walk));
	cr_assert(eq(uint, looks, 3));
}
