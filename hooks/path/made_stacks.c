/* An entry stays, and a program with many coroutines uses the same memory again. */
#include "path/made_stacks.h"

#include <stddef.h>

#include <shim/banned.h>

#define STACKS_MAX 4096

static struct made_stack stacks[STACKS_MAX];
static uint32_t count;

static uint32_t used(void)
{
	uint32_t n = __atomic_load_n(&count, __ATOMIC_ACQUIRE);

	return n < STACKS_MAX ? n : STACKS_MAX;
}

/* 0 while another thread adds the entry. */
static uintptr_t high_of(const struct made_stack *stack)
{
	return __atomic_load_n(&stack->high, __ATOMIC_ACQUIRE);
}

static struct made_stack *add(uintptr_t low, uintptr_t high)
{
	uint32_t i = __atomic_fetch_add(&count, 1, __ATOMIC_ACQ_REL);

	if (i >= STACKS_MAX) {
		__atomic_store_n(&count, STACKS_MAX, __ATOMIC_RELEASE);
		return NULL;
	}
	stacks[i].low = low;
	__atomic_store_n(&stacks[i].high, high, __ATOMIC_RELEASE);
	return &stacks[i];
}

struct made_stack *made_stacks_note(uintptr_t low, uintptr_t high)
{
	struct made_stack *same = NULL;

	for (uint32_t i = used(); i-- > 0;) {
		struct made_stack *stack = &stacks[i];

		if (high_of(stack) <= low || stack->low >= high)
			continue;
		__atomic_fetch_add(&stack->changes, 1, __ATOMIC_RELEASE);
		if (stack->low == low && stack->high == high)
			same = stack;
	}
	return same ? same : add(low, high);
}

struct made_stack *made_stacks_find(uintptr_t sp)
{
	for (uint32_t i = used(); i-- > 0;)
		if (stacks[i].low < sp && sp <= high_of(&stacks[i]))
			return &stacks[i];
	return NULL;
}

uint32_t made_stacks_take(struct made_stack *stack, const struct tree *tree)
{
	if (__atomic_exchange_n(&stack->owner, tree, __ATOMIC_ACQ_REL) == tree)
		return __atomic_load_n(&stack->changes, __ATOMIC_ACQUIRE);
	return __atomic_add_fetch(&stack->changes, 1, __ATOMIC_ACQ_REL);
}
