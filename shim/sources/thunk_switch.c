/*
 * Marks whose code jumps to a thunk, on or off: a word of the thunk's data switches them.
 */
#include "sources/thunks.h"

#include <shim/banned.h>

static bool is_original(const unsigned char *code, uintptr_t thunk)
{
	const unsigned char *original = (const unsigned char *)thunk +
					PATCHED_ORIGINAL;

	for (unsigned i = 0; i < ENTRY_SIZE; i++)
		if (code[i] != original[i])
			return false;
	return true;
}

enum mark_state thunk_state(const struct source_image *image,
			    const struct source_mark *mark,
			    const unsigned char *code)
{
	uintptr_t thunk = thunk_of(image, mark);

	if (!thunk)
		return MARK_OFF;
	if (patched_is_jump(code, mark_address(image, mark), thunk))
		return thunk_data(image, mark)->word == thunk + PATCHED_MOVED ?
			       MARK_OFF :
			       MARK_ON;
	return is_original(code, thunk) ? MARK_OFF : MARK_OTHER;
}

bool thunk_prepare(const struct source_image *image,
		   const struct source_mark *mark, unsigned char *code,
		   bool may_change)
{
	uintptr_t thunk = thunk_of(image, mark);
	uintptr_t address = mark_address(image, mark);

	if (!thunk || thunk_data(image, mark)->word == 0)
		return false;
	return patched_is_jump(code, address, thunk) ||
	       (may_change && patched_jump(code, address, thunk));
}

void thunk_switch(const struct source_image *image,
		  const struct source_mark *mark, unsigned char *code, bool on)
{
	uintptr_t thunk = thunk_of(image, mark);

	(void)code;
	__atomic_store_n(&thunk_data(image, mark)->word,
			 thunk + (!on		   ? PATCHED_MOVED :
				  mark->is_counted ? PATCHED_COUNTS :
						     PATCHED_ON),
			 __ATOMIC_RELEASE);
}
