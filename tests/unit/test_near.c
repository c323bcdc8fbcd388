/*
 * Memory near an image, for addresses where the test has nothing mapped.
 */
#include "dispatch/call_counters.h"
#include "dispatch/near.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <sys/mman.h>

#define MIB 0x100000ull
#define GIB 0x40000000ull

/* Between the program and the libraries. */
#define START 0x200000000000ull

static unsigned mappings_near(uintptr_t start)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[8192];
	unsigned count = 0;

	cr_assert(maps != NULL);
	while (fgets(line, sizeof(line), maps)) {
		unsigned long at;

		if (sscanf(line, "%lx", &at) == 1)
			count += at - (start - GIB) < GIB;
	}
	fclose(maps);
	return count;
}

Test(near, a_call_reaches_less_than_2_gib)
{
	/* Below: from the first byte of the part to the end of the image. */
	cr_assert(near_reaches(START, 4096, START + MIB, START + 2 * GIB - 1));
	cr_assert(not(near_reaches(START, 4096, START + MIB, START + 2 * GIB)));
	/* Above: from the start of the image to the end of the part. */
	cr_assert(
		near_reaches(START + 2 * GIB - 4097, 4096, START, START + MIB));
	cr_assert(not(near_reaches(START + 2 * GIB - 4096, 4096, START,
				   START + MIB)));
	cr_assert(not(near_reaches(START, 2 * GIB, START, START + 4096)));
}

Test(near, memory_is_below_the_image_and_1_mib_away)
{
	uintptr_t first = near_map(START, 4096),
		  second = near_map(START + 5, 3 * 4096);

	cr_assert(eq(ulong, first, START - MIB - 4096));
	cr_assert(eq(ulong, second % 4096, 0));
	cr_assert(le(ulong, second + 3 * 4096, first));
	cr_assert(eq(ulong, second, START - MIB - 0x10000 - 3 * 4096));
	*(volatile char *)first = *(volatile char *)(second + 3 * 4096 - 1) = 1;
}

/* In steps of 64 KiB, then of 16 MiB. */
Test(near, what_is_mapped_stays)
{
	char *other = (char *)(START - 40 * MIB);
	uintptr_t at;

	cr_assert(eq(ptr,
		     mmap(other, 40 * MIB, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE |
				  MAP_FIXED_NOREPLACE,
			  -1, 0),
		     other));
	at = near_map(START, 4096);
	cr_assert(eq(ulong, at, START - 48 * MIB - 4096));
	other[40 * MIB - MIB - 4096] = 1;
	cr_assert(eq(int, *(char *)at, 0));
}

static void take(uintptr_t start, uintptr_t end)
{
	cr_assert(mmap((char *)start, end - start, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE |
			       MAP_FIXED_NOREPLACE,
		       -1, 0) != MAP_FAILED);
}

Test(near, nothing_is_mapped_more_than_a_gib_away)
{
	take(START - GIB - MIB, START);
	cr_assert(eq(ulong, near_map(START + 5, 4096), START + GIB));
	take(START, START + GIB);
	cr_assert(eq(ulong, near_map(START, 4096), 0));
}

/* lld links programs without PIE to 2 MiB. */
Test(near, the_first_mib_stays_free)
{
	cr_assert(eq(ulong, near_map(MIB, 4096), MIB + GIB));
	cr_assert(eq(ulong, near_map(2 * MIB + 4095, 4096), 2 * MIB + GIB));
	cr_assert(eq(ulong, near_map(2 * MIB + 4096, 4096), MIB));
}

#ifdef __x86_64__

Test(near, counters_that_calls_do_not_reach_leave_no_memory)
{
	cr_assert(eq(uint, mappings_near(START), 0));
	cr_assert(eq(ulong, call_counter_code(NULL, START, START + 2 * GIB, 1),
		     0));
	cr_assert(eq(uint, mappings_near(START), 0));
	cr_assert(ne(ulong,
		     call_counter_code(NULL, START + MIB, START + 2 * MIB, 1),
		     0));
	cr_assert(ne(uint, mappings_near(START + MIB), 0));
}

#endif
