/*
 * The code of entries that no compiler has marked: the thunks with their moved instructions,
 * and the switches.
 */
#include "sources/unmarked.h"

#include "dispatch/call_counters.h"
#include "inspect/code.h"
#include "os/sys.h"
#include "sources/thunks.h"

#include <shim/banned.h>

#define INSTRUCTION_MAX 15

/* --- moving instructions --- */

/* The first bytes of a function, which are read once. */
struct window {
	uintptr_t at;
	unsigned size;
	unsigned char bytes[PATCHED_LENGTH_MAX + INSTRUCTION_MAX];
};

static bool open_window(struct window *window, uintptr_t at, size_t length)
{
	unsigned size = (unsigned)length + INSTRUCTION_MAX;
	const void *code = (const void *)at;

	window->at = at;
	window->size = 0;
	if (size > sizeof(window->bytes))
		return false;
	/* A page behind them may not be there. */
	if (sys_peek(code, window->bytes, size) == 0)
		window->size = size;
	else if (sys_peek(code, window->bytes, length) == 0)
		window->size = (unsigned)length;
	return window->size > 0;
}

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

/* As unmarked_move; @places as in decode_copy. */
static size_t move(const struct window *window, size_t length, uintptr_t to,
		   unsigned char *memory, uint16_t *places)
{
	bool may_come;
	const struct decode *decoder = code_decoder(&may_come);
	struct decode_copy copy = {
		.code = window->at,
		.end = window->at + length,
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

size_t unmarked_move(uintptr_t code, size_t length, uintptr_t to,
		     unsigned char *memory)
{
	uint16_t places[PATCHED_LENGTH_MAX] = { 0 };
	struct window window;

	return open_window(&window, code, length) ?
		       move(&window, length, to, memory, places) :
		       0;
}

void unmarked_put(const struct source_image *image,
		  const struct source_mark *mark, unsigned char *thunk,
		  const void *slot)
{
	uintptr_t address = mark_address(image, mark);
	uintptr_t moved = (uintptr_t)thunk + PATCHED_MOVED;
	struct thunk_data *data = thunk_data(image, mark);
	uint16_t places[PATCHED_LENGTH_MAX] = { 0 };
	struct window window;
	struct patched_code code = {
		.slot = slot,
		.word = &data->word,
		.counter = &data->counter,
		.counters = call_counters_word(),
		.function = mark_function(image, mark),
		.site = address + mark->length,
		.original = window.bytes,
	};
	size_t size;

	*data = (struct thunk_data){ .address = address,
				     .length = mark->length };
	if (!open_window(&window, address, mark->length))
		return;
	size = move(&window, mark->length, moved, NULL, places);
	if (size < PATCHED_JUMP || size > PATCHED_ROOM)
		return;
	patched_put(thunk, &code);
	if (move(&window, mark->length, moved, (unsigned char *)moved,
		 places) != size)
		return;
	data->size = (uint8_t)(size - PATCHED_JUMP);
	for (unsigned i = 0; i < ENTRY_SIZE; i++)
		data->places[i] = (uint8_t)places[i];
	data->word = moved;
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
