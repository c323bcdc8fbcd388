/*
 * What unwind.c needs of others, for its tests: the rules of one function, a stack, and
 * switches for everything that may fail.
 */
#ifndef SHIM_TEST_UNWIND_STUBS_H
#define SHIM_TEST_UNWIND_STUBS_H

#include "unwind/frame_pointer.h"
#include "unwind/row_cache.h"
#include "unwind/second.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <string.h>

#include "unwind/unwind.c"

enum { RAX, RDX, RCX, RBX, RSI, RDI, RBP, RSP, R12 = 12, R13, R14, R15, RIP };

#define KEPT  (1u << RBX | 1u << RBP | 0xfu << R12)
#define CODE  0x401000ul
#define IP    (CODE + 0x10)
#define WORDS 64

static uintptr_t stack[WORDS];

/* --- what unwind.c needs of others --- */

static struct cfi_machine rules; /* of the code at CODE */
static unsigned readings;	 /* of tables */
static uintptr_t asked;		 /* the address of the last one */
static bool has_rules = true, has_row = true;
static unsigned guesses, seconds;
static bool can_guess, second_can;
static uint32_t wanted = SHIM_UNWINDER_OWN;
static unsigned cleared, closed;

/* Read by the kernel: @returned_to is in the mirror of the stack. */
static uintptr_t mirrored_at, returned_to;
static unsigned peeks;

int sys_peek(const void *from, void *to, size_t size)
{
	uintptr_t at = (uintptr_t)from - (uintptr_t)stack;

	peeks++;
	if (mirrored_at && (uintptr_t)from == mirrored_at) {
		memcpy(to, &returned_to, size);
		return 0;
	}
	if (at > sizeof(stack) || size > sizeof(stack) - at)
		return -EFAULT;
	memcpy(to, from, size);
	return 0;
}

char arch_returned[1];

bool eh_frame_open(uintptr_t address, struct tables *tables, struct fde *fde)
{
	asked = address;
	readings++;
	(void)tables;
	*fde = rules.fde;
	return has_rules && address - CODE < 0x1000;
}

bool eh_frame_find_row(struct cfi_machine *machine, uintptr_t address)
{
	cr_assert(eq(ulong, address, asked));
	machine->row = rules.row;
	return has_row;
}

uint64_t cursor_read_fixed(struct cursor *cursor, unsigned size)
{
	uint64_t value = 0;

	if (cursor->failed || cursor->end - cursor->at < size) {
		cursor->failed = true;
		return 0;
	}
	memcpy(&value, (const void *)cursor->at, size);
	cursor->at += size;
	return value;
}

int64_t cursor_read_signed(struct cursor *cursor, unsigned size)
{
	uint64_t value = cursor_read_fixed(cursor, size);

	return size == 1 ? (int8_t)value : (int16_t)value;
}

/* Numbers of one byte are enough here. */
uint64_t cursor_read_uleb(struct cursor *cursor)
{
	return cursor_read_fixed(cursor, 1);
}

int64_t cursor_read_sleb(struct cursor *cursor)
{
	int64_t value = (int64_t)cursor_read_fixed(cursor, 1);

	return value & 0x40 ? value - 0x80 : value;
}

bool frame_pointer_step(struct unwind *walk)
{
	guesses++;
	walk->registers[WALK_IP]++;
	return can_guess;
}

void frame_pointer_clear(void)
{
	cleared++;
}

uint32_t second_wanted(void)
{
	return wanted;
}

bool second_step(struct unwind *walk)
{
	seconds++;
	walk->registers[WALK_IP] += 2;
	walk->function = has_rules ? CODE : 0;
	return second_can;
}

void second_closed(void)
{
	closed++;
}

static enum shim_stack kind_of_stack = SHIM_STACK_THREAD;
static bool is_own_stack = true;
static unsigned searches;

enum shim_stack shim_stack_find(uintptr_t sp, uintptr_t *low, uintptr_t *high)
{
	(void)sp;
	searches++;
	*low = (uintptr_t)stack;
	*high = (uintptr_t)(stack + WORDS);
	return kind_of_stack;
}

bool stack_is_own(uintptr_t low, uintptr_t high)
{
	cr_assert(eq(ulong, high - low, sizeof(stack)));
	return is_own_stack;
}

/* --- rules --- */

/* Each word of the stack differs; the CFA is rsp + 64. */
static void make_rules(void)
{
	for (unsigned i = 0; i < WORDS; i++)
		stack[i] = 0x500000 + i;
	memset(&rules, 0, sizeof(rules));
	rules.fde.start = CODE;
	rules.fde.return_register = WALK_IP;
	rules.row.cfa = (struct rule){ HOW_IS, RSP, 64 };
	rules.row.rules[WALK_IP] = (struct rule){ HOW_AT, 0, -8 };
	row_cache_clear();
}

static struct unwind frame(void)
{
	struct unwind walk = { .known = KEPT | 1u << RSP | 1u << WALK_IP };

	for (unsigned i = 0; i < WALK_REGISTERS; i++)
		walk.registers[i] = 0x600000 + i;
	walk.registers[RSP] = (uintptr_t)(stack + 8);
	walk.registers[WALK_IP] = IP;
	return walk;
}

#endif
