/*
 * When a detached profiler is freed that a thread still runs: module/detach.c.
 */
#include "fake_sys.h"
#include "module/detach.h"
#include "module/module.h"
#include "os/sys.h"
#include "runtime/events.h"
#include "runtime/runtime_threads.h"
#include "runtime/state.h"
#include "runtime/thread.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <pthread.h>
#include <stdlib.h>

#define WAITS 24

/* The profilers of these tests belong to no module. */
void module_handle_goes(struct shim_profiler_handle *handle)
{
	(void)handle;
}

void module_handle_went(struct module *module)
{
	(void)module;
}

void module_sweep(void)
{
}

static void (*thread_code)(void *);

static void *run_thread(void *unused)
{
	thread_code(unused);
	return NULL;
}

int runtime_thread_start(void (*call)(void *argument), void *argument,
			 size_t stack_size, struct module *module,
			 const char *name)
{
	pthread_t thread;

	(void)stack_size, (void)module, (void)name;
	thread_code = call;
	return -pthread_create(&thread, NULL, run_thread, argument);
}

static unsigned succeeded;

static void on_succeeded(struct shim_profiler *profiler)
{
	(void)profiler;
	__atomic_add_fetch(&succeeded, 1, __ATOMIC_RELAXED);
}

/* Detaches a profiler that a thread runs during the first WAITS pauses, and stores
 * these. */
static void detach(uint32_t expected_ms, uint32_t *waits)
{
	struct shim_profiler_handle *handle;
	struct thread *self;

	setenv("SHIM_DISABLE", "1", 1);
	state_start();
	self = thread_get();
	handle = shim_profiler_create(NULL);
	shim_profiler_on_detach_succeeded(handle, on_succeeded);
	__atomic_store_n(&self->pins[handle->number], 1, __ATOMIC_RELEASE);
	fake_waits(waits, WAITS);
	cr_assert(eq(int, shim_profiler_detach(handle, expected_ms), SHIM_OK));
	while (fake_waited() < WAITS)
		sys_yield();
	cr_expect(eq(u32, succeeded, 0));
	cr_expect(detach_is_pending(NULL));
	__atomic_store_n(&self->pins[handle->number], 0, __ATOMIC_RELEASE);
	while (detach_is_pending(NULL))
		sys_yield();
	cr_expect(eq(u32, succeeded, 1));
}

/* Row P-68. */
Test(detach, pauses_between_checks_double_up_to_twice_the_expected_time,
     .timeout = 20)
{
	uint32_t waits[WAITS] = { 0 };

	detach(100, waits);
	for (unsigned i = 0; i < WAITS; i++)
		cr_expect(eq(u32, waits[i], i < 8 ? 1u << i : 200), "%u", i);
}

Test(detach, five_seconds_are_expected_unless_told_otherwise, .timeout = 20)
{
	uint32_t waits[WAITS] = { 0 };

	detach(0, waits);
	for (unsigned i = 0; i < WAITS; i++)
		cr_expect(eq(u32, waits[i], i < 14 ? 1u << i : 10000), "%u", i);
}

Test(detach, no_pause_is_longer_than_ten_minutes, .timeout = 20)
{
	uint32_t waits[WAITS] = { 0 };

	detach(UINT32_MAX, waits);
	for (unsigned i = 0; i < WAITS; i++)
		cr_expect(eq(u32, waits[i], i < 20 ? 1u << i : 600000), "%u",
			  i);
}
