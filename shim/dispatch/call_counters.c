/*
 * Code that counts calls: for each counter a few instructions, which are written before
 * the memory becomes executable and never changed.  Images that are near each other
 * share it.
 */
#include "dispatch/call_counters.h"

#include "arch.h"
#include "dispatch/near.h"
#include "os/sys.h"
#include "runtime/state.h"

#include <shim/builtin.h>
#include <sys/mman.h>

#include <shim/banned.h>

__thread uint64_t *call_counters;

#ifdef ARCH_COUNTER_SIZE

#define PAGE 4096u
#define SIZE \
	(((uintptr_t)SHIM_COUNTERS * ARCH_COUNTER_SIZE + PAGE - 1) & \
	 ~(uintptr_t)(PAGE - 1))
#define PARTS_MAX 16

extern void __cyg_profile_func_enter(void *function, void *site);

/* Their addresses.  The place of counter 0 has the address of the hook. */
static uintptr_t parts[PARTS_MAX];
static unsigned part_count;

static uintptr_t make_part(uintptr_t start, uintptr_t end)
{
	uintptr_t at = part_count < PARTS_MAX ? near_map(start, SIZE) : 0;

	if (!at)
		return 0;
	if (!near_reaches(at, SIZE, start, end)) {
		sys_unmap((void *)at, SIZE);
		return 0;
	}
	*(void (**)(void *, void *))at = __cyg_profile_func_enter;
	for (uint32_t i = 1; i < SHIM_COUNTERS; i++)
		arch_put_counter((unsigned char *)at + i * ARCH_COUNTER_SIZE,
				 call_counters_word(), i, (const void *)at);
	if (sys_protect((void *)at, SIZE, PROT_READ | PROT_EXEC) < 0) {
		sys_unmap((void *)at, SIZE);
		return 0;
	}
	parts[part_count] = at;
	__atomic_store_n(&part_count, part_count + 1, __ATOMIC_RELEASE);
	return at;
}

uintptr_t call_counter_code(uintptr_t start, uintptr_t end, uint32_t counter)
{
	static uintptr_t failed;
	uintptr_t part = 0;

	ASSERT_LOCKED();
	for (unsigned i = 0; i < part_count && !part; i++)
		if (near_reaches(parts[i], SIZE, start, end))
			part = parts[i];
	/* A search that failed is not repeated for each call. */
	if (!part && failed != start) {
		part = make_part(start, end);
		failed = part ? failed : start;
	}
	return part ? part + counter * ARCH_COUNTER_SIZE : 0;
}

bool call_counters_have(uintptr_t address)
{
	unsigned count = __atomic_load_n(&part_count, __ATOMIC_ACQUIRE);

	for (unsigned i = 0; i < count; i++)
		if (address - parts[i] < SIZE)
			return true;
	return false;
}

#else

uintptr_t call_counter_code(uintptr_t start, uintptr_t end, uint32_t counter)
{
	(void)start, (void)end, (void)counter;
	return 0;
}

bool call_counters_have(uintptr_t address)
{
	(void)address;
	return false;
}

#endif
