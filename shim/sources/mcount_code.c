/*
 * The code of calls of mcount and __fentry__, which lead to thunks with a switch.
 */
#include "dispatch/call_counters.h"
#include "os/sys.h"
#include "sources/mcount.h"
#include "sources/thunks.h"

#include <shim/banned.h>

void (*mcount_counter)(void);
void (*mcount_entry_counter)(void);

void mcount_set_counters(void (*counter)(void), void (*entry_counter)(void))
{
	mcount_counter = counter;
	mcount_entry_counter = entry_counter;
}

/* Nothing but a landing pad is before it. */
bool mcount_is_entry(const struct source_image *image,
		     const struct source_mark *mark)
{
	unsigned char begin[4];
	size_t size = 0;

	return mark->depth == 0 ||
	       (sys_peek((const void *)mark_function(image, mark), begin,
			 sizeof(begin)) == 0 &&
		entry_is_landing(begin, &size) && (size_t)mark->depth == size);
}

void mcount_put(const struct source_image *image,
		const struct source_mark *mark, unsigned char *thunk,
		const void *slot, const void *counter)
{
	uintptr_t address = mark_address(image, mark);
	struct thunk_data *data = thunk_data(image, mark);
	unsigned char original[ENTRY_SIZE];
	struct patched_code code = {
		.slot = slot,
		.word = &data->word,
		.counter = &data->counter,
		.counters = call_counters_word(),
		.function = mark_function(image, mark),
		.site = address + mark->length,
		.original = original,
	};

	*data = (struct thunk_data){ .address = address,
				     .length = mark->length };
	if (sys_peek((const void *)address, original, ENTRY_SIZE) < 0)
		return;
	if (mcount_is_entry(image, mark))
		patched_put_fentry(thunk, &code, counter);
	else
		patched_put_mcount(thunk, &code, counter);
	data->word = (uintptr_t)thunk + PATCHED_MOVED;
}

static bool prepare(const struct source_image *image,
		    const struct source_mark *mark, unsigned char *code)
{
	return thunk_prepare(image, mark, code, image->is_quiet);
}

const struct source source_mcount = {
	.kind = SHIM_SOURCE_MCOUNT,
	.size = ENTRY_SIZE,
	.has_thunks = true,
	.is_fixed = true,
	.state = thunk_state,
	.end = thunk_end,
	.set_counter = thunk_set_counter,
	.prepare = prepare,
	.change = thunk_switch,
};
