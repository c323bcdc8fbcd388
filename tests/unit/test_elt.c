/*
 * The decision tables of hooks, masks and generations (section 3.2).
 */
#include "dispatch/plan.h"
#include "runtime/events.h"
#include "runtime/state.h"

#include "recording.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <shim/clr.h>
#include <stdlib.h>

#define SLOW_FLAG SHIM_ENABLE_FRAME_INFO

/* In /tmp, so that the recording is not in the current directory. */
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

TestSuite(elt, .init = make_directory, .fini = remove_directory);

/* Section 3.4, rows E-11, M-50, M-75 and Appendix B: layouts and values. */
_Static_assert(sizeof(union shim_function_or_client) == sizeof(void *) &&
		       sizeof(shim_elt_info) == sizeof(void *) &&
		       sizeof(shim_frame_info) == sizeof(void *),
	       "one register each");
_Static_assert(sizeof(struct shim_argument_range) == 16 &&
		       offsetof(struct shim_argument_range, length) == 8,
	       "COR_PRF_FUNCTION_ARGUMENT_RANGE");
_Static_assert(sizeof(struct shim_argument_info) == 24 &&
		       offsetof(struct shim_argument_info, total_size) == 4 &&
		       offsetof(struct shim_argument_info, ranges) == 8,
	       "COR_PRF_FUNCTION_ARGUMENT_INFO");
_Static_assert(SHIM_CALL_INSTRUMENTATION_NONE == 0 &&
		       SHIM_CALL_INSTRUMENTATION_ENTER == 2 &&
		       SHIM_CALL_INSTRUMENTATION_ENTER_CONTEXT == 4 &&
		       SHIM_CALL_INSTRUMENTATION_LEAVE == 8 &&
		       SHIM_CALL_INSTRUMENTATION_LEAVE_CONTEXT == 16 &&
		       SHIM_CALL_INSTRUMENTATION_TAIL_CALL == 32 &&
		       SHIM_CALL_INSTRUMENTATION_EXCEPTION_LEAVE == 64,
	       "MonoProfilerCallInstrumentationFlags");
_Static_assert(SHIM_CLAUSE_FILTER == 1 && SHIM_CLAUSE_CATCH == 2 &&
		       SHIM_CLAUSE_FINALLY == 3,
	       "COR_PRF_CLAUSE_TYPE");
_Static_assert((SHIM_MONITOR_FUNCTION_UNLOADS | SHIM_MONITOR_CLASS_LOADS |
		SHIM_MONITOR_MODULE_LOADS | SHIM_MONITOR_ASSEMBLY_LOADS |
		SHIM_MONITOR_APPDOMAIN_LOADS | SHIM_MONITOR_JIT_COMPILATION |
		SHIM_MONITOR_EXCEPTIONS | SHIM_MONITOR_GC |
		SHIM_MONITOR_OBJECT_ALLOCATED | SHIM_MONITOR_THREADS |
		SHIM_MONITOR_REMOTING | SHIM_MONITOR_CODE_TRANSITIONS |
		SHIM_MONITOR_ENTERLEAVE | SHIM_MONITOR_CCW |
		SHIM_MONITOR_REMOTING_COOKIE | SHIM_MONITOR_REMOTING_ASYNC |
		SHIM_MONITOR_SUSPENDS | SHIM_MONITOR_CACHE_SEARCHES |
		SHIM_ENABLE_REJIT | SHIM_ENABLE_INPROC_DEBUGGING |
		SHIM_ENABLE_JIT_MAPS | SHIM_DISABLE_INLINING |
		SHIM_DISABLE_OPTIMIZATIONS | SHIM_ENABLE_OBJECT_ALLOCATED |
		SHIM_MONITOR_CLR_EXCEPTIONS | SHIM_ENABLE_FUNCTION_ARGS |
		SHIM_ENABLE_FUNCTION_RETVAL | SHIM_ENABLE_FRAME_INFO |
		SHIM_ENABLE_STACK_SNAPSHOT | SHIM_USE_PROFILE_IMAGES |
		SHIM_DISABLE_TRANSPARENCY_CHECKS |
		SHIM_DISABLE_ALL_NGEN_IMAGES) == 0xffffffff,
	       "each bit has a name");
_Static_assert(SHIM_MONITOR_ENTERLEAVE == 0x1000 &&
		       SHIM_MONITOR_ALL == 0x0107ffff &&
		       !(SHIM_MONITOR_IMMUTABLE & SHIM_MONITOR_ENTERLEAVE),
	       "ENTERLEAVE may be changed at any time");

