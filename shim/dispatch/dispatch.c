/*
 * Runs plans, for the calls of hooks that dispatch.S does not handle itself.  A thread
 * counts its runs, so that a thread that changes the plan knows when it can free the
 * old one.
 */
#include "arch.h"
#include "dispatch/call_sites.h"
#include "dispatch/frame_exits.h"
#include "dispatch/nested.h"
#include "dispatch/plan.h"
#include "dispatch/slow_hook.h"
#include "inspect/code_cache.h"
#include "inspect/context.h"
#include "runtime/asm_offsets.h"
#include "runtime/state.h"

#include <errno.h>
#include <shim/record.h>

#include <shim/banned.h>

/* The number of runs by tasks that share a record, changed by atomic instructions. */
static uint32_t shared_runs;

static uint32_t count_dispatching(const struct thread *thread, unsigned number)
{
	(void)number;
	if (thread->state & THREAD_SHARED)
		return __atomic_load_n(&shared_runs, __ATOMIC_ACQUIRE);
	return __atomic_load_n(&thread->dispatching, __ATOMIC_ACQUIRE) +
	       (__atomic_load_n(&thread->frame, __ATOMIC_ACQUIRE) != NULL);
}

bool plan_wait(uint32_t timeout_ms)
{
	return thread_wait(count_dispatching, 0, timeout_ms);
}

static const uint8_t flag_of[] = {
	[PLAN_ENTER] = SHIM_CALL_INSTRUMENTATION_ENTER,
	[PLAN_LEAVE] = SHIM_CALL_INSTRUMENTATION_LEAVE,
	[PLAN_TAILCALL] = SHIM_CALL_INSTRUMENTATION_TAIL_CALL,
	[PLAN_EXCEPTION] = SHIM_CALL_INSTRUMENTATION_EXCEPTION_LEAVE,
};

/* @flags: the answer of the profiler's filter. */
static void raise_method(const struct plan_entry *entry,
			 const struct plan_call *call, uint8_t flags)
{
	struct shim_profiler_handle *handle = entry->handle;

	switch (call->event) {
	case PLAN_ENTER:
		RAISE_ONE(handle, method_enter, call->function,
			  flags & SHIM_CALL_INSTRUMENTATION_ENTER_CONTEXT ?
				  context_begin(&guard_, call) :
				  NULL);
		break;
	case PLAN_LEAVE:
		RAISE_ONE(handle, method_leave, call->function,
			  flags & SHIM_CALL_INSTRUMENTATION_LEAVE_CONTEXT ?
				  context_begin(&guard_, call) :
				  NULL);
		break;
	case PLAN_TAILCALL:
		RAISE_ONE(handle, method_tail_call, call->function,
			  call->target);
		break;
	case PLAN_EXCEPTION:
		RAISE_ONE(handle, method_exception_leave, call->function,
			  (void *)call->target);
		break;
	case PLAN_UNWINDING: break;
	}
}

/*
 * Translates an event for a profiler; false if the profiler does not get it.  A tail
 * call is a leave for a profiler without a tailcall hook.  The end of an unwound
 * function is a leave for a profiler with raw leave hooks; other profilers do not get
 * it.
 */
static bool find_event(const struct plan_entry *entry,
		       const struct plan_call *call, enum plan_event *event)
{
	*event = call->event;
	if (call->event == PLAN_UNWINDING ||
	    (call->event == PLAN_TAILCALL && !entry->tail_calls))
		*event = PLAN_LEAVE;
	return call->event != PLAN_UNWINDING || entry->leaves_on_unwind;
}

static void call_hook(struct thread *self, const struct plan_entry *entry,
		      const struct plan_call *call, uintptr_t client,
		      uint8_t flags);

static void call_as(enum plan_event event, struct thread *self,
		    const struct plan_entry *entry,
		    const struct plan_call *call, uintptr_t client,
		    uint8_t flags)
{
	struct plan_call other = *call;

	other.event = event;
	call_hook(self, entry, &other, client, flags);
}

static void call_hook(struct thread *self, const struct plan_entry *entry,
		      const struct plan_call *call, uintptr_t client,
		      uint8_t flags)
{
	enum plan_event event;
	void *hook;

	if (!find_event(entry, call, &event))
		return;
	if (event != call->event) {
		call_as(event, self, entry, call, client, flags);
		return;
	}
	if (entry->kind == PLAN_METHOD) {
		raise_method(entry, call, flags);
		return;
	}
	if (call->event == PLAN_EXCEPTION)
		return;
	if (entry->has_deferred && call->event == PLAN_ENTER) {
		slow_hook_call(self, entry, call, client);
		return;
	}
	hook = entry->hooks[call->event];
	if (!hook)
		return;
	/* Tail calls have no frame hook: the fast hook runs. */
	if (entry->kind == PLAN_FAST ||
	    (entry->kind == PLAN_FRAME && call->event == PLAN_TAILCALL))
		((void (*)(uintptr_t, const void *))hook)(client, call->site);
	else if (entry->kind == PLAN_FRAME)
		((shim_frame_hook)hook)(client, call->site, call->frame);
	else
		slow_hook_call(self, entry, call, client);
}

/* Calls the hooks of profilers that want this event of this function; false if no
 * profiler wants it. */
