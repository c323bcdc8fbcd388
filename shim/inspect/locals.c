/*
 * Values of local variables at a hook.  At the first query at a call site, shim gets
 * the location of each variable from debug information.  Later queries read registers
 * and memory by that list.
 */
#include "inspect/locals.h"

#include "inspect/code_cache.h"
#include "inspect/info.h"
#include "os/sys.h"
#include "runtime/state.h"
#include "runtime/thread.h"

#include <shim/banned.h>

#define STACK_MAX 8

struct locals {
	struct code_cache_entry cached;
	enum shim_result result;
	uintptr_t start, end, bias; /* of its image */
	struct variables variables; /* followed by its parts */
};

static struct code_cache table;

/* --- reading debug information --- */

struct job {
	const struct arch_frame *frame;
	uint32_t age; /* the age before the query */
	enum shim_result result;
	uintptr_t start, end, bias;
	const struct variables *variables; /* NULL: none */
	const struct locals *made;
};

/* State lock held. */
static int store_locals(void *argument)
{
	struct job *job = argument;
	size_t more = job->variables ?
			      job->variables->size - sizeof(*job->variables) :
			      0;
	struct locals *locals = code_cache_allocate(sizeof(*locals) + more);

	ASSERT_LOCKED();
	if (!locals)
		return -1;
	locals->cached = (struct code_cache_entry){
		.address = job->frame->return_address,
		.function = job->frame->function,
		.age = job->age,
		.size = (uint32_t)(sizeof(*locals) + more),
	};
	locals->result = job->result;
	locals->start = job->start;
	locals->end = job->end;
	locals->bias = job->bias;
	if (job->variables)
		__builtin_memcpy(&locals->variables, job->variables,
				 job->variables->size);
	if (!code_cache_publish(&table, &locals->cached))
		return -1;
	job->made = locals;
	return 0;
}

static void keep_answer(const struct debuginfo_answer *answer, void *argument)
{
	struct job *job = argument;

	job->variables = answer->data;
	job->result = SHIM_OK;
	state_call_locked(store_locals, job);
}

static enum shim_result read_locals(const struct arch_frame *frame,
				    const struct locals **locals)
{
	struct job job = {
		.frame = frame,
		.age = code_cache_age(),
		.result = SHIM_E_FUNCTION_NOT_IL,
	};
	enum shim_result r;

	if (!info_image(frame->function, &job.start, &job.end, &job.bias))
		return SHIM_E_FUNCTION_NOT_IL;
	r = info_ask_at(HELPER_LOCALS, frame->function, frame->return_address,
			keep_answer, &job);
	if (r == SHIM_E_NOT_YET_AVAILABLE)
		return r;
	if (r == SHIM_E_OUTOFMEMORY)
		return SHIM_E_UNEXPECTED;
	if (r != SHIM_OK)
		state_call_locked(store_locals, &job);
	if (!job.made)
		return SHIM_E_UNEXPECTED;
	*locals = job.made;
	return job.made->result;
}

enum shim_result locals_find(const struct arch_frame *frame,
			     const struct locals **locals)
{
	*locals = (const void *)code_cache_find(&table, frame->return_address,
						frame->function, 0);
	return *locals ? (*locals)->result : read_locals(frame, locals);
}

const struct variables *locals_variables(const struct locals *locals)
{
	return &locals->variables;
}

/* --- evaluating a variable --- */

struct unwind {
	const struct thread *self;
	const struct arch_frame *frame;
	const struct locals *locals;
	uint64_t numbers[STACK_MAX];
	unsigned count;
	unsigned char *value;
	uint32_t left;
	bool is_computed; /* a step has loaded memory, so addresses may be invalid */
	bool has_failed;
};

static uint64_t pop(struct unwind *walk)
{
	if (walk->count == 0) {
		walk->has_failed = true;
		return 0;
	}
	return walk->numbers[--walk->count];
}

static void push(struct unwind *walk, uint64_t number)
{
	if (walk->count == STACK_MAX)
		walk->has_failed = true;
	else
		walk->numbers[walk->count++] = number;
}

static void copy_bytes(unsigned char *to, const unsigned char *from,
		       size_t size)
{
	while (size >= 8) {
		uint64_t part;

		__builtin_memcpy(&part, from, 8);
		__builtin_memcpy(to, &part, 8);
		to += 8;
		from += 8;
		size -= 8;
	}
	while (size-- > 0)
		*to++ = *from++;
}

/* Memory below the stack pointer is unused, and signals overwrite it. */
static bool is_on_stack(const struct unwind *walk, uintptr_t address,
			size_t size)
{
	uintptr_t sp = ARCH_FRAME_CFA(walk->frame);
	const struct thread *self = walk->self;

	return sp >= self->stack_low && address >= sp &&
	       address <= self->stack_high &&
	       size <= self->stack_high - address;
}

