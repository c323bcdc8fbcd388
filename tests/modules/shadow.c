/*
 * A shadow stack: a list of each thread's open calls, for samples to read.
 *
 * A signal may come between any two instructions of a hook.  Its handler belongs to the
 * program, and its calls come and go above the interrupted ones; or a sample reads the
 * stack in this state.  So a hook first takes a slot, with one store, and then fills
 * it.  An unfilled slot is marked, because the code that frees a slot empties it first.
 *
 * A call that longjmp or an exception has ended does not call the leave hook.  Its
 * frame lies below the stack pointer of the next call or leave, which drops it.  (This
 * holds on one stack.  For programs with contexts or signal stacks of their own, keep
 * one of these for each range that shim_stack_find returns.)
 */
#include <shim/cpu.h>
#include <shim/hooks.h>
#include <shim/record.h>
#include <shim/sampling.h>

#include <stdio.h>
#include <stdlib.h>

#define PLACES 32768

struct place {
	shim_function function; /* 0: not filled yet */
	uintptr_t sp;
};

struct stack {
	uint32_t depth, deepest;
	unsigned long calls, lost, wrong;
	struct place places[PLACES];
};

static struct shim_profiler_handle *handle;
static struct stack all; /* the sum of all threads that have exited */
static unsigned long samples, open_calls, untidy;

/* NULL before thread_started and after thread_exited. */
static struct stack *mine(void)
{
	void **data;

	return shim_thread_data(handle, &data) == SHIM_OK ? *data : NULL;
}

/* The compiler keeps the order of these two stores; the processor does for its own
 * thread. */
static void set_depth(struct stack *stack, uint32_t depth)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	*(volatile uint32_t *)&stack->depth = depth;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* Drops calls whose frames are below @sp: they have ended.  An unfilled slot belongs to
 * the interrupted hook. */
static void drop(struct stack *stack, uintptr_t sp)
{
	uint32_t depth = stack->depth;

	while (depth > 0 && stack->places[depth - 1].function != 0 &&
	       stack->places[depth - 1].sp < sp) {
		stack->places[depth - 1].function = 0;
		set_depth(stack, --depth);
	}
}

static void enter(union shim_function_or_client function)
{
	struct stack *stack = mine();
	uintptr_t sp = SHIM_CALLER_SP;
	uint32_t depth;

	if (!stack)
		return;
	stack->calls++;
	/* The frame of this call is lower than that of any other open call. */
	drop(stack, sp + 1);
	depth = stack->depth;
	if (depth == PLACES) {
		stack->lost++;
		return;
	}
	set_depth(stack, depth + 1);
	stack->places[depth].sp = sp;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	stack->places[depth].function = function.function;
	if (depth >= stack->deepest)
		stack->deepest = depth + 1;
}

static void leave(union shim_function_or_client function)
{
	struct stack *stack = mine();
	uint32_t depth;

	if (!stack)
		return;
	/* The frames of its callees lie below the address of its call. */
	drop(stack, SHIM_CALLER_SP);
	depth = stack->depth;
	if (depth == 0 ||
	    stack->places[depth - 1].function != function.function) {
		stack->wrong++;
		return;
	}
	stack->places[depth - 1].function = 0;
	set_depth(stack, depth - 1);
}

/* The sample may have interrupted any of these functions. */
static void hit(struct shim_profiler *profiler, uintptr_t ip,
		const void *context, uint32_t weight)
{
	const struct stack *stack = mine();
	uint32_t depth = stack ? stack->depth : 0, holes = 0;
	uintptr_t sp = UINTPTR_MAX;

	(void)profiler, (void)ip, (void)context, (void)weight;
	__atomic_add_fetch(&samples, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&open_calls, depth, __ATOMIC_RELAXED);
	/* The innermost call may be about to be filled or dropped; one more may be, if the
	 * program's signal handler has interrupted that. */
	for (uint32_t i = 0; i + 1 < depth; i++) {
		if (stack->places[i].function == 0) {
			holes++;
			continue;
		}
		if (stack->places[i].sp >= sp)
			__atomic_add_fetch(&untidy, 1, __ATOMIC_RELAXED);
		sp = stack->places[i].sp;
	}
	if (holes > 1)
		__atomic_add_fetch(&untidy, 1, __ATOMIC_RELAXED);
}

static void started(struct shim_profiler *profiler, shim_thread thread)
{
	void **data;

	(void)profiler, (void)thread;
	if (shim_thread_data(handle, &data) == SHIM_OK)
		*data = calloc(1, sizeof(struct stack));
}

static void add(const struct stack *stack)
{
	__atomic_add_fetch(&all.calls, stack->calls, __ATOMIC_RELAXED);
	__atomic_add_fetch(&all.lost, stack->lost, __ATOMIC_RELAXED);
	__atomic_add_fetch(&all.wrong, stack->wrong, __ATOMIC_RELAXED);
	if (stack->deepest > all.deepest)
		all.deepest = stack->deepest;
}

static void exited(struct shim_profiler *profiler, shim_thread thread)
{
	struct stack *stack;
	void **data;

	(void)profiler, (void)thread;
	if (shim_thread_data(handle, &data) != SHIM_OK || !*data)
		return;
	stack = *data;
	*data = NULL;
	add(stack);
	free(stack);
}

static void ended(struct shim_profiler *profiler)
{
	char line[200];

	(void)profiler;
	if (mine())
		add(mine());
	snprintf(
		line, sizeof(line),
		"shadow: %lu calls, deepest %u, lost %lu, wrong %lu; %lu samples"
		" with %lu open calls, untidy %lu",
		all.calls, all.deepest, all.lost, all.wrong, samples,
		open_calls, untidy);
	shim_record_log(line);
}

SHIM_PROFILER_MODULE(shadow)
{
	handle = shim_profiler_create(NULL);
	shim_profiler_on_thread_started(handle, started);
	shim_profiler_on_thread_exited(handle, exited);
	shim_profiler_on_sample_hit(handle, hit);
	shim_profiler_on_runtime_shutdown_end(handle, ended);
	shim_profiler_set_enter_leave_function_hooks3(handle, enter, leave,
						      NULL);
	shim_profiler_enable_sampling(handle);
	return shim_profiler_set_sample_mode(handle, SHIM_SAMPLE_THREAD, 1000);
}
