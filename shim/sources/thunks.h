/*
 * Code near an image, a thunk for each of its marks that are only at entries: it tells
 * arch/.../returns.S the function.  For entries that no compiler has marked, a thunk also
 * has the moved instructions, and a switch.  For calls of mcount, it has a switch.  The pages
 * behind the thunks have their data.
 */
#ifndef SHIM_THUNKS_H
#define SHIM_THUNKS_H

#include "sources/entry_code.h"
#include "sources/returns.h"
#include "sources/sources.h"

/* Makes the thunks of all marks of the image; false without memory near it. */
bool thunks_make(struct source_image *image);
void thunks_drop(struct source_image *image);

static inline uintptr_t thunk_of(const struct source_image *image,
				 const struct source_mark *mark)
{
	return image->thunks ?
		       image->thunks + (uintptr_t)(mark - image->marks) *
					       image->thunk_size :
		       0;
}

/* The data of a mark of no-ops, for the code that its thunk jumps to; or of one whose thunk
 * has a switch: where the instructions of its entry are in the thunk. */
struct thunk_data {
	/* What the thunk jumps to: for no-ops, code that calls hooks, or THUNK_COUNTS_PUSHED
	 * bytes behind the thunk.  A switch: PATCHED_ON, PATCHED_MOVED or PATCHED_COUNTS bytes
	 * behind it; 0: the instructions could not be moved. */
	uintptr_t word;
	uint64_t counter; /* its place in a thread's counters, in bytes */
	union {
		uintptr_t function; /* ENTRY_FUNCTION */
		struct {
			/* For each byte that the jump replaces: the place of the
			 * instruction that begins there, behind PATCHED_MOVED, plus
			 * 1; 0: none does. */
			uint8_t places[ENTRY_SIZE];
			uint8_t length; /* of the code that was moved */
			uint8_t size;	/* of the copy, without the jump back */
		};
	};
	uintptr_t site; /* ENTRY_SITE; 0: the thunk has a switch */
	union {
		uintptr_t resume; /* ENTRY_RESUME */
		/* A switch: of the first instruction that the jump replaces. */
		uintptr_t address;
	};
};

_Static_assert(offsetof(struct thunk_data, word) == 0 &&
		       offsetof(struct thunk_data, function) ==
			       ENTRY_FUNCTION &&
		       offsetof(struct thunk_data, site) == ENTRY_SITE &&
		       offsetof(struct thunk_data, resume) == ENTRY_RESUME,
	       "arch/.../returns.S reads them");

static inline struct thunk_data *thunk_data(const struct source_image *image,
					    const struct source_mark *mark)
{
	return image->thunk_data + (mark - image->marks);
}

/* Lets the thunks of the changed marks that are to be on call the hooks, or count. */
void thunks_direct(const struct source_image *image);
/* Lets all thunks call the hooks of another route, but for those that count. */
void thunks_route(const struct source_image *image);

/* The function of struct source for marks whose code is replaced as a whole. */
static inline uint8_t thunk_end(const struct source_image *image,
				const struct source_mark *mark)
{
	(void)image;
	return mark->length;
}

/* The same for all marks with thunks. */
static inline bool thunk_set_counter(const struct source_image *image,
				     struct source_mark *mark, uint32_t counter)
{
	if (!image->thunks)
		return false;
	thunk_data(image, mark)->counter = counter * sizeof(uint64_t);
	return true;
}

/* For marks that jump to a thunk with a switch.  thunk_prepare writes the jump if it is not
 * there and the code may change: @may_change.  The others are functions of struct source. */
bool thunk_prepare(const struct source_image *image,
		   const struct source_mark *mark, unsigned char *code,
		   bool may_change);
enum mark_state thunk_state(const struct source_image *image,
			    const struct source_mark *mark,
			    const unsigned char *code);
void thunk_switch(const struct source_image *image,
		  const struct source_mark *mark, unsigned char *code, bool on);

#endif
