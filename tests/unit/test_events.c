/*
 * Profilers and their hooks, while shim starts and later.
 */
#include "events.h"
#include "state.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>

static void hook(union shim_function_or_client function)
{
	(void)function;
}

Test(events, a_handle_is_made_while_there_is_room)
{
	for (int i = 0; i < SHIM_PROFILERS_MAX; i++)
		cr_assert(shim_profiler_create(NULL) != NULL);
	cr_assert(shim_profiler_create(NULL) == NULL);
}

Test(events, hooks_want_a_handle_and_one_hook_at_least)
{
	struct shim_handle *handle = shim_profiler_create(NULL);

	cr_expect(eq(int, shim_set_enter_leave_function_hooks3(NULL, hook, hook,
							       NULL),
		     SHIM_E_INVALIDARG));
	cr_expect(eq(int, shim_set_enter_leave_function_hooks3(handle, NULL,
							       NULL, NULL),
		     SHIM_E_INVALIDARG));
	cr_expect(eq(int, shim_set_enter_leave_function_hooks3(handle, hook,
							       NULL, NULL),
		     SHIM_OK));
	cr_expect(eq(int, shim_set_enter_leave_function_hooks3(handle, NULL,
							       hook, NULL),
		     SHIM_OK));
	cr_expect(handle->fast[0] == NULL);
	cr_expect(handle->fast[1] == hook);
}

Test(events, nothing_can_be_made_after_the_start)
{
	struct shim_handle *handle = shim_profiler_create(NULL);

	setenv("SHIM_DIR", "/nonexistent", 1);
	state_start();
	state_begin_main();
	cr_assert(eq(int, state_get(), STATE_OFF));
	cr_expect(shim_profiler_create(NULL) == NULL);
	cr_expect(eq(int, shim_set_enter_leave_function_hooks3(handle, hook,
							       hook, NULL),
		     SHIM_E_CALL_ONLY_FROM_INIT));
}

static int order[4], calls;

static void first_forked(struct shim_profiler *profiler)
{
	order[calls++] = (int)(long)profiler;
}

Test(events, an_event_goes_to_all_who_asked_newest_first)
{
	struct shim_handle *handles[3];

	for (long i = 0; i < 3; i++)
		handles[i] = shim_profiler_create((void *)(i + 1));
	shim_profiler_on_forked(handles[0], first_forked);
	shim_profiler_on_forked(handles[2], first_forked);
	RAISE(forked);
	cr_assert(eq(int, calls, 2));
	cr_assert(eq(int, order[0], 3));
	cr_assert(eq(int, order[1], 1));
	shim_profiler_on_forked(handles[2], NULL);
	RAISE(forked);
	cr_assert(eq(int, calls, 3));
	cr_assert(eq(int, order[2], 1));
}
