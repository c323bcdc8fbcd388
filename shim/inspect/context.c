/*
 * Call contexts.  A context is a number with a generation: the context leads to its
 * call only through the guard of the callback that received it.  So a context that a
 * profiler uses later or elsewhere leads to no call.
 */
#include "inspect/context.h"

#include "arch.h"
#include "inspect/context_buffers.h"
#include "inspect/locals.h"
#include "inspect/results.h"
#include "inspect/values.h"
#include "os/text.h"
#include "runtime/contract.h"
#include "runtime/output.h"

#include <shim/banned.h>

static bool is_enabled;

bool context_is_enabled(void)
{
	return __atomic_load_n(&is_enabled, __ATOMIC_ACQUIRE);
}

enum shim_result shim_profiler_enable_call_context_introspection(
	struct shim_profiler_handle *handle)
{
	ENTRY_INIT_OF(handle);
	if (!__atomic_exchange_n(&is_enabled, true, __ATOMIC_ACQ_REL))
		NOTIFY(hooks_changed);
	return SHIM_OK;
}

/* --- contexts --- */

/* A thread's record is reused for other threads, but its context numbers continue. */
struct shim_call_context *context_begin(struct guard *guard,
					const struct plan_call *call)
{
	struct thread *self = guard->thread;

	if (!self || !call->registers)
		return NULL;
	guard->context = ++self->contexts << 16 | (self->id & 0xffff);
	guard->call = call;
	return (struct shim_call_context *)guard->context;
}

/* Returns NULL in a signal handler that interrupts the callback. */
static const struct plan_call *
find_call(const struct shim_call_context *context)
{
	const struct thread *self = thread_current;

	if (!context || !self)
		return NULL;
	for (struct guard *g = self->guard; g; g = g->outer) {
		if (g->context == (uintptr_t)context)
			return g->call;
		if (g->kind == EVENT_SIGNAL)
			return NULL;
	}
	return NULL;
}

/* --- values --- */

/* A value in memory at @start, or a variable of @locals. */
struct value {
	enum shim_unavailable reason;
	uint32_t size;
	uintptr_t start;
	const struct locals *locals;
	uint32_t number;
	const char *name;
};

/* Whether the function jumped to its leave hook, after it had removed its frame. */
static bool was_jumped_to(const struct plan_call *call)
{
	return call->event == PLAN_LEAVE &&
	       call->return_address == (uintptr_t)call->site;
}

/* The number of the argument at @position among all declared parameters, of which the
 * first may be `this`. */
static bool find_parameter(enum shim_call_value kind, uint32_t position,
			   bool has_this, uint32_t count, uint32_t *number)
{
	if (kind == SHIM_CALL_THIS) {
		*number = 0;
		return has_this;
	}
	*number = position + has_this;
	return position < count - has_this;
}

static enum shim_result find_at_enter(const struct plan_call *call,
				      enum shim_call_value kind,
				      uint32_t position, struct value *value)
{
	struct shim_argument_range range;
	const struct recipe *recipe;
	enum shim_result r = values_find(thread_current, call->registers,
					 &recipe);
	uint32_t number;

	if (r != SHIM_OK)
		return r;
	if (!find_parameter(kind, position, values_has_this(recipe),
			    values_count(recipe), &number))
		return SHIM_OK;
	value->reason = values_get(thread_current, call->registers, recipe,
				   number, &range);
	value->start = range.start;
	value->size = range.length;
	return SHIM_OK;
}

static void describe_variable(const struct plan_call *call,
			      const struct locals *locals, uint32_t number,
			      struct value *value)
{
	const struct variables *variables = locals_variables(locals);
	const struct variable *variable = &variables->variables[number];

	value->locals = locals;
	value->number = number;
	value->size = variable->size;
	value->name = (const char *)variables + variable->name;
	value->reason = variable->reason;
	if (!variable->is_static && call->event == PLAN_ENTER)
		value->reason = SHIM_UNAVAILABLE_NOT_YET;
	else if (!variable->is_static && was_jumped_to(call))
		value->reason = SHIM_UNAVAILABLE_CLOBBERED;
	/* Larger than any buffer. */
	else if (variable->size > CONTEXT_BUFFER_MAX)
		value->reason = SHIM_UNAVAILABLE_NOT_UNDERSTOOD;
}

static uint32_t count_parameters(const struct variables *variables,
				 bool *has_this)
{
	uint32_t count = 0;

	*has_this = false;
	for (uint32_t i = 0; i < variables->parameter_count; i++) {
		*has_this |= variables->variables[i].is_this;
		count += !variables->variables[i].is_hidden;
	}
	return count;
}

