/*
 * The code of entries that no compiler has marked: the thunks with their moved instructions,
 * and the switches.
 */
#include "sources/unmarked.h"

#include "dispatch/call_counters.h"
#include "inspect/code.h"
#include "os/sys.h"
#include "runtime/state.h"
#include "sources/thunks.h"

#include <shim/banned.h>

#define INSTRUCTION_MAX 15

/* --- moving instructions --- */

/* A copy of code. */
struct window {
	uintptr_t at;
	size_t size;
	const unsigned char *bytes;
};

static void read_code(const struct decode_copy *copy, uintptr_t address,
		      unsigned char *bytes, unsigned size)
{
	const struct window *window = copy->argument;
	uintptr_t offset = address - window->at;

	if (offset < window->size && size <= window->size - offset)
		__builtin_memcpy(bytes, window->bytes + offset, size);
	else if (sys_peek((const void *)address, bytes, size) < 0)
		for (unsigned i = 0; i < size; i++)
			bytes[i] = 0xcc;
}

static unsigned char *no_marks(const struct decode_copy *copy,
			       uintptr_t address, unsigned *count)
{
	(void)copy, (void)address;
	*count = 0;
	return NULL;
}

static uintptr_t same_target(const struct decode_copy *copy, uintptr_t address)
{
	(void)copy;
	return address;
}

/* The size of the instructions in [@code, @code + @length) when they are at @to, or 0.
 * Writes them to @memory unless it is NULL; @places as in decode_copy. */
static size_t move(const struct window *window, uintptr_t code, size_t length,
		   uintptr_t to, unsigned char *memory, uint16_t *places)
{
	bool may_come;
	const struct decode *decoder = code_decoder(&may_come);
	struct decode_copy copy = {
		.code = code,
		.end = code + length,
		.to = to,
		.memory = memory,
		.places = places,
		.read = read_code,
		.mark = no_marks,
		.target = same_target,
		.argument = window,
	};

	return decoder ? decoder->copy(&copy) : 0;
}

size_t unmarked_moved_size(const unsigned char *copy, size_t copy_size,
			   uintptr_t code, size_t length, uintptr_t to)
{
	uint16_t places[PATCHED_LENGTH_MAX] = { 0 };
	struct window window = { code, copy_size, copy };

	return move(&window, code, length, to, NULL, places);
}

/* --- thunks --- */

/* Reads the code at @address, and what is behind it, for the functions that come next. */
static bool open_window(struct window *window, uintptr_t address, size_t length)
{
	static unsigned char bytes[4096];
	const size_t sizes[] = { sizeof(bytes), length + INSTRUCTION_MAX,
				 length };
	uintptr_t offset = address - window->at;

	if (offset < window->size &&
	    window->size - offset >= length + INSTRUCTION_MAX)
		return true;
	window->at = address;
	window->bytes = bytes;
	/* A page behind it may not be there. */
	for (unsigned i = 0; i < 3; i++) {
		window->size = sizes[i];
		if (sys_peek((const void *)address, bytes, sizes[i]) == 0)
			return true;
	}
	window->size = 0;
	return false;
}

static void put(const struct source_image *image,
		const struct source_mark *mark, const void *slot,
		struct window *window)
{
	uintptr_t address = mark_address(image, mark);
	unsigned char *thunk = (unsigned char *)thunk_of(image, mark);
	uintptr_t moved = (uintptr_t)thunk + PATCHED_MOVED;
	struct thunk_data *data = thunk_data(image, mark);
	uint16_t places[PATCHED_LENGTH_MAX] = { 0 };
	struct patched_code code = {
		.slot = slot,
		.word = &data->word,
		.counter = &data->counter,
		.counters = call_counters_word(),
		.function = mark_function(image, mark),
		.site = address + mark->length,
	};
	size_t size;

	*data = (struct thunk_data){ .address = address,
				     .length = mark->length };
	if (!open_window(window, address, mark->length))
		return;
	size = move(window, address, mark->length, moved, NULL, places);
	if (size < PATCHED_JUMP || size > PATCHED_ROOM)
		return;
	code.original = window->bytes + (address - window->at);
	patched_put(thunk, &code);
	if (move(window, address, mark->length, moved, (unsigned char *)moved,
		 places) != size)
		return;
	data->size = (uint8_t)(size - PATCHED_JUMP);
	for (unsigned i = 0; i < ENTRY_SIZE; i++)
		data->places[i] = (uint8_t)places[i];
	data->word = moved;
}

void unmarked_put(const struct source_image *image, const void *slot)
{
	struct window window = { 0 };

	ASSERT_LOCKED();
	for (uint32_t i = 0; i < image->count; i++)
		if (image->marks[i].source == SHIM_SOURCE_UNMARKED)
			put(image, &image->marks[i], slot, &window);
}

/* --- the marks --- */

static bool prepare(const struct source_image *image,
		    const struct source_mark *mark, unsigned char *code)
{
	return thunk_prepare(image, mark, code, image->is_fresh);
}

const struct source source_unmarked = {
	.kind = SHIM_SOURCE_UNMARKED,
	.size = ENTRY_SIZE,
	.has_thunks = true,
	.is_fixed = true,
	.state = thunk_state,
	.end = thunk_end,
	.set_counter = thunk_set_counter,
	.prepare = prepare,
	.change = thunk_switch,
};
