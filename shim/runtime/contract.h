/*
 * The contracts of public functions.  The first line of each public function is an ENTRY_
 * macro, which checks that the contract allows the call.  The order of the errors is that
 * of row P-56.
 */
#ifndef SHIM_CONTRACT_H
#define SHIM_CONTRACT_H

#include "runtime/events.h"
#include "runtime/hook.h"
#include "runtime/state.h"
#include "runtime/thread.h"

#define UNLIKELY(x) __builtin_expect(!!(x), 0)

enum contract {
	CONTRACT_ASYNC,
	CONTRACT_SYNC,
	CONTRACT_MAY_BLOCK,
	/* as MAY_BLOCK, and also allowed on threads of the program outside callbacks */
	CONTRACT_PROGRAM,
	CONTRACT_INIT,
};

/* The state of @self.  A slow hook allows SYNC and MAY_BLOCK calls, unless a callback runs
 * on top of the hook. */
static inline uint32_t thread_get_state(const struct thread *self)
{
	if (frame_answers(self) &&
	    (!self->guard || self->guard->frame != self->frame))
		return THREAD_CALLBACK | THREAD_MAY_BLOCK;
	return self->state;
}

static inline bool contract_allows(enum contract contract)
{
	const struct thread *self = thread_current;
	uint32_t state = self ? thread_get_state(self) : 0;

	/* The callback may have interrupted another callback, a slow hook, or malloc. */
	if (self && (self->state & THREAD_SIGNAL))
		return contract == CONTRACT_ASYNC;
	if (contract == CONTRACT_INIT)
		return (state & THREAD_INIT) || state_get() == STATE_LOADED ||
		       (!(state & (THREAD_CALLBACK | THREAD_OWN)) &&
			!state_main_started());
	if (contract == CONTRACT_ASYNC || !self ||
	    (state & (THREAD_OWN | THREAD_INIT)))
		return true;
	if (contract == CONTRACT_SYNC)
		return state & THREAD_CALLBACK;
	if (state & THREAD_CALLBACK)
		return state & THREAD_MAY_BLOCK;
	return contract == CONTRACT_PROGRAM;
}

/* Whether the code at @address belongs to a module and not to the program.  A
 * subscriber sets *@is_module. */
TOPIC(module_code_asked, uintptr_t address, bool *is_module);

static inline bool contract_is_module_code(uintptr_t address)
{
	bool is_module = false;

	NOTIFY(module_code_asked, address, &is_module);
	return is_module;
}

/* Whether the calling thread runs a module's init function, before main or later. */
static inline bool contract_is_setting_up(void)
{
	return thread_current && (thread_current->state & THREAD_INIT);
}

static inline bool
contract_is_detaching(const struct shim_profiler_handle *handle)
{
	const struct thread *self = thread_current;

	if (handle && handle_get_status(handle) == HANDLE_DETACHING)
		return true;
	if (self && self->guard &&
	    handle_get_status(self->guard->handle) == HANDLE_DETACHING)
		return true;
	return self && frame_answers(self) &&
	       handle_get_status(frame_get_handle(self)) == HANDLE_DETACHING;
}

/* Whether @self is in a slow hook with no callback on top of it.  Slow hooks make most of
 * the queries. */
static inline bool contract_is_in_hook(const struct thread *self)
{
	return self && !self->guard && frame_answers(self) &&
	       handle_get_status(frame_get_handle(self)) == HANDLE_ACTIVE;
}

/* Whether the calling thread is in the slow hook that got @info, with no callback on top,
 * and the hook's profiler gets the data in @needed. */
static inline bool contract_hook_has(shim_elt_info info,
				     enum handle_data needed)
{
	const struct arch_frame *frame = (const struct arch_frame *)info;
	const struct thread *self = thread_current;
	const struct plan_entry *entry;