static bool run_decided(const struct plan *plan, struct thread *self,
			const struct plan_call *call)
{
	const struct filter_answer *answer = filter_cache_get(self,
							      call->function);
	bool wanted = false;

	for (uint32_t i = 0; i < plan->count; i++) {
		const struct plan_entry *entry = &plan->entries[i];
		enum plan_event event;
		uint8_t flags = 0xff;
		uintptr_t client = call->function;

		if (!answer && (entry->filter >= 0 || entry->mapper >= 0)) {
			/* A module's filter is running. */
			if (entry->handle->builtin && call->event == PLAN_ENTER)
				shim_record_lost(SHIM_LOST_OTHER);
			wanted = true;
			continue;
		}
		if (entry->filter >= 0)
			flags = answer->flags[entry->filter];
		if (entry->mapper >= 0) {
			flags &= answer->flags[entry->mapper];
			client = answer->client[entry->mapper];
		}
		if (!find_event(entry, call, &event) ||
		    (flags & flag_of[event]) == 0)
			continue;
		wanted = true;
		call_hook(self, entry, call, client, flags);
	}
	return wanted;
}

/* --- functions that no profiler wants --- */

static int switch_off_locked(void *argument)
{
	const struct plan_call *call = argument;
	int r = call_sites_switch_call(call->return_address, false);

	if (r == -ENOENT && call->event == PLAN_LEAVE)
		r = call_sites_switch_jumps(call->function, false);
	NOTIFY(call_sites_switched);
	return r;
}

/* Switches off the call site of @call.  If that fails, the site keeps calling.  After
 * 16 failures, shim does not try again. */
static void switch_call_off(const struct plan_call *call)
{
	struct filter_answer *answer = filter_cache_find(call->function);

	if (!answer || answer->switch_failures >= 16)
		return;
	if (state_call_locked(switch_off_locked, (void *)call) < 0)
		answer->switch_failures++;
}

void plan_run(const struct plan *plan, struct thread *self,
	      const struct plan_call *call)
{
	if (plan->decides) {
		if (!run_decided(plan, self, call) && !plan->tracks)
			switch_call_off(call);
		return;
	}
	for (uint32_t i = 0; i < plan->count; i++)
		call_hook(self, &plan->entries[i], call, call->function, 0);
}

/* The function restores the count instead of decrementing it.  That also removes the
 * runs inside that were left by a jump. */
void plan_dispatch(const struct plan_call *call)
{
	struct thread *self = thread_get();
	const struct plan *plan;
	uint32_t before;

	if (!self) {
		shim_record_lost(SHIM_LOST_MEMORY);
		return;
	}
	if (self->state & THREAD_SHARED)
		__atomic_add_fetch(&shared_runs, 1, __ATOMIC_SEQ_CST);
	before = self->dispatching;
	if (before == 0)
		self->dispatch_sp = call->frame;
	self->dispatching = before + 1;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	plan = __atomic_load_n(&plan_current, __ATOMIC_ACQUIRE);
	if (plan && plan->tracks)
		frame_exits_run(plan, self, call);
	else if (plan)
		plan_run(plan, self, call);
	/* A thread in plan_wait may free the plan from here on. */
	__atomic_store_n(&self->dispatching, before, __ATOMIC_RELEASE);
	if (self->state & THREAD_SHARED)
		__atomic_sub_fetch(&shared_runs, 1, __ATOMIC_SEQ_CST);
}

#define IS_AT(where, field, offset) \
	_Static_assert(offsetof(struct where, field) == (offset), \
		       "runtime/asm_offsets.h")

IS_AT(thread, state, LAYOUT_THREAD_STATE);
IS_AT(thread, frame, LAYOUT_THREAD_FRAME);
IS_AT(thread, dispatching, LAYOUT_THREAD_DISPATCHING);
IS_AT(thread, dispatch_sp, LAYOUT_THREAD_DISPATCH_SP);
IS_AT(thread, error, LAYOUT_THREAD_ERRNO);
IS_AT(thread, callback_room_low, LAYOUT_THREAD_CALLBACK_ROOM_LOW);
IS_AT(thread, callback_room_size, LAYOUT_THREAD_CALLBACK_ROOM_SIZE);
IS_AT(plan, single, LAYOUT_PLAN_SINGLE);
IS_AT(plan, single_entry, LAYOUT_PLAN_ENTRY);
IS_AT(plan, chains, LAYOUT_PLAN_CHAINS);
IS_AT(code_cache_entry, address, 0);
IS_AT(code_cache_entry, function, 8);
_Static_assert(PLAN_UNWINDING == LAYOUT_UNWINDING, "runtime/asm_offsets.h");
_Static_assert(THREAD_SHARED == LAYOUT_THREAD_SHARED, "runtime/asm_offsets.h");

/* Sets the fields one by one.  For an initializer, the compiler would clear the whole
 * struct first. */
void plan_general(shim_function function, const void *site, uintptr_t frame,
		  uint32_t event, uintptr_t return_address)
{
	struct plan_call call;

	call.event = event;
	call.function = function;
	call.site = site;
	call.frame = frame;
	call.return_address = return_address;
	call.registers = NULL;
	call.target = 0;
	plan_dispatch(&call);
}

/* dispatch.S calls it, with the program's registers in @frame. */
void frame_run(struct arch_frame *frame);

void frame_run(struct arch_frame *frame)
{
	struct plan_call call;

	call.event = frame->event;
	call.function = frame->function;
	call.site = frame->site;
	call.frame = ARCH_FRAME_CFA(frame);
	call.return_address = frame->return_address;
	call.registers = frame;
	call.target = 0;
	plan_dispatch(&call);
}

static void wait_for_hooks(uint32_t timeout_ms, bool *is_out)
{
	*is_out = *is_out && plan_wait(timeout_ms);
}

SUBSCRIBE(hooks_awaited, wait_for_hooks);
SUBSCRIBE(stack_leaving, nested_jumped);
SUBSCRIBE(stack_left, filter_cache_jumped);