static const uint32_t slow_flags[] = { SHIM_ENABLE_FUNCTION_ARGS,
				       SHIM_ENABLE_FUNCTION_RETVAL,
				       SHIM_ENABLE_FRAME_INFO };

static void fast(union shim_function_or_client function)
{
	(void)function;
}

static void slow(union shim_function_or_client function, shim_elt_info info)
{
	(void)function;
	(void)info;
}

static void hook1(shim_function function)
{
	(void)function;
}

static void enter2(shim_function function, uintptr_t client,
		   shim_frame_info frame, struct shim_argument_info *arguments)
{
	(void)function;
	(void)client;
	(void)frame;
	(void)arguments;
}

static uint32_t subset(int bits)
{
	uint32_t mask = SHIM_MONITOR_ALL;

	for (int i = 0; i < 3; i++)
		if (bits & 1 << i)
			mask |= slow_flags[i];
	return mask;
}

/* Row E-27: 2 setters by 8 subsets of the flags. */
Test(elt, hooks_agree_with_the_flags)
{
	for (int bits = 0; bits < 8; bits++) {
		struct shim_profiler_handle *handle = shim_profiler_create(
			NULL);

		cr_assert(eq(int,
			     shim_profiler_set_event_mask(handle, subset(bits)),
			     SHIM_OK));
		cr_expect(eq(int,
			     shim_profiler_set_enter_leave_function_hooks3(
				     handle, fast, fast, fast),
			     bits ? SHIM_E_INCONSISTENT_WITH_FLAGS : SHIM_OK),
			  "%d", bits);
		handle = shim_profiler_create(NULL);
		shim_profiler_set_event_mask(handle, subset(bits));
		cr_expect(
			eq(int,
			   shim_profiler_set_enter_leave_function_hooks3_with_info(
				   handle, slow, slow, slow),
			   bits ? SHIM_OK : SHIM_E_INCONSISTENT_WITH_FLAGS),
			"%d", bits);
	}
}

/* Row E-25. */
Test(elt, at_least_one_hook_is_wanted)
{
	struct shim_profiler_handle *handle = shim_profiler_create(NULL);

	for (int bits = 0; bits < 8; bits++)
		cr_expect(eq(int,
			     shim_profiler_set_enter_leave_function_hooks3(
				     handle, bits & 1 ? fast : NULL,
				     bits & 2 ? fast : NULL,
				     bits & 4 ? fast : NULL),
			     bits ? SHIM_OK : SHIM_E_INVALIDARG),
			  "%d", bits);
	cr_expect(eq(int,
		     shim_profiler_set_enter_leave_function_hooks(handle, NULL,
								  NULL, NULL),
		     SHIM_E_INVALIDARG));
	cr_expect(eq(int,
		     shim_profiler_set_enter_leave_function_hooks2(handle, NULL,
								   NULL, NULL),
		     SHIM_E_INVALIDARG));
}

/* Row E-28. */
Test(elt, hooks_may_be_set_before_they_are_wanted)
{
	struct shim_profiler_handle *handle = shim_profiler_create(NULL);

	shim_profiler_set_event_mask(handle, SHIM_MONITOR_NONE);
	cr_expect(eq(int,
		     shim_profiler_set_enter_leave_function_hooks3(handle, fast,
								   fast, fast),
		     SHIM_OK));
	cr_expect(handle->fast[0] == fast);
	handle = shim_profiler_create(NULL);
	shim_profiler_set_event_mask(handle, SLOW_FLAG);
	cr_expect(eq(int,
		     shim_profiler_set_enter_leave_function_hooks3_with_info(
			     handle, slow, NULL, NULL),
		     SHIM_OK));
	cr_expect(handle->slow[0] == slow);
}

/* Row E-24. */
Test(elt, the_last_call_wins_as_a_whole)
{
	struct shim_profiler_handle *handle = shim_profiler_create(NULL);

	shim_profiler_set_enter_leave_function_hooks3(handle, fast, fast, fast);
	shim_profiler_set_enter_leave_function_hooks3(handle, NULL, fast, NULL);
	cr_expect(handle->fast[0] == NULL);
	cr_expect(handle->fast[1] == fast);
	cr_expect(handle->fast[2] == NULL);
}

static int generation(const struct shim_profiler_handle *handle)
{
	return handle->fast[0] ? 3 :
	       handle->elt2[0] ? 2 :
	       handle->elt1[0] ? 1 :
				 0;
}

