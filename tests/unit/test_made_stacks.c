/*
 * The stacks of coroutines: hooks/path/made_stacks.c.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "../../hooks/path/made_stacks.c"

#define ONE   ((const struct tree *)0x1000)
#define OTHER ((const struct tree *)0x2000)

Test(made_stacks, a_stack_holds_its_addresses)
{
	struct made_stack *stack = made_stacks_note(0x10000, 0x20000);

	cr_assert(ne(ptr, stack, NULL));
	cr_expect(eq(ptr, made_stacks_find(0x10000), NULL));
	cr_expect(eq(ptr, made_stacks_find(0x10001), stack));
	cr_expect(eq(ptr, made_stacks_find(0x20000), stack));
	cr_expect(eq(ptr, made_stacks_find(0x20001), NULL));
}

Test(made_stacks, a_new_coroutine_ends_those_on_its_memory)
{
	struct made_stack *low = made_stacks_note(0x10000, 0x20000);
	struct made_stack *high = made_stacks_note(0x20000, 0x30000);
	struct made_stack *both;
	uint32_t changes[] = { made_stacks_take(low, ONE),
			       made_stacks_take(high, ONE) };

	cr_expect(not(made_stacks_has_changed(low, ONE, changes[0])));
	cr_expect(eq(ptr, made_stacks_note(0x10000, 0x20000), low));
	cr_expect(made_stacks_has_changed(low, ONE, changes[0]));
	cr_expect(not(made_stacks_has_changed(high, ONE, changes[1])));
	both = made_stacks_note(0x18000, 0x28000);
	cr_expect(ne(ptr, both, low));
	cr_expect(ne(ptr, both, high));
	cr_expect(made_stacks_has_changed(high, ONE, changes[1]));
	cr_expect(eq(ptr, made_stacks_find(0x19000), both), "the last one");
}

Test(made_stacks, a_coroutine_that_moves_has_changed)
{
	struct made_stack *stack = made_stacks_note(0x10000, 0x20000);
	uint32_t changes = made_stacks_take(stack, ONE), others;

	cr_expect(eq(u32, made_stacks_take(stack, ONE), changes));
	others = made_stacks_take(stack, OTHER);
	cr_expect(made_stacks_has_changed(stack, ONE, changes));
	cr_expect(not(made_stacks_has_changed(stack, OTHER, others)));
	made_stacks_take(stack, ONE);
	cr_expect(made_stacks_has_changed(stack, ONE, changes),
		  "it has been elsewhere meanwhile");
	cr_expect(made_stacks_has_changed(stack, OTHER, others));
}

Test(made_stacks, there_are_4096_at_most)
{
	for (uintptr_t i = 1; i <= STACKS_MAX; i++)
		cr_assert(ne(ptr, made_stacks_note(i << 16, (i + 1) << 16),
			     NULL));
	for (uintptr_t i = STACKS_MAX + 1; i < STACKS_MAX + 10; i++)
		cr_assert(eq(ptr, made_stacks_note(i << 16, (i + 1) << 16),
			     NULL));
	cr_expect(ne(ptr, made_stacks_note(1 << 16, 2 << 16), NULL),
		  "memory that is used again");
	cr_expect(eq(ptr, made_stacks_find((STACKS_MAX + 5) << 16), NULL));
	cr_expect(eq(ptr, made_stacks_find((STACKS_MAX << 16) + 1),
		     &stacks[STACKS_MAX - 1]));
}
