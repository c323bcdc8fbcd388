/*
 * Calls slow hooks, and answers their queries.  The assembly saves the registers of the
 * call in a frame on the stack.  eltInfo is the address of that frame, so a query finds
 * the call without a search.
 */
#include "dispatch/slow_hook.h"

#include "arch.h"
#include "dispatch/nested.h"
#include "inspect/info.h"
#include "inspect/results.h"
#include "inspect/values.h"
#include "runtime/contract.h"
#include "runtime/output.h"

#include <shim/banned.h>

_Static_assert(sizeof(struct slow_hook_info) <=
		       sizeof(((struct arch_frame *)0)->info),
	       "arch_frame.info has no room for struct slow_hook_info");

static shim_frame_info fill_frame_info(struct arch_frame *frame)
{
	struct slow_hook_info *info = (struct slow_hook_info *)frame->info;

	info->size = sizeof(*info);
	info->version = 1;
	info->function = frame->function;
	info->ip = frame->return_address;
	info->frame = ARCH_FRAME_CFA(frame);
	return (shim_frame_info)info;
}

/* The arguments; NULL if the profiler does not want them, or if another task shares the
 * thread's data. */
static struct shim_argument_info *
describe_arguments(const struct plan_entry *entry,
		   const struct arch_frame *frame)
{
	struct thread *self = thread_current;

	return (entry->handle->mask & SHIM_ENABLE_FUNCTION_ARGS) && self &&
			       self->frame == frame ?
		       values_answer(self, frame) :
		       NULL;
}

/* Stores the result in *@range.  The range is empty if self->frame is another frame,
 * because another task shares the thread's memory. */
static void find_result(const struct arch_frame *frame,
			struct shim_argument_range *range)
{
	struct thread *self = thread_current;
	struct results_value value = { .start = 0 };

	if (self && self->frame == frame)
		results_find(self, frame, &value);
	*range = (struct shim_argument_range){ value.start, value.length };
}

static void call_leave2(shim_leave_hook2 hook, const struct plan_entry *entry,
			const struct arch_frame *frame, uintptr_t client,
			shim_frame_info info)
{
	struct shim_argument_range result;

	if (!(entry->handle->mask & SHIM_ENABLE_FUNCTION_RETVAL)) {
		hook(frame->function, client, info, NULL);
		return;
	}
	find_result(frame, &result);
	hook(frame->function, client, info, &result);
}

static void call_elt2(const struct plan_entry *entry, struct arch_frame *frame,
		      uintptr_t client)
{
	void *hook = entry->hooks[frame->event];
	shim_frame_info info = 0;

	if (entry->handle->mask & SHIM_ENABLE_FRAME_INFO)
		info = fill_frame_info(frame);
	switch (frame->event) {
	case PLAN_ENTER:
		((shim_enter_hook2)hook)(frame->function, client, info,
					 describe_arguments(entry, frame));
		break;
	case PLAN_LEAVE:
		call_leave2((shim_leave_hook2)hook, entry, frame, client, info);
		break;
	default: ((shim_tailcall_hook2)hook)(frame->function, client, info);
	}
}

static void run_elt2(union shim_function_or_client function, shim_elt_info info)
{
	struct arch_frame *frame = (struct arch_frame *)info;

	call_elt2(frame->entry, frame, function.client);
}

/* Calls a deferred hook, with the call site and frame that the fast hook got. */
static void run_deferred(union shim_function_or_client function,
			 shim_elt_info info)
{
	struct arch_frame *frame = (struct arch_frame *)info;
	const struct plan_entry *entry = frame->entry;

	entry->handle->deferred(function.function, frame->site,
				ARCH_FRAME_CFA(frame), info);
}

/* dispatch.S passes two arguments; a hook of generation 1 ignores the second. */
void *slow_hook_single(const struct plan_entry *entry, enum plan_event event)
{
	void *hook = entry->hooks[event];

	if (entry->has_deferred)
		return event == PLAN_ENTER ? (void *)run_deferred : NULL;
	return hook && entry->kind == PLAN_ELT2 ? (void *)run_elt2 : hook;
}

struct hook_call {
	struct thread *self;
	const struct plan_entry *entry;
	const struct plan_call *call;
	uintptr_t client;
};

static int call_hook(void *argument)
{
	const struct hook_call *this = argument;
	const struct plan_entry *entry = this->entry;
	const struct plan_call *call = this->call;
	union shim_function_or_client id = { .client = this->client };
	shim_elt_info info = (shim_elt_info)call->registers;
	void *hook = entry->hooks[call->event];

	if (entry->has_deferred)
		entry->handle->deferred(id.function, call->site, call->frame,
					this->self->frame ? info : 0);
	else if (entry->kind == PLAN_SLOW)
		((shim_function_hook_with_info)hook)(id, info);
	else if (entry->kind == PLAN_ELT2)
		call_elt2(entry, call->registers, id.client);
	else
		((shim_function_hook1)hook)(call->function);
	return 0;
}