static enum shim_result find_at_leave(const struct plan_call *call,
				      enum shim_call_value kind,
				      uint32_t position, struct value *value)
{
	const struct variables *variables;
	const struct locals *locals;
	enum shim_result r = locals_find(call->registers, &locals);
	uint32_t number, count;
	bool has_this;

	if (r != SHIM_OK)
		return r;
	variables = locals_variables(locals);
	if (variables->lacks_parameters)
		return SHIM_E_FUNCTION_NOT_IL;
	count = count_parameters(variables, &has_this);
	if (!find_parameter(kind, position, has_this, count, &number))
		return SHIM_OK;
	for (uint32_t i = 0; i < variables->parameter_count; i++)
		if (!variables->variables[i].is_hidden && number-- == 0)
			describe_variable(call, locals, i, value);
	return SHIM_OK;
}

static enum shim_result find_local(const struct plan_call *call,
				   uint32_t position, struct value *value)
{
	const struct variables *variables;
	const struct locals *locals;
	enum shim_result r = locals_find(call->registers, &locals);

	if (r != SHIM_OK)
		return r;
	variables = locals_variables(locals);
	if (position < variables->count - variables->parameter_count)
		describe_variable(call, locals,
				  variables->parameter_count + position, value);
	return SHIM_OK;
}

static enum shim_result find_result(const struct plan_call *call,
				    struct value *value)
{
	struct results_value result;
	enum shim_result r;

	if (call->event != PLAN_LEAVE)
		return SHIM_OK;
	r = results_find(thread_current, call->registers, &result);
	value->start = result.start;
	value->size = result.length;
	value->reason = result.reason;
	return r;
}

/* Returns SHIM_OK also if the value is unavailable. */
static enum shim_result find_value(const struct plan_call *call,
				   enum shim_call_value kind, uint32_t position,
				   struct value *value)
{
	enum shim_result r = SHIM_OK;

	*value = (struct value){ .reason = SHIM_UNAVAILABLE_NONE };
	if (kind == SHIM_CALL_LOCAL)
		r = find_local(call, position, value);
	else if (kind == SHIM_CALL_RESULT)
		r = find_result(call, value);
	else if (call->event == PLAN_ENTER)
		r = find_at_enter(call, kind, position, value);
	else
		r = find_at_leave(call, kind, position, value);
	if (r == SHIM_E_FUNCTION_NOT_IL) {
		value->reason = SHIM_UNAVAILABLE_NO_DEBUG_INFORMATION;
		return SHIM_OK;
	}
	return r;
}

static void copy_bytes(unsigned char *to, const unsigned char *from,
		       size_t size)
{
	while (size-- > 0)
		*to++ = *from++;
}

/* Returns a buffer with the value, or NULL; sets the reason if reading fails. */
static void *copy_value(const struct plan_call *call, struct value *value)
{
	void *buffer;

	if (value->reason != SHIM_AVAILABLE || value->size == 0)
		return NULL;
	buffer = context_buffer_take(value->size);
	if (!buffer)
		return NULL;
	if (!value->locals) {
		copy_bytes(buffer, (const unsigned char *)value->start,
			   value->size);
		return buffer;
	}
	value->reason = locals_read_value(thread_current, call->registers,
					  value->locals, value->number, buffer);
	if (value->reason == SHIM_AVAILABLE)
		return buffer;
	context_buffer_give_back(buffer);
	return NULL;
}

static void *get_value(const struct shim_call_context *context,
		       enum shim_call_value kind, uint32_t position)
{
	const struct plan_call *call = find_call(context);
	struct value value;

	if (!call || find_value(call, kind, position, &value) != SHIM_OK)
		return NULL;
	return copy_value(call, &value);
}

#define IS_ALLOWED is_allowed(__func__, __builtin_return_address(0))

static bool is_allowed(const char *function, const void *caller)
{
	enum shim_result r = contract_check(CONTRACT_SYNC, NULL, false);

	return r == SHIM_OK || contract_refused(r, function, caller) == SHIM_OK;
}

void *shim_call_context_get_this(struct shim_call_context *context)
{
	return IS_ALLOWED ? get_value(context, SHIM_CALL_THIS, 0) : NULL;
}

void *shim_call_context_get_argument(struct shim_call_context *context,
				     uint32_t position)
{
	return IS_ALLOWED ? get_value(context, SHIM_CALL_ARGUMENT, position) :
			    NULL;
}

void *shim_call_context_get_local(struct shim_call_context *context,
				  uint32_t position)
{
	return IS_ALLOWED ? get_value(context, SHIM_CALL_LOCAL, position) :
			    NULL;
}

