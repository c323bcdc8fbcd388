/*
 * Thunks are written before their memory becomes executable, and never changed.
 */
#include "sources/thunks.h"

#include "dispatch/call_counters.h"
#include "dispatch/near.h"
#include "os/sys.h"
#include "runtime/state.h"
#include "sources/generated.h"
#include "sources/mcount.h"
#include "sources/moved.h"
#include "sources/route.h"
#include "sources/switch_marks.h"
#include "sources/unmarked.h"

#include <shim/banned.h>

#define PAGE 4096u

/* Behind the data of all marks are the words that thunks with a switch jump through. */
enum {
	WORD_ENTRY,
	WORD_UNMARKED,
	WORD_MCOUNT,
	WORD_MCOUNT_COUNTER,
	WORD_FENTRY_COUNTER,
	WORDS
};

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
	return code_size(image) + round_up(((size_t)image->count + WORDS) *
					   sizeof(struct thunk_data));
}

static uintptr_t *word_of(const struct source_image *image, unsigned number)
{
	return &image->thunk_data[image->count + number].word;
}

static void put_entry(const struct source_image *image,
		      const struct source_mark *mark, unsigned char *thunk)
{
	struct thunk_data *data = thunk_data(image, mark);
	const struct thunk_code code = {
		.data = data,
		.counter = &data->counter,
		.slot = word_of(image, WORD_ENTRY),
		.site = mark_address(image, mark) + mark->length,
		.counters = call_counters_word(),
	};

	data->word = route_entry();
	data->function = mark_function(image, mark);
	data->site = code.site;
	data->resume = (uintptr_t)thunk + THUNK_RESUMES;
	thunk_put(thunk, &code);
}

static void put_call(const struct source_image *image,
		     const struct source_mark *mark, unsigned char *thunk)
{
	bool is_entry = mcount_is_entry(image, mark);

	mcount_put(image, mark, thunk,
		   word_of(image, is_entry ? WORD_UNMARKED : WORD_MCOUNT),
		   word_of(image, is_entry ? WORD_FENTRY_COUNTER :
					     WORD_MCOUNT_COUNTER));
}

static void put_thunks(const struct source_image *image)
{
	for (uint32_t i = 0; i < image->count; i++) {
		const struct source_mark *mark = &image->marks[i];
		unsigned char *thunk = (unsigned char *)thunk_of(image, mark);

		if (mark->source == SHIM_SOURCE_MCOUNT)
			put_call(image, mark, thunk);
		else if (mark->source != SHIM_SOURCE_UNMARKED)
			put_entry(image, mark, thunk);
	}
	unmarked_put(image, word_of(image, WORD_UNMARKED));
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
	if (!near_reaches(at, size, image->start, image->end) ||
	    sys_map_over((void *)at, size) < 0) {
		sys_unmap((void *)at, size);
		return false;
	}
	generated_answer_v8();
	image->thunks = at;
	image->thunk_data = (struct thunk_data *)(at + code_size(image));
	*word_of(image, WORD_ENTRY) = route_entry();
	*word_of(image, WORD_UNMARKED) = returns_entry_unmarked();
	*word_of(image, WORD_MCOUNT) = returns_entry_mcount();
	*word_of(image, WORD_MCOUNT_COUNTER) = returns_count_of_mcount();
	*word_of(image, WORD_FENTRY_COUNTER) = returns_count_of_fentry();
	put_thunks(image);
	if (sys_make_code((void *)at, code_size(image)) < 0) {
		thunks_drop(image);
		return false;
	}
	moved_note(image, (size_t)image->count * image->thunk_size);
	return true;
}

static void direct(const struct source_image *image,
		   const struct source_mark *mark)
{
	struct thunk_data *data = thunk_data(image, mark);

	if (data->site)
		__atomic_store_n(&data->word,
				 mark->is_counted ?
					 thunk_of(image, mark) +
						 THUNK_COUNTS_PUSHED :
					 route_entry(),
				 __ATOMIC_RELEASE);
	else if (mark->is_on)
		thunk_switch(image, mark, NULL, true);
}

/* One that goes off keeps its word: calls that are on their way are counted still. */
void thunks_direct(const struct source_image *image)
{
	if (!image->thunks)
		return;
	for (uint32_t i = source_next_changed(image, image->changes.first);
	     i < image->changes.end; i = source_next_changed(image, i + 1))
		if (switch_wants(&image->marks[i], true))
			direct(image, &image->marks[i]);
}

void thunks_route(const struct source_image *image)
{
	if (!image->thunks)
		return;
	__atomic_store_n(word_of(image, WORD_ENTRY), route_entry(),
			 __ATOMIC_RELEASE);
	for (uint32_t i = 0; i < image->count; i++)
		if (!image->marks[i].is_counted)
			direct(image, &image->marks[i]);
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
