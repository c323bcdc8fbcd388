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
#define PARTS_MAX 32

/* The place of counter 0 has @uncounted. */
static struct part {
	uintptr_t at;
	void (*uncounted)(void);
} parts[PARTS_MAX];
static unsigned part_count;

static uintptr_t make_part(void (*uncounted)(void), uintptr_t start,
			   uintptr_t end)
{
	uintptr_t at = part_count < PARTS_MAX ? near_map(start, SIZE) : 0;

	if (!at)
		return 0;
	if (!near_reaches(at, SIZE, start, end)) {
		sys_unmap((void *)at, SIZE);
		return 0;
	}
	*(void (**)(void))at = uncounted;
	for (uint32_t i = 1; i < SHIM_COUNTERS; i++)
		arch_put_counter((unsigned char *)at + i * ARCH_COUNTER_SIZE,
				 call_counters_word(), i, (const void *)at);
	if (sys_protect((void *)at, SIZE, PROT_READ | PROT_EXEC) < 0) {
		sys_unmap((void *)at, SIZE);
		return 0;
	}
	parts[part_count] = (struct part){ at, uncounted };
	__atomic_store_n(&part_count, part_count + 1, __ATOMIC_RELEASE);
	return at;
}

uintptr_t call_counter_code(void (*uncounted)(void), uintptr_t start,
			    uintptr_t end, uint32_t counter)
{
	static uintptr_t failed;
	uintptr_t part = 0;

	ASSERT_LOCKED();
	for (unsigned i = 0; i < part_count && !part; i++)
		if (parts[i].uncounted == uncounted &&
		    near_reaches(parts[i].at, SIZE, start, end))
			part = parts[i].at;
	/* A search that failed is not repeated for each call. */
	if (!part && failed != start) {
		part = make_part(uncounted, start, end);
		failed = part ? failed : start;
	}
	return part ? part + counter * ARCH_COUNTER_SIZE : 0;
}

bool call_counters_have(uintptr_t address)
{
	unsigned count = __atomic_load_n(&part_count, __ATOMIC_ACQUIRE);

	for (unsigned i = 0; i < count; i++)
		if (address - parts[i].at < SIZE)
			return true;
	return false;
}

#else

uintptr_t call_counter_code(void (*uncounted)(void), uintptr_t start,
			    uintptr_t end, uint32_t counter)
{
	(void)uncounted, (void)start, (void)end, (void)counter;
	return 0;
}

bool call_counters_have(uintptr_t address)
{
	(void)address;
	return false;
}

#endif