/* Hooks of built-in profilers need little stack, unless they ask for values. */
static bool needs_room(const struct plan_entry *entry)
{
	return !entry->handle->builtin || entry->has_deferred ||
	       (entry->handle->mask &
		(SHIM_ENABLE_FUNCTION_ARGS | SHIM_ENABLE_FUNCTION_RETVAL));
}

static void run_hook(struct thread *self, struct hook_call *this)
{
	if (!needs_room(this->entry) || events_has_room(self)) {
		call_hook(this);
		return;
	}
	self->is_hook_apart = true;
	events_call_apart(self, call_hook, this);
	self->is_hook_apart = false;
}

void slow_hook_call(struct thread *self, const struct plan_entry *entry,
		    const struct plan_call *call, uintptr_t client)
{
	struct arch_frame *frame = call->registers;
	struct arch_floating floating;
	enum nested whose;

	/* A profiler that counts calls also needs the calls of signal handlers. */
	if (entry->has_deferred && (self->frame || !frame)) {
		arch_floating_keep(&floating);
		entry->handle->deferred(client, call->site, call->frame, 0);
		arch_floating_restore(&floating);
		return;
	}
	whose = nested_begin(self);
	/* Calls by a slow hook are not the program's (row E-36). */
	if (whose == NESTED_CALL)
		return;
	frame->entry = entry;
	frame->event = call->event;
	frame->error = (uint32_t)*self->error;
	/* If tasks share the record, the hook cannot make queries. */
	if (!(self->state & THREAD_SHARED))
		self->frame = frame;
	arch_floating_keep(&floating);
	run_hook(self, &(struct hook_call){ self, entry, call, client });
	arch_floating_restore(&floating);
	*self->error = (int)frame->error;
	if (whose == NESTED_HANDLER)
		nested_end(self);
	else
		__atomic_store_n(&self->frame, NULL, __ATOMIC_RELEASE);
}

/* --- queries of slow hooks --- */

/* Finds the frame of the running hook, if the hook is for @event and its profiler has
 * enabled one of @flags. */
static inline __attribute__((always_inline)) enum shim_result
find_frame(shim_elt_info info, enum plan_event event, uint32_t flags,
	   struct arch_frame **found, uint32_t *mask)
{
	const struct thread *self = thread_current;
	const struct plan_entry *entry;

	if (!self || !frame_answers(self))
		return SHIM_E_UNSUPPORTED_CALL_SEQUENCE;
	entry = self->frame->entry;
	*mask = entry->has_deferred ? SHIM_ENABLE_FUNCTION_ARGS :
				      entry->handle->mask;
	if ((*mask & flags) == 0)
		return SHIM_E_INCONSISTENT_WITH_FLAGS;
	if (info != (shim_elt_info)self->frame || self->frame->event != event)
		return SHIM_E_INVALIDARG;
	*found = self->frame;
	return SHIM_OK;
}

_Static_assert(sizeof(struct shim_argument_range) == 16, "section 3.4");
_Static_assert(sizeof(struct shim_argument_info) == 24, "section 3.4");

/* The size that the caller's buffer needs: one range more than there are, as in the CLR. */
static uint32_t needed_size(const struct recipe *recipe)
{
	return (uint32_t)(sizeof(struct shim_argument_info) +
			  values_count(recipe) *
				  sizeof(struct shim_argument_range));
}

static enum shim_result query_arguments(struct arch_frame *frame,
					uint32_t *size,
					struct shim_argument_info *arguments)
{
	const struct values_near *near;
	const struct recipe *recipe;
	enum shim_result r;

	if (!size || (*size != 0 && !arguments))
		return SHIM_E_INVALIDARG;
	near = values_find_near(frame);
	if (near && *size >= near->size) {
		values_fill_near(frame, near, arguments);
		return SHIM_OK;
	}
	r = values_find(thread_current, frame, &recipe);
	if (r != SHIM_OK)
		return r;
	if (*size < needed_size(recipe)) {
		*size = needed_size(recipe);
		return SHIM_E_INSUFFICIENT_BUFFER;
	}
	values_fill(thread_current, frame, recipe, arguments);
	return SHIM_OK;
}