/* Row E-32: in every order, all say yes, and the newest stays. */
Test(elt, the_newest_generation_wins)
{
	static const int orders[][3] = {
		{ 1, 2, 3 }, { 1, 3, 2 }, { 2, 1, 3 },
		{ 2, 3, 1 }, { 3, 1, 2 }, { 3, 2, 1 }
	};

	for (int i = 0; i < 6; i++) {
		struct shim_profiler_handle *handle = shim_profiler_create(
			NULL);
		int newest = 0;

		for (int j = 0; j < 3; j++) {
			enum shim_result r = SHIM_E_FAIL;

			if (orders[i][j] == 1)
				r = shim_profiler_set_enter_leave_function_hooks(
					handle, hook1, NULL, NULL);
			if (orders[i][j] == 2)
				r = shim_profiler_set_enter_leave_function_hooks2(
					handle, enter2, NULL, NULL);
			if (orders[i][j] == 3)
				r = shim_profiler_set_enter_leave_function_hooks3(
					handle, fast, NULL, NULL);
			if (orders[i][j] > newest)
				newest = orders[i][j];
			cr_expect(eq(int, r, SHIM_OK));
			cr_expect(eq(int, generation(handle), newest));
		}
	}
}

/* Row E-30. */
Test(elt, the_mask_may_not_contradict_hooks)
{
	static const struct {
		bool is_slow;
		uint32_t mask;
		enum shim_result want;
	} cases[] = {
		{ false, SHIM_MONITOR_ENTERLEAVE, SHIM_OK },
		{ false, SHIM_MONITOR_ENTERLEAVE | SHIM_ENABLE_FUNCTION_ARGS,
		  SHIM_E_INCONSISTENT_WITH_FLAGS },
		{ false, SHIM_MONITOR_THREADS, SHIM_E_INCONSISTENT_WITH_FLAGS },
		{ true, SHIM_MONITOR_ENTERLEAVE | SLOW_FLAG, SHIM_OK },
		{ true, SHIM_MONITOR_ENTERLEAVE | SHIM_ENABLE_FUNCTION_RETVAL,
		  SHIM_OK },
		{ true, SHIM_MONITOR_ENTERLEAVE,
		  SHIM_E_INCONSISTENT_WITH_FLAGS },
		{ true, SLOW_FLAG, SHIM_E_INCONSISTENT_WITH_FLAGS },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct shim_profiler_handle *handle = shim_profiler_create(
			NULL);

		if (cases[i].is_slow) {
			shim_profiler_set_event_mask(
				handle, SHIM_MONITOR_ENTERLEAVE | SLOW_FLAG);
			shim_profiler_set_enter_leave_function_hooks3_with_info(
				handle, slow, slow, NULL);
		} else {
			shim_profiler_set_enter_leave_function_hooks3(
				handle, fast, fast, NULL);
		}
		cr_expect(
			eq(int,
			   shim_profiler_set_event_mask(handle, cases[i].mask),
			   cases[i].want),
			"case %zu", i);
	}
}

Test(elt, a_mask_is_what_was_set)
{
	struct shim_profiler_handle *handle = shim_profiler_create(NULL);
	uint32_t low = 1, high = 1;

	cr_assert(eq(int, shim_get_event_mask(handle, &low), SHIM_OK));
	cr_expect(eq(u32, low, SHIM_MONITOR_ALL & ~SHIM_MONITOR_IMMUTABLE));
	shim_profiler_set_event_mask2(handle, SHIM_MONITOR_THREADS,
				      SHIM_HIGH_BASIC_GC);
	shim_get_event_mask2(handle, &low, &high);
	cr_expect(eq(u32, low, SHIM_MONITOR_THREADS));
	cr_expect(eq(u32, high, SHIM_HIGH_BASIC_GC));
	shim_profiler_set_event_mask(handle, SHIM_MONITOR_THREADS);
	shim_get_event_mask2(handle, NULL, &high);
	cr_expect(eq(u32, high, 0), "the high word is cleared");
	cr_expect(eq(int, shim_profiler_set_event_mask2(handle, 0, 0x200),
		     SHIM_E_INVALIDARG));
	cr_expect(
		eq(int, shim_get_event_mask(handle, NULL), SHIM_E_INVALIDARG));
	cr_expect(eq(int, shim_get_event_mask(NULL, &low), SHIM_E_INVALIDARG));
	cr_expect(
		eq(int,
		   shim_get_event_mask(
			   (struct shim_profiler_handle *)((char *)handle + 8),
			   &low),
		   SHIM_E_INVALIDARG));
}

