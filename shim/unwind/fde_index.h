/*
 * Finds the function of an address in the index for exceptions (.eh_frame_hdr and
 * .eh_frame).  Every image has one, even a stripped image.
 */
#ifndef SHIM_FDE_INDEX_H
#define SHIM_FDE_INDEX_H

#include "os/memory_view.h"

#include <stdbool.h>

struct frame_range {
	uintptr_t start, end;
};

struct frames {
	struct view view;	    /* contains the index and .eh_frame */
	uintptr_t index;	    /* .eh_frame_hdr */
	const unsigned char *table; /* its sorted pairs of 32-bit offsets */
	uint32_t count;
	uint32_t last;		  /* entry of the last result */
	struct frame_range range; /* the last result; empty: none yet */
	uintptr_t cie;		  /* the last CIE that was read */
	unsigned char encoding;	  /* of addresses in its FDEs */
};

/* Returns false if there is no index at @index that can be searched. */
bool fde_open(struct frames *frames, const struct view *view, uintptr_t index);

/* Finds the function, or the part of a function, that contains @address.  False if no
 * function contains it.  Cheap for ascending addresses. */
bool fde_find(struct frames *frames, uintptr_t address,
	      struct frame_range *range);

/* The range of entry @number, in the order of addresses.  False if the entry is invalid. */
bool fde_get(struct frames *frames, uint32_t number, struct frame_range *range);

#endif
