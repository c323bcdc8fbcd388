/*
 * The stack pointer, the clock and the counters that a fast hook needs.
 *
 * shim_local_add, shim_fetch_add and shim_local_cas are one instruction each: a
 * signal handler on the same thread runs before or after it, never in between.
 * On x86-64 they are not atomic against other threads, and cost no more than
 * plain operations.
 *
 * Example: a counter for each thread, and the caller's stack pointer.
 *
 *     #include <shim/cpu.h>
 *     #include <shim/hooks.h>
 *
 *     static __thread uint64_t calls;
 *     static __thread uintptr_t last_sp;
 *
 *     void entered(union shim_function_or_client function);
 *     void entered(union shim_function_or_client function)
 *     {
 *             (void)function;
 *             shim_local_add(&calls, 1);
 *             last_sp = SHIM_CALLER_SP;
 *     }
 */
#ifndef SHIM_CPU_H
#define SHIM_CPU_H

#include <stdbool.h>
#include <stdint.h>

/* The stack pointer of the caller of the function that uses this, before the
 * call.  (On AArch64, clang's __builtin_dwarf_cfa is another address.) */
#if defined(__aarch64__) && defined(__clang__)
#define SHIM_CALLER_SP ((uintptr_t)__builtin_sponentry())
#else
#define SHIM_CALLER_SP ((uintptr_t)__builtin_dwarf_cfa())
#endif

/* libc's flag for processes with a single thread, whose counters need no locked
 * instruction. */
extern char __libc_single_threaded __attribute__((weak));

static inline bool shim_is_single_threaded(void)
{
	return &__libc_single_threaded && __libc_single_threaded;
}

#if defined(__x86_64__)

/* Reads the exact clock: SHIM_CLOCK_TSC in <shim/format.h>. */
static inline uint64_t shim_clock_read(void)
{
	/* rdtsc clears the upper halves of both registers. */
	uint64_t low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high)::"memory");
	return high << 32 | low;
}

static inline void shim_local_add(uint64_t *counter, uint64_t value)
{
	__asm__("addq %1, %0" : "+m"(*counter) : "er"(value) : "cc");
}

static inline uint64_t shim_fetch_add(uint64_t *counter, uint64_t value)
{
	__asm__ volatile("xaddq %0, %1"
			 : "+r"(value), "+m"(*counter)::"cc", "memory");
	return value;
}

/* Changes *place from @old to @new_value; returns false if it was not @old. */
static inline bool shim_local_cas(void *place, void *old, void *new_value)
{
	bool done;

	__asm__ volatile("cmpxchgq %3, %1"
			 : "=@ccz"(done), "+m"(*(void **)place), "+a"(old)
			 : "r"(new_value)
			 : "memory");
	return done;
}

/*
 * Whether the frame that called a hook at stack pointer @sp, and returns to
 * @site, ends at or below @end: a call pushed @site as the frame's last word.
 * Reads the stack between the two, and one word below.
 */
static inline bool shim_frame_ends(uintptr_t sp, const void *site,
				   uintptr_t end)
{
	for (sp -= sizeof(site); sp < end; sp += sizeof(site))
		if (*(const void *volatile *)sp == site)
			return true;
	return false;
}

/* The return address of the code that called a hook at stack pointer @sp; 0:
 * not known. */
static inline uintptr_t shim_hook_caller(uintptr_t sp)
{
	return ((volatile uintptr_t *)sp)[-1];
}

#else

#include <time.h>

static inline uint64_t shim_clock_read(void)
{
#if defined(__aarch64__)
	uint64_t now;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(now)::"memory");
	return now;
#else
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
#endif
}

#if defined(__aarch64__)

/* Removes the signature from a return address (xpaclri). */
static inline uintptr_t shim_unsigned(uintptr_t address)
{
	register uintptr_t x30 __asm__("x30") = address;

	__asm__("hint #7" : "+r"(x30));
	return x30;
}

/*
 * The hook and the functions that it has called keep frame records: the address
 * of the caller's record, and the return address.  The outermost record below
 * @sp belongs to the function that the program has called.  Records of the
 * program itself may have any content.
 */
static inline uintptr_t shim_hook_caller(uintptr_t sp)
{
	const uintptr_t *record = (const uintptr_t *)__builtin_frame_address(0);

	for (int i = 0; i < 64 && record[0] < sp; i++) {
		if (record[0] <= (uintptr_t)record || record[0] % 16 != 0)
			return 0;
		record = (const uintptr_t *)record[0];
	}
	return record[0] < sp ? 0 : shim_unsigned(record[1]);
}

/* A frame may end anywhere above @sp; at @sp only if the function jumped to the
 * hook. */
static inline bool shim_frame_ends(uintptr_t sp, const void *site,
				   uintptr_t end)
{
	return sp < end ||
	       (sp == end && shim_hook_caller(sp) == (uintptr_t)site);
}

#else

/* The result is an estimate, because shim does not know where this processor's
 * calls store return addresses. */
static inline bool shim_frame_ends(uintptr_t sp, const void *site,
				   uintptr_t end)
{
	(void)site;
	return sp < end;
}

static inline uintptr_t shim_hook_caller(uintptr_t sp)
{
	(void)sp;
	return 0;
}

#endif

static inline void shim_local_add(uint64_t *counter, uint64_t value)
{
	__atomic_fetch_add(counter, value, __ATOMIC_RELAXED);
}

static inline uint64_t shim_fetch_add(uint64_t *counter, uint64_t value)
{
	return __atomic_fetch_add(counter, value, __ATOMIC_ACQ_REL);
}

static inline bool shim_local_cas(void *place, void *old, void *new_value)
{
	return __atomic_compare_exchange_n((void **)place, &old, new_value, 0,
					   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

#endif
#endif