void *shim_call_context_get_result(struct shim_call_context *context)
{
	return IS_ALLOWED ? get_value(context, SHIM_CALL_RESULT, 0) : NULL;
}

void shim_call_context_free_buffer(void *buffer)
{
	if (buffer)
		context_buffer_give_back(buffer);
}

size_t shim_call_context_get_size(const void *buffer)
{
	return context_buffer_size(buffer);
}

/* --- queries about values --- */

static enum shim_result count_arguments(const struct plan_call *call,
					bool *has_this, uint32_t *count)
{
	const struct recipe *recipe;
	const struct locals *locals;
	enum shim_result r;

	if (call->event == PLAN_ENTER) {
		r = values_find(thread_current, call->registers, &recipe);
		if (r != SHIM_OK)
			return r;
		*has_this = values_has_this(recipe);
		*count = values_count(recipe);
		return SHIM_OK;
	}
	r = locals_find(call->registers, &locals);
	if (r != SHIM_OK)
		return r;
	if (locals_variables(locals)->lacks_parameters)
		return SHIM_E_FUNCTION_NOT_IL;
	*count = count_parameters(locals_variables(locals), has_this);
	return SHIM_OK;
}

static enum shim_result count_locals(const struct plan_call *call,
				     uint32_t *count)
{
	const struct locals *locals;
	enum shim_result r = locals_find(call->registers, &locals);

	if (r == SHIM_OK)
		*count = locals_variables(locals)->count -
			 locals_variables(locals)->parameter_count;
	return r;
}

/* Counts a result that is unavailable, too. */
static enum shim_result count_results(const struct plan_call *call,
				      uint32_t *count)
{
	struct value value = { .reason = SHIM_UNAVAILABLE_NONE };
	enum shim_result r = find_result(call, &value);

	if (r == SHIM_OK)
		*count = value.reason != SHIM_UNAVAILABLE_NONE;
	return r;
}

enum shim_result shim_call_context_get_count(struct shim_call_context *context,
					     enum shim_call_value kind,
					     uint32_t *number)
{
	const struct plan_call *call;
	enum shim_result r;
	uint32_t count;
	bool has_this;

	ENTRY_SYNC();
	call = find_call(context);
	if (!call || !number || kind > SHIM_CALL_RESULT)
		return SHIM_E_INVALIDARG;
	if (kind == SHIM_CALL_LOCAL)
		return count_locals(call, number);
	if (kind == SHIM_CALL_RESULT)
		return count_results(call, number);
	r = count_arguments(call, &has_this, &count);
	if (r == SHIM_OK)
		*number = kind == SHIM_CALL_THIS ? has_this : count - has_this;
	return r;
}

/* Reads the value once, to find out whether it can be read. */
static void try_to_read(const struct plan_call *call, struct value *value)
{
	void *buffer = value->locals ? copy_value(call, value) : NULL;

	if (buffer)
		context_buffer_give_back(buffer);
}

enum shim_result shim_call_context_get_info(struct shim_call_context *context,
					    enum shim_call_value kind,
					    uint32_t position, uint32_t *size,
					    enum shim_unavailable *reason)
{
	const struct plan_call *call;
	struct value value;
	enum shim_result r;

	ENTRY_SYNC();
	call = find_call(context);
	if (!call || kind > SHIM_CALL_RESULT)
		return SHIM_E_INVALIDARG;
	r = find_value(call, kind, position, &value);
	if (r != SHIM_OK)
		return r;
	try_to_read(call, &value);
	if (size)
		*size = value.size;
	if (reason)
		*reason = value.reason;
	return SHIM_OK;
}

enum shim_result
shim_call_context_get_local_info(struct shim_call_context *context,
				 uint32_t position, uint32_t *size,
				 enum shim_unavailable *reason, uint32_t count,
				 uint32_t *total, char *name)
{
	const struct plan_call *call;
	struct value value;
	enum shim_result r;

	ENTRY_SYNC();
	call = find_call(context);
	if (!call || !output_is_valid(count, name))
		return SHIM_E_INVALIDARG;
	r = find_value(call, SHIM_CALL_LOCAL, position, &value);
	if (r != SHIM_OK)
		return r;
	if (value.reason == SHIM_UNAVAILABLE_NO_DEBUG_INFORMATION)
		return SHIM_E_FUNCTION_NOT_IL;
	if (!value.name)
		return SHIM_E_INVALIDARG;
	try_to_read(call, &value);
	if (size)
		*size = value.size;
	if (reason)
		*reason = value.reason;
	output_text(value.name, text_length(value.name) + 1, count, total,
		    name);
	return SHIM_OK;
}
