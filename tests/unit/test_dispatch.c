/*
 * Calls that reach the plan with the program's registers: dispatch/dispatch.c.
 */
#include "arch.h"
#include "dispatch/plan.h"
#include "runtime/events.h"
#include "runtime/state.h"
#include "runtime/thread.h"

#include "recording.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <shim/hooks.h>
#include <stdlib.h>

#if defined(__x86_64__) && !defined(ARCH_GENERIC)
static char directory[] = "/tmp/shim-unit.XXXXXX";

static void make_directory(void)
{
	cr_assert(mkdtemp(directory) != NULL);
	setenv("SHIM_DIR", directory, 1);
}

static void remove_directory(void)
{
	recording_remove(directory);
}

TestSuite(dispatch, .init = make_directory, .fini = remove_directory);

void frame_run(struct arch_frame *frame);

static unsigned entered, left, tail_called;
static shim_function last_target = 77;

static void on_enter(struct shim_profiler *profiler, shim_function function,
		     struct shim_call_context *context)
{
	(void)profiler, (void)context;
	cr_expect(eq(u64, function, (uintptr_t)abort));
	entered++;
}

static void on_leave(struct shim_profiler *profiler, shim_function function,
		     struct shim_call_context *context)
{
	(void)profiler, (void)context;
	cr_expect(eq(u64, function, (uintptr_t)abort));
	left++;
}

static void on_tail_call(struct shim_profiler *profiler, shim_function function,
			 shim_function target)
{
	(void)profiler;
	cr_expect(eq(u64, function, (uintptr_t)abort));
	last_target = target;
	tail_called++;
}

static enum shim_call_instrumentation_flags
choose(struct shim_profiler *profiler, shim_function function)
{
	(void)profiler, (void)function;
	return SHIM_CALL_INSTRUMENTATION_ENTER |
	       SHIM_CALL_INSTRUMENTATION_LEAVE |
	       SHIM_CALL_INSTRUMENTATION_TAIL_CALL;
}

static void check_tail_call(struct arch_frame *enter, struct arch_frame *leave,
			    unsigned number)
{
	enter->event = PLAN_ENTER;
	frame_run(enter);
	leave->event = PLAN_TAILCALL;
	last_target = 77;
	frame_run(leave);
	cr_expect(eq(u32, entered, number));
	cr_expect(eq(u32, tail_called, number));
	cr_expect(zero(u32, left));
	cr_expect(zero(u64, last_target));
}

/* A mark does not know the target.  It is reached with the stack pointer of the entry, or
 * by a jump with that of the caller. */
Test(dispatch, a_tail_call_that_a_mark_tells_has_no_target)
{
	struct shim_profiler_handle *handle = shim_profiler_create(NULL);
	struct arch_frame frames[2] = {
		{ .function = (uintptr_t)abort, .site = &entered },
		{ .function = (uintptr_t)abort, .site = &entered },
	};

	shim_profiler_set_call_instrumentation_filter_callback(handle, choose);
	shim_profiler_on_method_enter(handle, on_enter);
	shim_profiler_on_method_leave(handle, on_leave);
	shim_profiler_on_method_tail_call(handle, on_tail_call);
	state_start();
	check_tail_call(&frames[0], &frames[0], 1);
	check_tail_call(&frames[0], &frames[1], 2);
}
#endif