static bool is_in_image(const struct unwind *walk, uintptr_t address,
			size_t size)
{
	return address >= walk->locals->start && address < walk->locals->end &&
	       size <= walk->locals->end - address;
}

static void read_memory(struct unwind *walk, uintptr_t address, void *to,
			size_t size)
{
	if (is_on_stack(walk, address, size) ||
	    (!walk->is_computed && is_in_image(walk, address, size)))
		copy_bytes(to, (const unsigned char *)address, size);
	else if (walk->has_failed ||
		 sys_peek((const void *)address, to, size) < 0)
		walk->has_failed = true;
}

static void append_bytes(struct unwind *walk, const struct variable_step *step)
{
	uint64_t number = pop(walk);
	uint32_t size = (uint32_t)step->value;

	if (step->value < 0 || step->value > walk->left ||
	    (step->kind == VARIABLE_TAKE_NUMBER && step->value > 8)) {
		walk->has_failed = true;
		return;
	}
	if (step->kind == VARIABLE_TAKE_NUMBER)
		copy_bytes(walk->value, (const unsigned char *)&number, size);
	else
		read_memory(walk, number, walk->value, size);
	walk->value += size;
	walk->left -= size;
}

static uint64_t read_register(struct unwind *walk, unsigned number)
{
	uintptr_t value = 0;

	if (number == VARIABLE_SP)
		return ARCH_FRAME_CFA(walk->frame);
	if (!walk->frame->has_registers ||
	    !arch_frame_register(walk->frame, number, &value))
		walk->has_failed = true;
	return value;
}

static uint64_t combine(enum variable_step_kind kind, uint64_t lower,
			uint64_t upper)
{
	switch (kind) {
	case VARIABLE_ADD: return lower + upper;
	case VARIABLE_SUBTRACT: return lower - upper;
	case VARIABLE_MULTIPLY: return lower * upper;
	case VARIABLE_AND: return lower & upper;
	case VARIABLE_OR: return lower | upper;
	case VARIABLE_XOR: return lower ^ upper;
	case VARIABLE_SHIFT_LEFT: return upper < 64 ? lower << upper : 0;
	case VARIABLE_SHIFT_RIGHT: return upper < 64 ? lower >> upper : 0;
	default: return (uint64_t)((int64_t)lower >> (upper < 63 ? upper : 63));
	}
}

static void load_number(struct unwind *walk, unsigned size)
{
	uint64_t number = 0;

	read_memory(walk, pop(walk), &number, size <= 8 ? size : 8);
	push(walk, number);
}

static void run_step(struct unwind *walk, const struct variable_step *step)
{
	uint64_t upper, lower;

	switch ((enum variable_step_kind)step->kind) {
	case VARIABLE_NUMBER: push(walk, (uint64_t)step->value); return;
	case VARIABLE_REGISTER:
		push(walk,
		     read_register(walk, step->number) + (uint64_t)step->value);
		return;
	case VARIABLE_ADDRESS:
		push(walk, walk->locals->bias + (uint64_t)step->value);
		return;
	case VARIABLE_LOAD:
		load_number(walk, step->number);
		walk->is_computed = true;
		return;
	case VARIABLE_PICK:
		if (step->number >= walk->count)
			walk->has_failed = true;
		else
			push(walk,
			     walk->numbers[walk->count - 1 - step->number]);
		return;
	case VARIABLE_DROP: pop(walk); return;
	case VARIABLE_SWAP:
		upper = pop(walk);
		lower = pop(walk);
		push(walk, upper);
		push(walk, lower);
		return;
	case VARIABLE_NEGATE: push(walk, -pop(walk)); return;
	case VARIABLE_INVERT: push(walk, ~pop(walk)); return;
	case VARIABLE_TAKE_MEMORY:
	case VARIABLE_TAKE_NUMBER: append_bytes(walk, step); return;
	default:
		upper = pop(walk);
		lower = pop(walk);
		push(walk, combine(step->kind, lower, upper));
	}
}

enum shim_unavailable locals_read_value(const struct thread *self,
					const struct arch_frame *frame,
					const struct locals *locals,
					uint32_t number, void *value)
{
	const struct variable *variable = &locals->variables.variables[number];
	const struct variable_step *steps = variables_steps(&locals->variables,
							    variable);
	struct unwind walk = {
		.self = self,
		.frame = frame,
		.locals = locals,
		.value = value,
		.left = variable->size,
	};

	if (variable->reason != SHIM_AVAILABLE)
		return variable->reason;
	for (uint32_t i = 0; i < variable->step_count && !walk.has_failed; i++)
		run_step(&walk, &steps[i]);
	return walk.has_failed || walk.left > 0 ? SHIM_UNAVAILABLE_CLOBBERED :
						  SHIM_AVAILABLE;
}
