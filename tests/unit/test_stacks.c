/*
 * The stack of an event and its open calls, in handmade lists: hooks/path/threads.c.
 */
#include "path/path.h"
#include "path/threads.h"
#include "runtime/state.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>

static struct tree tree;

static struct stack *known(uintptr_t sp)
{
	return tree_known_stack(&tree, sp);
}

Test(stacks, of_those_that_hold_a_place_the_smallest_counts)
{
	struct stack small = { .low = 0x3000, .high = 0x4000 };
	struct stack big = { .low = 0x1000, .high = 0x9000, .next = &small };
	struct stack other = { .low = 0xa000, .high = 0xb000, .next = &big };
	struct stack middle = { .low = 0x2000, .high = 0x5000, .next = &other };

	tree.stacks = &middle;
	cr_expect(eq(ptr, known(0x1000), NULL));
	cr_expect(eq(ptr, known(0x1001), &big));
	cr_expect(eq(ptr, known(0x2000), &big));
	cr_expect(eq(ptr, known(0x2001), &middle));
	cr_expect(eq(ptr, known(0x3000), &middle));
	cr_expect(eq(ptr, known(0x3001), &small));
	cr_expect(eq(ptr, known(0x4000), &small));
	cr_expect(eq(ptr, known(0x4001), &middle));
	cr_expect(eq(ptr, known(0x5001), &big));
	cr_expect(eq(ptr, known(0x9000), &big));
	cr_expect(eq(ptr, known(0x9001), NULL));
	cr_expect(eq(ptr, known(0xb000), &other));
	tree.signal_stack = (struct stack){ .low = 0x1800, .high = 0x8000 };
	cr_expect(eq(ptr, known(0x3800), &tree.signal_stack));
	cr_expect(eq(ptr, known(0x8001), &big));
}

/* The older one may be gone: its memory is part of a new stack. */
Test(stacks, of_two_that_are_equally_large_the_newer_one_counts)
{
	struct stack older = { .low = 0x1000, .high = 0x3000 };
	struct stack newer = { .low = 0x2000, .high = 0x4000, .next = &older };

	tree.stacks = &newer;
	cr_expect(eq(ptr, known(0x2800), &newer));
	cr_expect(eq(ptr, known(0x1800), &older));
}

/* Calls at these distances from the stack's low end, outermost first. */
#define CALLS 5
static struct shim_node nodes[CALLS];
static struct stack stack;

static void open_calls(void)
{
	for (int i = 0; i < CALLS; i++) {
		nodes[i].function = 0x100u + (unsigned)i;
		nodes[i].parent = i ? (uint64_t)&nodes[i - 1] : 0;
		nodes[i].frame = 0x900 - (unsigned)i * 0x100;
	}
	stack = (struct stack){ .low = 0x10000,
				.high = 0x11000,
				.base = &nodes[0] };
	tree_mode = COUNTS;
}

/* The number of the innermost call that stays open at @frame. */
static long stays(unsigned frame)
{
	return tree_drop_stale(&stack, &nodes[CALLS - 1], stack.low + frame) -
	       nodes;
}

Test(stacks, calls_below_an_event_have_ended)
{
	static const struct {
		unsigned frame;
		int stays;
	} cases[] = {
		{ 0x4ff, 4 }, { 0x500, 4 }, { 0x501, 3 }, { 0x600, 3 },
		{ 0x601, 2 }, { 0x7ff, 1 }, { 0x801, 0 }, { 0xfff, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		open_calls();
		cr_expect(eq(long, stays(cases[i].frame), cases[i].stays), "%x",
			  cases[i].frame);
		for (int j = 0; j < CALLS; j++)
			cr_expect(eq(int, nodes[j].frame != 0,
				     j <= cases[i].stays),
				  "%x: %d", cases[i].frame, j);
	}
}

/* A signal handler has interrupted the enter. */
Test(stacks, a_call_without_a_frame_yet_is_open)
{
	for (int i = 1; i < CALLS; i++) {
		open_calls();
		nodes[i].frame = 0;
		cr_expect(eq(long, stays(0xfff), i), "%d", i);
	}
}

Test(stacks, the_base_of_a_stack_is_open)
{
	for (int i = 0; i < CALLS; i++) {
		open_calls();
		stack.base = &nodes[i];
		cr_expect(eq(long, stays(0xfff), i), "%d", i);
	}
	/* The root of all, whatever the base. */
	open_calls();
	stack.base = NULL;
	cr_expect(eq(long, stays(0xfff), 0));
}

/* The same calls on this thread's stack, none of which is ended by the question. */
Test(stacks, the_caller_of_an_event_is_the_innermost_open_call_above_it)
{
	uintptr_t sp = (uintptr_t)__builtin_frame_address(0) & ~(uintptr_t)7;
	struct shim_node *base;
	uintptr_t frame;
	struct tree *its;
	struct place at;

	setenv("SHIM_DISABLE", "1", 1);
	setenv("SHIM_PROFILE", "calltree:counts", 1);
	state_start();
	its = tree_get(sp);
	cr_assert(ne(ptr, its, NULL));
	cr_assert(tree_find_place(&at, its, sp));
	base = at.current;
	for (int i = 0; i < CALLS; i++) {
		nodes[i].function = 0x100u + (unsigned)i;
		nodes[i].parent = (uint64_t)(i ? &nodes[i - 1] : base);
		/* The flags do not belong to the frame. */
		nodes[i].frame = (sp - 0x100 * (unsigned)i - at.stack->low) |
				 FRAME_LEFT_OUT;
	}
	for (int i = 0; i < CALLS; i++) {
		tree_hot.current = its->current = &nodes[CALLS - 1];
		cr_expect(eq(ptr,
			     tree_find_caller(&at, sp - 0x100 * (unsigned)i),
			     &nodes[i]));
		cr_expect(
			eq(ptr,
			   tree_find_caller(&at, sp + 8 - 0x100 * (unsigned)i),
			   i ? &nodes[i - 1] : base));
		cr_expect(ne(u64, nodes[CALLS - 1].frame, 0));
	}
	/* A call that begins at @sp is not above it, but it is open. */
	for (int i = 0; i < CALLS; i++) {
		uintptr_t of_call = sp - 0x100 * (unsigned)i;

		cr_expect(eq(ptr, tree_innermost(its, of_call, &frame),
			     &nodes[i]));
		cr_expect(eq(u64, frame, of_call));
		cr_expect(eq(ptr, tree_innermost(its, of_call + 8, &frame),
			     i ? &nodes[i - 1] : base));
		cr_expect(eq(u64, frame, i ? of_call + 0x100 : 0));
	}
	for (int i = CALLS - 1; i > 0; i--) {
		nodes[i].frame = 0;
		tree_hot.current = its->current = &nodes[CALLS - 1];
		cr_expect(eq(ptr, tree_find_caller(&at, sp + 64),
			     &nodes[CALLS - 1]));
	}
}

/* Without a stack pointer of that thread, the latest call counts whose frame is known. */
Test(stacks, the_innermost_call_of_another_thread_has_a_frame)
{
	uintptr_t frame;

	for (int i = 1; i < CALLS; i++) {
		open_calls();
		for (int j = i + 1; j < CALLS; j++)
			nodes[j].frame = 0;
		tree.stack = &stack;
		tree.current = &nodes[CALLS - 1];
		cr_expect(eq(ptr, tree_innermost(&tree, 0, &frame), &nodes[i]));
		cr_expect(eq(u64, frame, stack.low + 0x900 - i * 0x100));
	}
}
