/*
 * The call sites of an image, found in its code.
 */
#ifndef SHIM_FIND_SITES_H
#define SHIM_FIND_SITES_H

#include "dispatch/call_sites.h"
#include "dispatch/changes.h"

#include <stdbool.h>
#include <stdint.h>

struct site {
	uint32_t offset;       /* from the start of the image */
	uint32_t depth : 25;   /* from the start of its function */
	uint32_t kind : 2;     /* enum scan_kind */
	uint32_t is_fixed : 1; /* always on (scan_reads_return) */
	uint32_t filtered : 1;
	uint32_t throttled : 1;
	uint32_t off : 1; /* the state of its code */
	uint32_t
		counted : 1; /* its code has another distance than the compiler's */
	union {
		/* For a jump at the end of a part that the compiler has split off a
		 * function: the offset of the function; else 0. */
		uint32_t part_of;
		/* For a call that was counted once: the compiler's distance. */
		uint32_t distance;
	};
};

/* Of a function's offset; most functions share theirs with none that has parts. */
#define SITE_PART_BITS 1024u

struct site_image {
	struct call_sites_image memory;
	struct site *sites;
	uint32_t count, room;
	uint32_t off;		   /* the number of sites whose code is off */
	struct changes changes;	   /* sites of call_sites_throttle */
	uint32_t parts, parts_end; /* the range of sites with part_of */
	uint64_t part_bits[SITE_PART_BITS / 64]; /* of functions with parts */
	bool has_parts; /* shim has searched for parts */
	uint32_t rejected;
	uint32_t end; /* the offset after the last site found */
	bool scanned;
	bool unwritable;
	bool confirmed; /* call_sites_add has named it since the fork */
};

/* Scans an image at its first use.  Returns 0 or -errno; -EACCES if shim must not
 * change its code.  After a lack of memory or descriptors, the next call tries again.
 * */
int sites_find(struct site_image *image);

/* A call of @size bytes in the function, or part of one, that begins at @function; @is_fixed
 * as in struct site.  Returns false to end the search. */
typedef bool sites_found(void *argument, uintptr_t address, uint32_t size,
			 uintptr_t function, bool is_fixed);

/* Calls @found for each call through @slots, at most SCAN_SLOTS_MAX, in ascending order.
 * *@unknown receives the number of calls that are in no function of the index.
 * Returns 0 or -errno; -ENOEXEC without an index of functions. */
int sites_search(const struct call_sites_image *memory, const uintptr_t *slots,
		 unsigned count, sites_found *found, void *argument,
		 uint32_t *unknown);

#endif
