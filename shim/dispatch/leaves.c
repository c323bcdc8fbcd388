/*
 * Sorts calls of the leave hook into returns, tail calls and unwinding.  The code after
 * the call site decides.  shim stores the result by call site, so a later leave costs
 * one comparison.
 */
#include "dispatch/leaves.h"

#include "inspect/code.h"
#include "runtime/asm_offsets.h"
#include "runtime/landings.h"

#include <shim/banned.h>

/* In dispatch.S. */
void leaves_sort(void);
void table_nothing(void);

/* The hooks that leaves_sort jumps to.  dispatch.S uses the first field. */
__attribute__((visibility("hidden"))) struct leaves_hooks leaves_hooks;

/* The return addresses of calls of the leave hook after which the function returns.
 * With this bit, it returns unless a landing pad runs. */
#define UNLESS_LANDED (1ull << LAYOUT_LEAVES_BIT)

__attribute__((visibility("hidden")))
uint64_t leaves_front[1u << (32 - LAYOUT_LEAVES_SHIFT)];

/* Incremented when the entries are cleared. */
static uint32_t age;

/* dispatch.S calls this function, and jumps to the hook that it returns. */
__attribute__((visibility("hidden"))) void *
leaves_decide(shim_function function, const void *site, uintptr_t frame,
	      uintptr_t return_address);

static void *or_nothing(void *hook)
{
	return hook ? hook : (void *)table_nothing;
}

void *leaves_sort_to(const struct leaves_hooks *hooks)
{
	__atomic_store_n(&leaves_hooks.leave, or_nothing(hooks->leave),
			 __ATOMIC_RELEASE);
	__atomic_store_n(&leaves_hooks.tail_call, or_nothing(hooks->tail_call),
			 __ATOMIC_RELEASE);
	__atomic_store_n(&leaves_hooks.unwinding, or_nothing(hooks->unwinding),
			 __ATOMIC_RELEASE);
	return (void *)leaves_sort;
}

static void clear_entries(void)
{
	__atomic_add_fetch(&age, 1, __ATOMIC_SEQ_CST);
	for (unsigned i = 0; i < sizeof(leaves_front) / sizeof(*leaves_front);
	     i++)
		if (__atomic_load_n(&leaves_front[i], __ATOMIC_SEQ_CST))
			__atomic_store_n(&leaves_front[i], 0, __ATOMIC_SEQ_CST);
}

SUBSCRIBE(code_forgotten, clear_entries);

/* Stores an entry.  If another thread clears the table meanwhile, it clears this entry,
 * or this thread sees the new age. */
static void store_entry(uintptr_t return_address, uint64_t entry,
			uint32_t before)
{
	uint64_t *place = &leaves_front[(uint32_t)return_address *
						(uint32_t)LAYOUT_FRONT_FACTOR >>
					LAYOUT_LEAVES_SHIFT];

	__atomic_store_n(place, entry, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&age, __ATOMIC_SEQ_CST) != before)
		__atomic_store_n(place, 0, __ATOMIC_SEQ_CST);
}

void *leaves_decide(shim_function function, const void *site, uintptr_t frame,
		    uintptr_t return_address)
{
	const struct plan_call call = {
		.event = PLAN_LEAVE,
		.function = function,
		.site = site,
		.frame = frame,
		.return_address = return_address,
	};
	uint32_t before = __atomic_load_n(&age, __ATOMIC_SEQ_CST);
	uintptr_t target;

	switch (code_leave_kind(&call, &target)) {
	case CODE_RETURNS:
		store_entry(return_address, return_address, before);
		break;
	case CODE_DEPENDS:
		store_entry(return_address, return_address | UNLESS_LANDED,
			    before);
		if (landings_count > 0 && landings_has(frame))
			return leaves_hooks.unwinding;
		break;
	case CODE_TAIL_CALLS: return leaves_hooks.tail_call;
	case CODE_UNWINDS: return leaves_hooks.unwinding;
	}
	return leaves_hooks.leave;
}
