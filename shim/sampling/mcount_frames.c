/*
 * What shim does for mcount and __fentry__ is the work of these functions, as it would be
 * without shim: a stack shows no more than their frame.
 */
#include "image/image.h"

#include <shim/builtin.h>
#include <shim/stack.h>

#include <shim/banned.h>

uint32_t shim_fold_mcount(uintptr_t *frames, uint32_t count)
{
	uintptr_t mcount = 0;
	uint32_t ours = 0;

	for (; ours < count && image_is_ours(frames[ours] & ~SHIM_STACK_GUESS);
	     ours++) {
		uintptr_t found = shim_mcount_of(frames[ours] &
						 ~SHIM_STACK_GUESS);

		mcount = found ? found : mcount;
	}
	if (!mcount)
		return count;
	ours--;
	for (uint32_t i = 0; i + ours < count; i++)
		frames[i] = frames[i + ours];
	frames[0] = mcount;
	return count - ours;
}
