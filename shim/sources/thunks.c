/*
 * Thunks are written before their memory becomes executable, and never changed.
 */
#include "sources/thunks.h"

#include "dispatch/near.h"
#include "os/sys.h"
#include "runtime/state.h"
#include "sources/route.h"

#include <sys/mman.h>

#include <shim/banned.h>

#define PAGE 4096u

static size_t size_of(const struct source_image *image)
{
	size_t size = (size_t)image->count * THUNK_SIZE;

	return (size + PAGE - 1) & ~(size_t)(PAGE - 1);
}

bool thunks_make(struct source_image *image)
{
	size_t size = size_of(image);
	uintptr_t at = near_map(image->start, size);

	ASSERT_LOCKED();
	if (!at)
		return false;
	/* Both are less than 1 GiB below the image (near_map), so thunks reach the slot. */
	if (!near_reaches(at, size, image->start, image->end) ||
	    sys_map_over((void *)at, size) < 0) {
		sys_unmap((void *)at, size);
		return false;
	}
	for (uint32_t i = 0; i < image->count; i++) {
		const struct source_mark *mark = &image->marks[i];

		thunk_put((unsigned char *)at + (uintptr_t)i * THUNK_SIZE,
			  route_entry(image), mark_function(image, mark),
			  mark_address(image, mark) + mark->length);
	}
	if (sys_protect((void *)at, size, PROT_READ | PROT_EXEC) < 0) {
		sys_unmap((void *)at, size);
		return false;
	}
	image->thunks = at;
	return true;
}

void thunks_drop(struct source_image *image)
{
	if (!image->thunks)
		return;
	sys_unmap((void *)image->thunks, size_of(image));
	image->thunks = 0;
}