/* On failure it writes only the size (row C-28; the CLR also writes the frame). */
static __attribute__((noinline)) enum shim_result
query_enter(shim_function function, shim_elt_info info, shim_frame_info *frame,
	    uint32_t *size, struct shim_argument_info *arguments)
{
	struct arch_frame *found;
	enum shim_result r;
	uint32_t mask;

	ENTRY_SYNC_AS("shim_get_function_enter3_info");
	r = find_frame(info, PLAN_ENTER,
		       SHIM_ENABLE_FUNCTION_ARGS | SHIM_ENABLE_FRAME_INFO,
		       &found, &mask);
	if (r != SHIM_OK)
		return contract_refused(r, "shim_get_function_enter3_info",
					__builtin_return_address(0));
	if (function == 0)
		return SHIM_E_INVALIDARG;
	if ((mask & SHIM_ENABLE_FRAME_INFO) && !frame)
		return SHIM_E_INVALIDARG;
	if (mask & SHIM_ENABLE_FUNCTION_ARGS) {
		r = query_arguments(found, size, arguments);
		if (r != SHIM_OK)
			return r;
	}
	if (mask & SHIM_ENABLE_FRAME_INFO)
		*frame = fill_frame_info(found);
	return SHIM_OK;
}

static __attribute__((noinline)) enum shim_result
query_enter_frame(shim_function function, shim_elt_info info,
		  shim_frame_info *frame, uint32_t *size,
		  struct shim_argument_info *arguments)
{
	struct arch_frame *found = (struct arch_frame *)info;

	ENTRY_SYNC_ELSE(info, HANDLE_DATA_ENTER_FRAME,
			query_enter(function, info, frame, size, arguments));
	if (found->event != PLAN_ENTER || function == 0 || !frame)
		return query_enter(function, info, frame, size, arguments);
	*frame = fill_frame_info(found);
	return SHIM_OK;
}

/* This function is the fast path for queries that hooks make at each call.
 * query_enter_frame and query_enter handle all other cases. */
enum shim_result
shim_get_function_enter3_info(shim_function function, shim_elt_info info,
			      shim_frame_info *frame, uint32_t *size,
			      struct shim_argument_info *arguments)
{
	const struct arch_frame *found = (const struct arch_frame *)info;
	const struct values_near *near;

	ENTRY_SYNC_ELSE(
		info, HANDLE_DATA_ARGUMENTS,
		query_enter_frame(function, info, frame, size, arguments));
	near = values_find_in_front(found);
	if (UNLIKELY(!near) || UNLIKELY(function == 0) || UNLIKELY(!size) ||
	    UNLIKELY(!arguments) || UNLIKELY(*size < near->size))
		return query_enter(function, info, frame, size, arguments);
	values_fill_near(found, near, arguments);
	return SHIM_OK;
}

static enum shim_result query_result(const struct arch_frame *frame,
				     struct shim_argument_range *result)
{
	struct results_value value;
	enum shim_result r;

	if (!result)
		return SHIM_E_INVALIDARG;
	r = results_find(thread_current, frame, &value);
	if (r != SHIM_OK)
		return r;
	result->start = value.start;
	result->length = value.length;
	return SHIM_OK;
}

static __attribute__((noinline)) enum shim_result
query_leave(shim_elt_info info, shim_frame_info *frame,
	    struct shim_argument_range *result)
{
	struct arch_frame *found;
	enum shim_result r;
	uint32_t mask;

	ENTRY_SYNC_AS("shim_get_function_leave3_info");
	r = find_frame(info, PLAN_LEAVE,
		       SHIM_ENABLE_FUNCTION_RETVAL | SHIM_ENABLE_FRAME_INFO,
		       &found, &mask);
	if (r != SHIM_OK)
		return contract_refused(r, "shim_get_function_leave3_info",
					__builtin_return_address(0));
	if (!frame)
		return SHIM_E_INVALIDARG;
	if (mask & SHIM_ENABLE_FUNCTION_RETVAL) {
		r = query_result(found, result);
		if (r != SHIM_OK)
			return r;
	}
	if (mask & SHIM_ENABLE_FRAME_INFO)
		*frame = fill_frame_info(found);
	return SHIM_OK;
}

static __attribute__((noinline)) enum shim_result
query_leave_frame(shim_elt_info info, shim_frame_info *frame,
		  struct shim_argument_range *result)
{
	struct arch_frame *found = (struct arch_frame *)info;

	ENTRY_SYNC_ELSE(info, HANDLE_DATA_LEAVE_FRAME,
			query_leave(info, frame, result));
	if (found->event != PLAN_LEAVE || !frame)
		return query_leave(info, frame, result);
	*frame = fill_frame_info(found);
	return SHIM_OK;
}

