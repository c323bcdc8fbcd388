/*
 * Thunks are written before their memory becomes executable, and never changed.
 */
#include "sources/thunks.h"

#include "dispatch/near.h"
#include "os/sys.h"
#include "runtime/state.h"
#include "sources/mcount.h"
#include "sources/moved.h"
#include "sources/route.h"
#include "sources/unmarked.h"

#include <shim/banned.h>

#define PAGE 4096u

/* Behind the data of all thunks are the words that those with a switch jump through. */
enum { WORD_UNMARKED, WORD_MCOUNT, WORD_FENTRY, WORDS };

static size_t round_up(size_t size)
{
	return (size + PAGE - 1) & ~(size_t)(PAGE - 1);
}

static size_t code_size(const struct source_image *image)
{
	return round_up((size_t)image->count * image->thunk_size);
}

static size_t size_of(const struct source_image *image)
{
	size_t size = code_size(image);

	if (image->thunk_size == PATCHED_SIZE)
		size += round_up(((size_t)image->count + WORDS) *
				 sizeof(struct thunk_data));
	return size;
}

static uintptr_t *word_of(const struct source_image *image, unsigned number)
{
	return &image->thunk_data[image->count + number].word;
}

static void put_thunks(const struct source_image *image)
{
	for (uint32_t i = 0; i < image->count; i++) {
		const struct source_mark *mark = &image->marks[i];
		unsigned char *thunk = (unsigned char *)thunk_of(image, mark);

		if (mark->source == SHIM_SOURCE_UNMARKED)
			unmarked_put(image, mark, thunk,
				     word_of(image, WORD_UNMARKED));
		else if (mark->source == SHIM_SOURCE_MCOUNT)
			mcount_put(image, mark, thunk,
				   word_of(image, mcount_is_entry(image, mark) ?
							  WORD_FENTRY :
							  WORD_MCOUNT));
		else
			thunk_put(thunk, route_entry(image),
				  mark_function(image, mark),
				  mark_address(image, mark) + mark->length);
	}
}

static bool has_marks_of(const struct source_image *image,
			 enum shim_source source)
{
	for (uint32_t i = 0; i < image->count; i++)
		if (image->marks[i].source == source)
			return true;
	return false;
}

bool thunks_make(struct source_image *image)
{
	uintptr_t at;
	size_t size;

	ASSERT_LOCKED();
	image->has_unmarked = has_marks_of(image, SHIM_SOURCE_UNMARKED);
	image->thunk_size = image->has_unmarked ||
					    has_marks_of(image,
							 SHIM_SOURCE_MCOUNT) ?
				    PATCHED_SIZE :
				    THUNK_SIZE;
	size = size_of(image);
	at = near_map(image->start, size);
	if (!at)
		return false;
	/* Both are less than 1 GiB below the image (near_map), so thunks reach the slot. */
	if (!near_reaches(at, size, image->start, image->end) ||
	    sys_map_over((void *)at, size) < 0) {
		sys_unmap((void *)at, size);
		return false;
	}
	image->thunks = at;
	if (image->thunk_size == PATCHED_SIZE)
		image->thunk_data = (struct thunk_data *)(at +
							  code_size(image));
	if (image->thunk_data) {
		*word_of(image, WORD_UNMARKED) = returns_entry_kept();
		*word_of(image, WORD_MCOUNT) = returns_entry_mcount();
		*word_of(image, WORD_FENTRY) = returns_entry_fentry();
	}
	put_thunks(image);
	if (sys_make_code((void *)at, code_size(image)) < 0) {
		thunks_drop(image);
		return false;
	}
	moved_note(image, code_size(image));
	return true;
}

void thunks_drop(struct source_image *image)
{
	if (!image->thunks)
		return;
	moved_forget(image->thunks);
	sys_unmap((void *)image->thunks, size_of(image));
	image->thunks = 0;
	image->thunk_data = NULL;
}