/* Rows E-23, E-28, 3.2: the same calls after initialization. */
Test(elt, afterwards_only_what_is_mutable_may_change)
{
	struct shim_profiler_handle *handle = shim_profiler_create(NULL);

	shim_profiler_set_enter_leave_function_hooks3(handle, fast, fast, NULL);
	state_start();
	state_begin_main();
	cr_expect(eq(int,
		     shim_profiler_set_event_mask(handle, SHIM_MONITOR_THREADS),
		     SHIM_OK));
	cr_expect(eq(
		int,
		shim_profiler_set_event_mask(handle, SHIM_MONITOR_ENTERLEAVE),
		SHIM_OK));
	for (uint32_t bit = 1; bit; bit <<= 1)
		cr_expect(
			eq(int,
			   shim_profiler_set_event_mask(
				   handle, SHIM_MONITOR_ENTERLEAVE | bit),
			   SHIM_MONITOR_IMMUTABLE &bit ? SHIM_E_FAIL : SHIM_OK),
			"%#x", bit);
	cr_expect(eq(int,
		     shim_profiler_set_enter_leave_function_hooks(handle, hook1,
								  NULL, NULL),
		     SHIM_E_CALL_ONLY_FROM_INIT));
	cr_expect(eq(int,
		     shim_profiler_set_enter_leave_function_hooks3(NULL, NULL,
								   NULL, NULL),
		     SHIM_E_CALL_ONLY_FROM_INIT),
		  "before the arguments (row P-56)");
}

static void again(union shim_function_or_client function)
{
	(void)function;
}

Test(elt, restart_hooks_stand_in_once_calls_were_off)
{
	struct shim_profiler_handle *handle = shim_profiler_create(NULL);

	shim_profiler_set_enter_leave_function_hooks3(handle, fast, fast, fast);
	cr_expect(eq(int, shim_profiler_set_restart_hooks(handle, again, NULL),
		     SHIM_E_INVALIDARG));
	cr_expect(eq(int, shim_profiler_set_restart_hooks(NULL, again, again),
		     SHIM_E_INVALIDARG));
	cr_expect(eq(int, shim_profiler_set_restart_hooks(handle, again, again),
		     SHIM_OK));
	state_start();
	shim_hooks_disable();
	cr_expect(handle->fast[0] == fast);
	shim_hooks_enable();
	cr_expect(handle->fast[0] == again);
	cr_expect(handle->fast[1] == again);
	cr_expect(handle->fast[2] == fast);
	state_begin_main();
	cr_expect(eq(int, shim_profiler_set_restart_hooks(handle, again, again),
		     SHIM_E_CALL_ONLY_FROM_INIT));
}

static void asking(shim_function function, const void *site, uintptr_t frame,
		   shim_elt_info info)
{
	(void)function;
	(void)site;
	(void)frame;
	(void)info;
}

Test(elt, asking_hooks_are_set_like_the_others)
{
	struct shim_profiler_handle *handle = shim_profiler_create(NULL);

	cr_expect(eq(int, shim_profiler_set_deferred_hook(NULL, asking),
		     SHIM_E_INVALIDARG));
	cr_expect(eq(int, shim_profiler_set_deferred_hook(handle, asking),
		     SHIM_OK));
	cr_expect(handle->deferred == asking);
	cr_expect(eq(int, shim_profiler_set_deferred_hook(handle, NULL),
		     SHIM_OK));
	cr_expect(handle->deferred == NULL);
	state_start();
	state_begin_main();
	cr_expect(eq(int, shim_profiler_set_deferred_hook(handle, asking),
		     SHIM_E_CALL_ONLY_FROM_INIT));
}

/* Row P-56: one call with every possible error.  The errors are corrected one
 * by one, and the results must come in the order of section 3.2. */
