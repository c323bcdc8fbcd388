/*
 * Memory near an image: the distance of a call has 32 bits.
 */
#include "dispatch/near.h"

#include "os/sys.h"

#include <errno.h>

#include <shim/banned.h>

#define PAGE	   4096u
#define STEP	   (16ull << 20)
#define SMALL_STEP (64ull << 10)
#define NEAR	   (1ull << 30)
#define REACH	   (2ull << 30)

bool near_reaches(uintptr_t part, size_t size, uintptr_t start, uintptr_t end)
{
	return (part < start ? end - part : part + size - start) < REACH;
}

static uintptr_t map_below(uintptr_t start, size_t size)
{
	/* An executable without PIE has little room below it. */
	uint64_t small = (size + SMALL_STEP - 1) & ~(SMALL_STEP - 1);

	for (uint64_t away = STEP / 16; away < NEAR;
	     away += away < STEP ? small : STEP) {
		uintptr_t at = (start & ~(uintptr_t)(PAGE - 1)) - away - size;
		int r;

		if (start < away + size + STEP / 16)
			return 0;
		r = sys_map_shared_at((void *)at, size);
		if (r == 0)
			return at;
		if (r != -EEXIST)
			return 0;
	}
	return 0;
}

/* As far away as possible: the heap of a program without PIE grows from its end. */
static uintptr_t map_above(uintptr_t start, size_t size)
{
	for (uint64_t away = NEAR; away > STEP; away -= STEP) {
		uintptr_t at = (start & ~(uintptr_t)(PAGE - 1)) + away;
		int r = sys_map_shared_at((void *)at, size);

		if (r == 0)
			return at;
		if (r != -EEXIST)
			return 0;
	}
	return 0;
}

/* Below the image: the heap is above the program.  There is no room below one that lld links
 * without PIE. */
uintptr_t near_map(uintptr_t start, size_t size)
{
	uintptr_t at = map_below(start, size);

	return at ? at : map_above(start, size);
}
