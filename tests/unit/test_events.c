/*
 * Profilers and their callbacks, during and after the start of shim.
 */
#include "runtime/events.h"
#include "runtime/state.h"
#include "runtime/thread.h"

#include <shim/allocations.h>
#include <shim/contexts.h>
#include <shim/coverage.h>
#include <shim/info.h>
#include <shim/locks.h>
#include <shim/sampling.h>

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <pthread.h>
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

/* A function that a module calls may be the first that needs it. */
Test(events, a_handle_of_shim_belongs_to_no_module)
{
	struct shim_profiler_handle *handle;
	struct thread *self;
	static int module;

	setenv("SHIM_DISABLE", "1", 1);
	state_start();
	self = thread_get();
	self->module = (struct module *)(void *)&module;
	handle = shim_profiler_create(NULL);
	cr_assert(handle != NULL);
	cr_expect(eq(ptr, (void *)handle->module, &module));
	cr_expect(not(handle->builtin));
	handle = handle_create(NULL);
	cr_assert(handle != NULL);
	cr_expect(eq(ptr, (void *)handle->module, NULL));
	cr_expect(handle->builtin);
	cr_expect(not(handle->waits));
	self->module = NULL;
}

Test(events, functions_that_enable_want_a_handle)
{
	enum shim_result (*const enable[])(struct shim_profiler_handle *) = {
		shim_profiler_enable_coverage,
		shim_profiler_enable_call_context_introspection,
		shim_profiler_enable_symbols,
		shim_profiler_enable_values,
		shim_profiler_enable_sampling,
		shim_profiler_enable_allocations,
		shim_profiler_enable_locks,
	};
	struct shim_profiler_handle *handle = shim_profiler_create(NULL);
	char none[64];

	for (size_t i = 0; i < sizeof(enable) / sizeof(*enable); i++) {
		cr_expect(eq(int, enable[i](NULL), SHIM_E_INVALIDARG));
		cr_expect(eq(
			int,
			enable[i]((struct shim_profiler_handle *)(void *)none),
			SHIM_E_INVALIDARG));
	}
	for (size_t i = 0; i < 4; i++)
		cr_expect(eq(int, enable[i](handle), SHIM_OK));
}

Test(events, hooks_want_a_handle_and_one_hook_at_least)
{
	struct shim_profiler_handle *handle = shim_profiler_create(NULL);

	cr_expect(eq(int,
		     shim_profiler_set_enter_leave_function_hooks3(NULL, hook,
								   hook, NULL),
		     SHIM_E_INVALIDARG));
	cr_expect(eq(int,
		     shim_profiler_set_enter_leave_function_hooks3(handle, NULL,
								   NULL, NULL),
		     SHIM_E_INVALIDARG));
	cr_expect(eq(int,
		     shim_profiler_set_enter_leave_function_hooks3(handle, hook,
								   NULL, NULL),
		     SHIM_OK));
	cr_expect(eq(int,
		     shim_profiler_set_enter_leave_function_hooks3(handle, NULL,
								   hook, NULL),
		     SHIM_OK));
	cr_expect(handle->fast[0] == NULL);
	cr_expect(handle->fast[1] == hook);
}