enum shim_result
shim_get_function_leave3_info(shim_function function, shim_elt_info info,
			      shim_frame_info *frame,
			      struct shim_argument_range *result)
{
	const struct arch_frame *found = (const struct arch_frame *)info;

	(void)function;
	ENTRY_SYNC_ELSE(info, HANDLE_DATA_RESULT,
			query_leave_frame(info, frame, result));
	if (found->event != PLAN_LEAVE || !found->has_registers || !frame ||
	    !result || !results_find_in_front(found, result))
		return query_leave(info, frame, result);
	return SHIM_OK;
}

enum shim_result shim_get_function_tailcall3_info(shim_function function,
						  shim_elt_info info,
						  shim_frame_info *frame)
{
	struct arch_frame *found;
	enum shim_result r;
	uint32_t mask;

	ENTRY_SYNC();
	r = find_frame(info, PLAN_TAILCALL, SHIM_ENABLE_FRAME_INFO, &found,
		       &mask);
	if (r != SHIM_OK)
		return contract_refused(r, __func__,
					__builtin_return_address(0));
	if (function == 0 || !frame)
		return SHIM_E_INVALIDARG;
	*frame = fill_frame_info(found);
	return SHIM_OK;
}

/* The address in the function.  It is unknown (0) if the function has jumped to the
 * hook: then the hook's return address is that of the function. */
static uintptr_t ip_of(const struct arch_frame *frame)
{
	return frame->return_address == (uintptr_t)frame->site ?
		       0 :
		       frame->return_address;
}

enum shim_result shim_get_frame_instance(shim_frame_info frame,
					 shim_function *code, uint32_t count,
					 uint32_t *total, char *name)
{
	const struct output output = { 0, count, total, name };
	const struct thread *self = thread_current;
	uintptr_t start = 0;
	enum shim_result r;

	ENTRY_MAY_BLOCK();
	if (!self || !frame_answers(self))
		return SHIM_E_UNSUPPORTED_CALL_SEQUENCE;
	if (frame == 0 || frame != (shim_frame_info)self->frame->info ||
	    !output_is_valid(count, name))
		return SHIM_E_INVALIDARG;
	r = info_output_instance(self->frame->function, ip_of(self->frame),
				 (uintptr_t)self->frame->site, &start, &output);
	if (r == SHIM_OK && code)
		*code = start;
	return r;
}

/* The reason why an argument of the entered function is not available. */
static enum shim_result find_reason(const struct arch_frame *frame,
				    uint32_t position,
				    enum shim_unavailable *reason)
{
	struct shim_argument_range range;
	const struct recipe *recipe;
	enum shim_result r = values_find(thread_current, frame, &recipe);

	*reason = SHIM_UNAVAILABLE_NO_DEBUG_INFORMATION;
	if (r == SHIM_OK)
		*reason = values_get(thread_current, frame, recipe, position,
				     &range);
	return r == SHIM_E_FUNCTION_NOT_IL ? SHIM_OK : r;
}

static enum shim_result find_result_reason(const struct arch_frame *frame,
					   enum shim_unavailable *reason)
{
	struct results_value value;
	enum shim_result r = results_find(thread_current, frame, &value);

	*reason = value.reason;
	if (r == SHIM_E_FUNCTION_NOT_IL)
		*reason = SHIM_UNAVAILABLE_NO_DEBUG_INFORMATION;
	else if (value.reason == SHIM_AVAILABLE && value.length == 0)
		*reason = SHIM_UNAVAILABLE_NONE;
	return r == SHIM_E_FUNCTION_NOT_IL ? SHIM_OK : r;
}

enum shim_result shim_get_value_reason(shim_elt_info info, uint32_t position,
				       enum shim_unavailable *reason)
{
	bool is_result = position == SHIM_RESULT;
	enum shim_unavailable found = SHIM_UNAVAILABLE_CODE;
	struct arch_frame *frame;
	enum shim_result r;
	uint32_t mask;

	ENTRY_SYNC();
	r = find_frame(info, is_result ? PLAN_LEAVE : PLAN_ENTER,
		       is_result ? SHIM_ENABLE_FUNCTION_RETVAL :
				   SHIM_ENABLE_FUNCTION_ARGS,
		       &frame, &mask);
	if (r != SHIM_OK)
		return contract_refused(r, __func__,
					__builtin_return_address(0));
	if (!reason)
		return SHIM_E_INVALIDARG;
	r = is_result ? find_result_reason(frame, &found) :
			find_reason(frame, position, &found);
	if (r == SHIM_OK)
		*reason = found;
	return r;
}
