/*
 * Detaches profilers.  shim frees a profiler when no thread runs its code.  A thread of
 * shim checks that from time to time, so no thread of the program waits.
 */
#include "module/detach.h"

#include "module/module.h"
#include "os/sys.h"
#include "runtime/contract.h"
#include "runtime/events.h"
#include "runtime/log.h"
#include "runtime/runtime_threads.h"

#include <shim/banned.h>

#define EXPECTED_MS  5000
#define PAUSE_MAX_MS 600000
/* In bytes.  The thread also runs detach_succeeded, cleanup and the destructors of the
 * module.  Untouched pages of the stack cost nothing. */
#define STACK_SIZE (512u << 10)

struct pending {
	struct shim_profiler_handle *handle; /* NULL: not used */
	uint32_t expected_ms;
	uint32_t pause_ms; /* the next pause */
	uint64_t when_ms;  /* the time of the next check */
};

static struct pending pendings[SHIM_PROFILERS_MAX];
static uint32_t changes; /* counts reasons to check again */
/* pid << 32 | 1 while the thread runs.  In a fork child the pid differs, because the
 * child has no such thread. */
static uint64_t worker;

/* --- one handle --- */

/* The last callback of a profiler that is being detached.  Functions that it calls return
 * SHIM_E_PROFILER_DETACHING, because the guard names the profiler. */
static void call_detach_succeeded(struct shim_profiler_handle *handle)
{
	shim_detach_succeeded_callback callback = handle->detach_succeeded;
	struct guard guard;

	if (!callback || handle->broken)
		return;
	guard_enter_last(&guard, handle, "detach_succeeded");
	guard_call(&guard, (void (*)(void))callback,
		   (uintptr_t)handle->profiler, 0, 0, 0, 0);
}

/* Sets the time of the next check.  The pauses are 1, 2, 4 ... ms, up to twice the
 * expected time (row P-68). */
static void schedule_next_check(struct pending *pending, uint64_t now)
{
	uint64_t longest = 2ull * pending->expected_ms;

	pending->when_ms = now + pending->pause_ms;
	pending->pause_ms *= 2;
	if (pending->pause_ms > longest)
		pending->pause_ms = (uint32_t)longest;
	if (pending->pause_ms > PAUSE_MAX_MS)
		pending->pause_ms = PAUSE_MAX_MS;
}

/* True if the handle was freed. */
static bool free_if_unused(struct pending *pending, uint64_t now)
{
	struct shim_profiler_handle *handle = pending->handle;

	if (now < pending->when_ms)
		return false;
	if (!handle_wait(handle, 0)) {
		schedule_next_check(pending, now);
		return false;
	}
	call_detach_succeeded(handle);
	/* Cleared first: a freed handle may be reused and detached at once. */
	__atomic_store_n(&pending->handle, NULL, __ATOMIC_RELEASE);
	handle_free(handle);
	return true;
}

/* --- the thread --- */

/* Checks all pending handles.  Returns the milliseconds to sleep; 0 if no handle is
 * pending. */
static uint32_t check_all(void)
{
	uint64_t next = UINT64_MAX, now;

	for (unsigned i = 0; i < SHIM_PROFILERS_MAX; i++) {
		struct pending *pending = &pendings[i];

		if (!__atomic_load_n(&pending->handle, __ATOMIC_ACQUIRE))
			continue;
		now = module_now_ms();
		if (!free_if_unused(pending, now) && pending->when_ms < next)
			next = pending->when_ms;
	}
	/* A module's threads need no check: the end of each raises
	 * module_thread_ended. */
	module_sweep();
	if (next == UINT64_MAX)
		return 0;
	now = module_now_ms();
	return next > now ? (uint32_t)(next - now) : 1;
}

static uint64_t this_process(void)
{
	return (uint64_t)(uint32_t)sys_getpid() << 32 | 1;
}

static void run_checks(void *unused)
{
	uint32_t seen, pause_ms;
	uint64_t self;

	(void)unused;
	for (;;) {
		self = this_process();
		seen = __atomic_load_n(&changes, __ATOMIC_ACQUIRE);
		pause_ms = check_all();
		/* The thread cannot sleep without system calls. */
		if (pause_ms > 0 && sys_is_forbidden())
			sys_park();
		if (pause_ms > 0) {
			sys_wait(&changes, seen, pause_ms);
			continue;
		}
		/* The thread ends unless there was a change before this store. */
		__atomic_store_n(&worker, 0, __ATOMIC_SEQ_CST);
		if (__atomic_load_n(&changes, __ATOMIC_SEQ_CST) == seen ||
		    __atomic_exchange_n(&worker, self, __ATOMIC_SEQ_CST) ==
			    self)
			return;
	}
}

void detach_look_again(void)
{
	uint64_t self = this_process();

	__atomic_add_fetch(&changes, 1, __ATOMIC_SEQ_CST);
	if (__atomic_exchange_n(&worker, self, __ATOMIC_SEQ_CST) == self) {
		sys_wake(&changes);
		return;
	}
	if (runtime_thread_start(run_checks, NULL, STACK_SIZE, NULL,
				 "shim-detach") < 0) {
		__atomic_store_n(&worker, 0, __ATOMIC_SEQ_CST);
		log_line("%s",
			 "cannot start the thread that unloads profilers: "
			 "a detached profiler stays in memory until "
			 "another is detached");
	}
}

SUBSCRIBE(module_thread_ended, detach_look_again);

/* --- requests --- */

bool detach_begin(struct shim_profiler_handle *handle, uint32_t expected_ms)
{
	struct pending *pending = &pendings[handle->number];

	struct module *module = handle->module;

	module_handle_goes(handle);
	if (!handle_retire(handle))
		return false;
	pending->expected_ms = expected_ms ? expected_ms : EXPECTED_MS;
	pending->pause_ms = 1;
	pending->when_ms = 0;
	__atomic_store_n(&pending->handle, handle, __ATOMIC_RELEASE);
	if (module)
		module_handle_went(module);
	detach_look_again();
	return true;
}

bool detach_is_pending(const struct module *module)
{
	for (unsigned i = 0; i < SHIM_PROFILERS_MAX; i++) {
		const struct shim_profiler_handle *handle = __atomic_load_n(
			&pendings[i].handle, __ATOMIC_ACQUIRE);

		if (handle && handle->module == module)
			return true;
	}
	return false;
}

enum shim_result shim_profiler_detach(struct shim_profiler_handle *handle,
				      uint32_t expected_ms)
{
	ENTRY_PROGRAM_OF(handle);
	if (handle->waits)
		return SHIM_E_PROFILER_NOT_YET_INITIALIZED;
	if (handle->builtin)
		return SHIM_E_INVALIDARG;
	return detach_begin(handle, expected_ms) ? SHIM_OK :
						   SHIM_E_PROFILER_DETACHING;
}