Test(events, nothing_can_be_made_after_the_start)
{
	struct shim_profiler_handle *handle = shim_profiler_create(NULL);

	setenv("SHIM_DIR", "/nonexistent", 1);
	state_start();
	state_begin_main();
	cr_assert(eq(int, state_get(), STATE_OFF));
	cr_expect(shim_profiler_create(NULL) == NULL);
	cr_expect(eq(int,
		     shim_profiler_set_enter_leave_function_hooks3(handle, hook,
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
	struct shim_profiler_handle *handles[3];

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

/* Row P-13. */
Test(events, nobody_asks_and_nothing_is_looked_at)
{
	shim_image looked = 0;

	shim_profiler_create(NULL);
	RAISE(image_loaded, ++looked);
	cr_expect(eq(u64, looked, 0));
}

static void nobody(void)
{
}

static void set_all(struct shim_profiler_handle *handle, void (*callback)(void))
{
#define SHIM_DEFINE_EVENT(name, context, flag, parameters) \
	shim_profiler_on_##name(handle, (shim_##name##_callback)callback);
#include <shim/events.def>
#undef SHIM_DEFINE_EVENT
}

static bool is_counted(uint32_t wanted)
{
	bool same = true;

#define SHIM_DEFINE_EVENT(name, context, flag, parameters) \
	same &= events_counts.name == wanted;
#include <shim/events.def>
#undef SHIM_DEFINE_EVENT
	return same;
}

/* Rows M-66, M-67, M-70. */
Test(events, callbacks_are_counted_once_each)
{
	struct shim_profiler_handle *handles[2] = {
		shim_profiler_create(NULL), shim_profiler_create(NULL)
	};

	for (unsigned i = 0; i < 2; i++) {
		set_all(handles[i], nobody);
		set_all(handles[i], nobody);
		cr_expect(is_counted(i + 1));
	}
	set_all(handles[0], NULL);
	set_all(handles[0], NULL);
	cr_expect(is_counted(1));
}

static int cleanups;

static void clean_up(struct shim_profiler *profiler)
{
	(void)profiler;
	/* Row M-22: only the first profiler still has its callbacks. */
	cr_expect(is_counted(0));
	cleanups++;
}

/* Rows M-21, M-22: no profiler removed a callback. */
Test(events, no_callback_is_left_when_cleanup_is_called)
{
	for (int i = 0; i < 3; i++) {
		struct shim_profiler_handle *handle = shim_profiler_create(
			NULL);

		set_all(handle, nobody);
		shim_profiler_set_cleanup_callback(handle, clean_up);
	}
	cr_assert(is_counted(3));
	events_finish();
	cr_expect(eq(int, cleanups, 3));
	events_finish();
	cr_expect(eq(int, cleanups, 3), "once");
}

/* --- inside a callback --- */

static struct shim_profiler_handle *inner, *outer;
static uint32_t states[2];
static int pins[2];

static void quiet(struct shim_profiler *profiler, uintptr_t sp)
{
	(void)profiler;
	(void)sp;
	states[1] = thread_current->state;
	pins[1] += thread_current->pins[outer->number];
}

static void raise_another(struct shim_profiler *profiler)
{
	(void)profiler;
	RAISE(frames_unwound, 0);
	states[0] = thread_current->state;
	pins[0] = thread_current->pins[outer->number];
}

/* Rows P-15, P-18, P-29, P-35: an inner callback restores the state of the
 * outer one. */
Test(events, a_callback_inside_a_callback_leaves_its_state_and_pin)
{
	inner = shim_profiler_create(NULL);
	outer = shim_profiler_create(NULL);
	shim_profiler_on_runtime_initialized(outer, raise_another);
	shim_profiler_on_frames_unwound(inner, quiet);
	shim_profiler_on_frames_unwound(outer, quiet);
	RAISE(runtime_initialized);
	cr_expect(eq(u32, states[0], THREAD_CALLBACK | THREAD_MAY_BLOCK));
	cr_expect(eq(u32, states[1], THREAD_CALLBACK));
	cr_expect(eq(u32, thread_current->state, 0));
	cr_expect(eq(int, pins[0], 1));
	/* Pins: one for its own callback, one for the other profiler's. */
	cr_expect(eq(int, pins[1], 2 + 1));
	cr_expect(eq(int, thread_current->pins[inner->number], 0));
	cr_expect(eq(int, thread_current->pins[outer->number], 0));
	cr_expect(thread_current->guard == NULL);
}

/* --- many threads (row M-68) --- */

#define HAMMERS 8
#define BLOWS	20000

static struct shim_profiler_handle *anvils[2];
static pthread_barrier_t all_there;
static unsigned long heard;
static bool stop;

static void hear(struct shim_profiler *profiler)
{
	(void)profiler;
	__atomic_add_fetch(&heard, 1, __ATOMIC_RELAXED);
}

static unsigned long heard_so_far(void)
{
	return __atomic_load_n(&heard, __ATOMIC_RELAXED);
}

static void *hammer(void *number)
{
	struct shim_profiler_handle *anvil = anvils[(uintptr_t)number % 2];

	pthread_barrier_wait(&all_there);
	for (int i = 0; i < BLOWS || heard_so_far() < 1000; i++) {
		shim_profiler_on_forked(anvil, hear);
		shim_profiler_on_forked(anvil, NULL);
	}
	return NULL;
}

static void *raise_again(void *unused)
{
	pthread_barrier_wait(&all_there);
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		RAISE(forked);
	return unused;
}

Test(events, eight_threads_set_while_eight_raise, .timeout = 60)
{
	pthread_t setters[HAMMERS], raisers[HAMMERS];

	for (int i = 0; i < 2; i++)
		anvils[i] = shim_profiler_create(NULL);
	pthread_barrier_init(&all_there, NULL, 2 * HAMMERS);
	for (uintptr_t i = 0; i < HAMMERS; i++) {
		pthread_create(&setters[i], NULL, hammer, (void *)i);
		pthread_create(&raisers[i], NULL, raise_again, NULL);
	}
	for (int i = 0; i < HAMMERS; i++)
		pthread_join(setters[i], NULL);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (int i = 0; i < HAMMERS; i++)
		pthread_join(raisers[i], NULL);
	cr_expect(heard_so_far() >= 1000);
	cr_expect(eq(u32, events_counts.forked, 0));
	cr_expect(anvils[0]->forked == NULL && anvils[1]->forked == NULL);
	heard = 0;
	RAISE(forked);
	cr_expect(eq(ulong, heard, 0));
	shim_profiler_on_forked(anvils[1], hear);
	cr_expect(eq(u32, events_counts.forked, 1));
	RAISE(forked);
	cr_expect(eq(ulong, heard, 1));
}
