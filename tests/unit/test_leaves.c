/*
 * The sorting of leaves by the code behind them, which the test decides.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "dispatch/leaves.c"

#define FUNCTION 0x1000u
#define FRAME	 0x7000u
#define RETURN	 0x401234u

static enum code_leave kind;
static bool is_landing, is_forgotten;
__thread uint8_t landings_count;

void leaves_sort(void)
{
}

void table_nothing(void)
{
}

enum code_leave code_leave_kind(const struct plan_call *call, uintptr_t *target)
{
	cr_expect(eq(int, (int)call->event, PLAN_LEAVE));
	cr_expect(eq(u64, call->function, FUNCTION));
	cr_expect(eq(u64, call->frame, FRAME));
	*target = 0;
	if (is_forgotten)
		clear_entries();
	return kind;
}

bool landings_has(uintptr_t frame)
{
	cr_expect(eq(u64, frame, FRAME));
	return is_landing;
}

static char leave, tail_call, unwinding;

static void *decide(enum code_leave of)
{
	kind = of;
	return leaves_decide(FUNCTION, NULL, FRAME, RETURN);
}

/* The only entry; 0: there is none. */
static uint64_t entry(void)
{
	uint64_t found = 0;

	for (size_t i = 0; i < sizeof(leaves_front) / sizeof(*leaves_front);
	     i++)
		if (leaves_front[i]) {
			cr_expect(zero(u64, found));
			found = leaves_front[i];
		}
	return found;
}

static void set_hooks(void)
{
	const struct leaves_hooks hooks = { &leave, &tail_call, &unwinding };

	cr_assert(eq(ptr, leaves_sort_to(&hooks), (void *)leaves_sort));
}

Test(leaves, the_code_behind_a_leave_chooses_the_hook, .init = set_hooks)
{
	cr_expect(eq(ptr, decide(CODE_TAIL_CALLS), &tail_call));
	cr_expect(eq(ptr, decide(CODE_UNWINDS), &unwinding));
	cr_expect(zero(u64, entry()));
	cr_expect(eq(ptr, decide(CODE_RETURNS), &leave));
	cr_expect(eq(u64, entry(), RETURN));
	clear_entries();
	cr_expect(zero(u64, entry()));
	cr_expect(eq(ptr, decide(CODE_DEPENDS), &leave));
	cr_expect(eq(u64, entry(), RETURN | UNLESS_LANDED));
}

/* A function that has caught an exception returns although its frame has a landing. */
Test(leaves, a_landing_matters_only_where_the_code_does_not_decide,
     .init = set_hooks)
{
	is_landing = true;
	landings_count = 1;
	cr_expect(eq(ptr, decide(CODE_RETURNS), &leave));
	cr_expect(eq(u64, entry(), RETURN));
	cr_expect(eq(ptr, decide(CODE_TAIL_CALLS), &tail_call));
	cr_expect(eq(ptr, decide(CODE_DEPENDS), &unwinding));
	landings_count = 0;
	cr_expect(eq(ptr, decide(CODE_DEPENDS), &leave));
	landings_count = 1;
	is_landing = false;
	cr_expect(eq(ptr, decide(CODE_DEPENDS), &leave));
}

Test(leaves, code_that_is_forgotten_meanwhile_has_no_entry, .init = set_hooks)
{
	is_forgotten = true;
	cr_expect(eq(ptr, decide(CODE_RETURNS), &leave));
	cr_expect(zero(u64, entry()));
	cr_expect(eq(ptr, decide(CODE_DEPENDS), &leave));
	cr_expect(zero(u64, entry()));
}

Test(leaves, a_hook_that_no_profiler_has_does_nothing)
{
	leaves_sort_to(&(struct leaves_hooks){ 0 });
	cr_expect(eq(ptr, decide(CODE_RETURNS), (void *)table_nothing));
	cr_expect(eq(ptr, decide(CODE_TAIL_CALLS), (void *)table_nothing));
	cr_expect(eq(ptr, decide(CODE_UNWINDS), (void *)table_nothing));
}
