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

/* Below the image: the heap is above the program. */
uintptr_t near_map(uintptr_t start, size_t size)
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