	if (UNLIKELY(!self) || UNLIKELY(!frame) ||
	    UNLIKELY(self->frame != frame) || UNLIKELY(self->guard))
		return false;
	entry = frame->entry;
	return entry &&
	       (__atomic_load_n(&entry->handle->data_flags, __ATOMIC_RELAXED) &
		needed);
}

static inline enum shim_result
contract_check_all(enum contract contract,
		   const struct shim_profiler_handle *handle, bool has_handle)
{
	if (has_handle && !handle_is_valid(handle))
		handle = NULL;
	if (contract_is_detaching(handle))
		return SHIM_E_PROFILER_DETACHING;
	if (!contract_allows(contract))
		return contract == CONTRACT_INIT ?
			       SHIM_E_CALL_ONLY_FROM_INIT :
			       SHIM_E_UNSUPPORTED_CALL_SEQUENCE;
	return has_handle && !handle ? SHIM_E_INVALIDARG : SHIM_OK;
}

static inline __attribute__((always_inline)) enum shim_result
contract_check(enum contract contract,
	       const struct shim_profiler_handle *handle, bool has_handle)
{
	if (contract == CONTRACT_SYNC && !has_handle &&
	    contract_is_in_hook(thread_current))
		return SHIM_OK;
	return contract_check_all(contract, handle, has_handle);
}

/* shim has refused a profiler's call of @function with @result.  The call returns to
 * @caller. */
TOPIC(call_refused, enum shim_result result, const char *function,
      const void *caller);

/* Notifies subscribers of the refused call; returns @result. */
__attribute__((cold)) enum shim_result contract_refused(enum shim_result result,
							const char *function,
							const void *caller);

#define ENTRY_AS_(contract, handle, has, name) \
	do { \
		enum shim_result r_ = contract_check(contract, handle, has); \
		if (r_ != SHIM_OK) \
			return contract_refused(r_, name, \
						__builtin_return_address(0)); \
	} while (0)

#define ENTRY_(contract, handle, has) ENTRY_AS_(contract, handle, has, __func__)

/* For queries that hooks make at each call.  If the caller is not a hook that gets
 * @needed, returns @otherwise: the call of a function that begins with ENTRY_SYNC. */
#define ENTRY_SYNC_ELSE(info, needed, otherwise) \
	do { \
		if (UNLIKELY(!contract_hook_has(info, needed))) \
			return otherwise; \
	} while (0)

#define ENTRY_ASYNC() ENTRY_(CONTRACT_ASYNC, NULL, false)
#define ENTRY_SYNC()  ENTRY_(CONTRACT_SYNC, NULL, false)
/* As ENTRY_SYNC, in a helper of the public function @name. */
#define ENTRY_SYNC_AS(name) ENTRY_AS_(CONTRACT_SYNC, NULL, false, name)
#define ENTRY_MAY_BLOCK()   ENTRY_(CONTRACT_MAY_BLOCK, NULL, false)
#define ENTRY_PROGRAM()	    ENTRY_(CONTRACT_PROGRAM, NULL, false)
#define ENTRY_INIT()	    ENTRY_(CONTRACT_INIT, NULL, false)

/* For functions with a handle: these macros check the handle, too. */
#define ENTRY_ASYNC_OF(handle)	   ENTRY_(CONTRACT_ASYNC, handle, true)
#define ENTRY_MAY_BLOCK_OF(handle) ENTRY_(CONTRACT_MAY_BLOCK, handle, true)
#define ENTRY_PROGRAM_OF(handle)   ENTRY_(CONTRACT_PROGRAM, handle, true)
#define ENTRY_INIT_OF(handle)	   ENTRY_(CONTRACT_INIT, handle, true)

/* Code of a module that makes the call outside a callback is a fast hook, so it has fewer
 * rights than the program. */
#define ENTRY_PROGRAM_ITSELF_OF(handle) \
	ENTRY_(contract_is_module_code( \
		       (uintptr_t)__builtin_return_address(0)) ? \
		       CONTRACT_MAY_BLOCK : \
		       CONTRACT_PROGRAM, \
	       handle, true)

#endif
