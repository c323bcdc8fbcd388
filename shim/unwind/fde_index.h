/*
 * Which function an address belongs to: the index that every image brings for
 * exceptions (.eh_frame_hdr and .eh_frame), whatever else was stripped.
 */
#ifndef SHIM_FDE_INDEX_H
#define SHIM_FDE_INDEX_H

#include "os/memory_view.h"

#include <stdbool.h>

struct frame_range {
	uintptr_t start, end;
};

struct frames {
	struct view view;		/* holds the index and what it leads to */
	uintptr_t index;		/* .eh_frame_hdr */
	const unsigned char *table;	/* its sorted pairs of 32-bit offsets */
	uint32_t count;
	uint32_t last;			/* where the last answer came from */
	struct frame_range range;	/* it; empty: none yet */
	uintptr_t cie;			/* the last one that was read */
	unsigned char encoding;		/* of the addresses below it */
};

/* False if there is no index at @index that can be searched. */
bool fde_open(struct frames *frames, const struct view *view,
		 uintptr_t index);

/* The function, or the part of one, that holds @address.  False: none does.
 * Cheap if the addresses asked for ascend. */
bool fde_find(struct frames *frames, uintptr_t address,
		 struct frame_range *range);

#endif