Test(elt, the_first_fault_is_told)
{
	struct shim_profiler_handle *leaving = shim_profiler_create(NULL);
	struct shim_profiler_handle *handle = shim_profiler_create(NULL);

	shim_profiler_set_event_mask(handle, SHIM_MONITOR_ALL | SLOW_FLAG);
	cr_expect(eq(int,
		     shim_profiler_set_enter_leave_function_hooks3(NULL, NULL,
								   NULL, NULL),
		     SHIM_E_INVALIDARG));
	cr_expect(eq(int,
		     shim_profiler_set_enter_leave_function_hooks3(handle, NULL,
								   NULL, NULL),
		     SHIM_E_INVALIDARG),
		  "before the flags");
	cr_expect(eq(int,
		     shim_profiler_set_enter_leave_function_hooks3(handle, fast,
								   NULL, NULL),
		     SHIM_E_INCONSISTENT_WITH_FLAGS));
	cr_expect(handle->fast[0] == NULL, "nothing changed");

	state_start();
	state_begin_main();
	cr_expect(eq(int,
		     shim_profiler_set_enter_leave_function_hooks3(handle, NULL,
								   NULL, NULL),
		     SHIM_E_CALL_ONLY_FROM_INIT));
	cr_expect(eq(int,
		     shim_profiler_set_enter_leave_function_hooks3(handle, fast,
								   fast, fast),
		     SHIM_E_CALL_ONLY_FROM_INIT),
		  "before the flags");
	cr_assert(handle_retire(leaving));
	cr_expect(eq(int,
		     shim_profiler_set_enter_leave_function_hooks3(
			     leaving, NULL, NULL, NULL),
		     SHIM_E_PROFILER_DETACHING));
	cr_expect(eq(int,
		     shim_profiler_set_enter_leave_function_hooks3_with_info(
			     leaving, NULL, NULL, NULL),
		     SHIM_E_PROFILER_DETACHING));
	cr_expect(eq(int,
		     shim_profiler_set_enter_leave_function_hooks2(
			     leaving, NULL, NULL, NULL),
		     SHIM_E_PROFILER_DETACHING));
	cr_expect(eq(int,
		     shim_profiler_set_enter_leave_function_hooks(leaving, NULL,
								  NULL, NULL),
		     SHIM_E_PROFILER_DETACHING));
	cr_expect(eq(int, shim_profiler_set_event_mask2(leaving, ~0u, ~0u),
		     SHIM_E_PROFILER_DETACHING));
	cr_expect(eq(int, shim_get_event_mask(leaving, NULL),
		     SHIM_E_PROFILER_DETACHING));
	cr_expect(eq(int, shim_profiler_destroy(leaving),
		     SHIM_E_PROFILER_DETACHING));
}

/* Step 6: the values that are stored, and those that are cleared. */
Test(elt, newer_hooks_take_the_place_of_older_ones)
{
	for (int is_slow = 0; is_slow < 2; is_slow++) {
		struct shim_profiler_handle *handle = shim_profiler_create(
			NULL);
		enum shim_result r;

		shim_profiler_set_enter_leave_function_hooks(handle, hook1,
							     hook1, hook1);
		cr_expect(handle->elt1[0] && handle->elt1[1] &&
			  handle->elt1[2]);
		shim_profiler_set_enter_leave_function_hooks2(handle, enter2,
							      NULL, NULL);
		cr_expect(handle->elt2[0] && !handle->elt1[0] &&
			  !handle->elt1[1] && !handle->elt1[2]);
		if (is_slow) {
			shim_profiler_set_event_mask(
				handle, SHIM_MONITOR_ENTERLEAVE | SLOW_FLAG);
			r = shim_profiler_set_enter_leave_function_hooks3_with_info(
				handle, NULL, slow, NULL);
		} else {
			r = shim_profiler_set_enter_leave_function_hooks3(
				handle, NULL, fast, NULL);
		}
		cr_expect(eq(int, r, SHIM_OK));
		cr_expect(handle->elt2[0] == NULL && handle->elt1[0] == NULL);
		for (int i = 0; i < 3; i++) {
			cr_expect(handle->slow[i] ==
				  (is_slow && i == 1 ? slow : NULL));
			cr_expect(handle->fast[i] ==
				  (!is_slow && i == 1 ? fast : NULL));
		}
		/* Hooks of the same kind replace the old ones.  Hooks of the
		 * other kind are refused and change nothing: the flags do not
		 * allow both kinds. */
		if (is_slow)
			r = shim_profiler_set_enter_leave_function_hooks3(
				handle, fast, fast, fast);
		else
			r = shim_profiler_set_enter_leave_function_hooks3_with_info(
				handle, slow, slow, slow);
		cr_expect(eq(int, r, SHIM_E_INCONSISTENT_WITH_FLAGS));
		cr_expect(handle->slow[0] == NULL && handle->fast[0] == NULL);
	}
}
