/*
 * Looks at each byte of a function's code, as an instruction may begin at any, and asks the
 * unwind table where the return address is.  A function that another one ends with a jump to
 * has the return address of that one; each function is searched once.
 */
#include "sources/own_return.h"

#include "os/pages.h"
#include "os/sys.h"
#include "runtime/state.h"
#include "sources/entry_code.h"
#include "sources/left_out.h"
#include "sources/sources.h"
#include "unwind/eh_frame.h"

#include <shim/banned.h>

#define BUFFER_SIZE (16u << 10)

static unsigned char buffer[BUFFER_SIZE];
static struct cfi_machine machine;
/* The row of the machine holds up to this address. */
static uintptr_t row_end;
static bool has_row;

/* Addresses ascend. */
static bool find_row(uintptr_t address)
{
	if (address >= row_end) {
		has_row = has_row ? eh_frame_find_next_row(&machine, address) :
				    eh_frame_find_row(&machine, address);
		row_end = machine.at > address ? machine.at : machine.fde.end;
	}
	return has_row;
}

/* The return address is a word below the frame's end. */
static bool is_of_return(const struct stack_read *read, uintptr_t address)
{
	const struct rule *cfa = &machine.row.cfa;

	return find_row(address) && cfa->how == HOW_IS &&
	       (cfa->size == WALK_SP) == read->is_stack_pointer &&
	       cfa->value - (int64_t)sizeof(uintptr_t) == read->offset;
}

/* Whether the stack pointer is where it was when the function began. */
static bool has_no_frame(uintptr_t address)
{
	const struct rule *cfa = &machine.row.cfa;

	return find_row(address) && cfa->how == HOW_IS &&
	       cfa->size == WALK_SP && cfa->value == sizeof(uintptr_t);
}

/* --- functions, and what they end with a jump to --- */

struct array {
	void *memory;
	size_t size;
};

#define ARRAY_MIN 65536

struct function {
	uintptr_t start;
	bool is_read; /* the return address that it has */
};

/* Numbers of functions. */
struct jump {
	uint32_t from, to;
};

/* Of the image that is asked about.  (What only looks like a jump may lead anywhere, and
 * eh_frame_open would search for new images there.) */
static uintptr_t image_start, image_end;
/* struct function, struct jump, and a hash table with the numbers of functions, plus one. */
static struct array functions, jumps, numbers;
static uint32_t function_count, jump_count;
/* Without memory no function is known to leave its return address alone. */
static bool has_room;

static bool make_room(struct array *array, size_t needed)
{
	size_t size = array->size > 0 ? 2 * array->size : ARRAY_MIN;
	void *memory;

	if (needed <= array->size)
		return true;
	if (sys_map(size, &memory) < 0)
		return false;
	if (array->memory) {
		__builtin_memcpy(memory, array->memory, array->size);
		sys_unmap(array->memory, array->size);
	}
	*array = (struct array){ memory, size };
	return true;
}

static void drop(struct array *array)
{
	if (array->memory)
		sys_unmap(array->memory, array->size);
	*array = (struct array){ 0 };
}

static struct function *function_at(uint32_t number)
{
	return (struct function *)functions.memory + number;
}

static struct jump *jump_at(uint32_t number)
{
	return (struct jump *)jumps.memory + number;
}

/* The place of the function's number, or of a new one. */
static uint32_t *number_of(uintptr_t start)
{
	uint32_t *places = numbers.memory;
	size_t count = numbers.size / sizeof(*places);
	size_t at = (start * 0x9e3779b97f4a7c15 >> 20) & (count - 1);

	while (places[at] && function_at(places[at] - 1)->start != start)
		at = (at + 1) & (count - 1);
	return &places[at];
}

/* Keeps half of the places free. */
static bool make_numbers(uint32_t count)
{
	struct array old = numbers;

	if (2 * count * sizeof(uint32_t) <= numbers.size)
		return true;
	numbers = (struct array){ 0, old.size };
	if (!make_room(&numbers, old.size + 1)) {
		numbers = old;
		return false;
	}
	for (uint32_t i = 0; i < function_count; i++)
		*number_of(function_at(i)->start) = i + 1;
	drop(&old);
	return true;
}

/* The number of a function, plus one; 0: there is no room. */
static uint32_t add_function(uintptr_t start)
{
	uint32_t *place, count = function_count + 1;

	if (!make_room(&functions, count * sizeof(struct function)) ||
	    !make_numbers(count)) {
		has_room = false;
		return 0;
	}
	place = number_of(start);
	if (*place)
		return *place;
	*function_at(function_count) = (struct function){ .start = start };
	function_count = count;
	return *place = count;
}

static void add_jump(uint32_t from, uintptr_t target)
{
	uint32_t to = add_function(target);

	if (!to)
		return;
	if (make_room(&jumps, (jump_count + 1) * sizeof(struct jump)))
		*jump_at(jump_count++) = (struct jump){ from, to - 1 };
	else
		has_room = false;
}

void own_return_begin(const struct source_image *image)
{
	image_start = image->start;
	image_end = image->end;
	has_room = true;
}

void own_return_end(void)
{
	drop(&functions);
	drop(&jumps);
	drop(&numbers);
	function_count = jump_count = 0;
}

/* --- the search --- */

/* Bytes that only look like a jump lead to the middle of a function. */
static bool begins_function(uintptr_t address)
{
	static struct fde fde;
	struct tables tables;

	return eh_frame_open(address, &tables, &fde) && fde.start == address;
}

static void look_for_jump(uint32_t number, uintptr_t at, uintptr_t target)
{
	if (target - machine.fde.start < machine.fde.end - machine.fde.start ||
	    target < image_start || target >= image_end)
		return;
	if (has_no_frame(at) && begins_function(target))
		add_jump(number, target);
}

static void search(uint32_t number, uintptr_t start, size_t size)
{
	struct stack_read read;
	uintptr_t target;

	row_end = 0;
	has_row = false;
	for (size_t i = 0; i < size; i++) {
		if (entry_reads_stack(buffer + i, size - i, &read) &&
		    is_of_return(&read, start + i)) {
			function_at(number)->is_read = true;
			return;
		}
		target = entry_jumps(buffer + i, size - i, start + i);
		if (target)
			look_for_jump(number, start + i, target);
	}
}

static void search_function(uint32_t number)
{
	struct tables tables;
	size_t size;

	if (!eh_frame_open(function_at(number)->start, &tables, &machine.fde))
		return;
	for (uintptr_t at = machine.fde.start; at < machine.fde.end;
	     at += BUFFER_SIZE - ENTRY_READ_SIZE) {
		size = machine.fde.end - at;
		if (size > BUFFER_SIZE)
			size = BUFFER_SIZE;
		if (pages_read((const void *)at, buffer, size) < 0)
			return;
		search(number, at, size);
		if (function_at(number)->is_read)
			return;
	}
}

/* Jumps from @first on are those of functions that were not known before.  Most chains of
 * jumps lead up, or down. */
static void follow_jumps(uint32_t first)
{
	bool is_up = false, is_new = true;

	for (; is_new; is_up = !is_up) {
		is_new = false;
		for (uint32_t i = first; i < jump_count; i++) {
			const struct jump *jump = jump_at(
				is_up ? i : first + jump_count - 1 - i);
			struct function *from = function_at(jump->from);

			if (from->is_read || !function_at(jump->to)->is_read)
				continue;
			from->is_read = is_new = true;
		}
	}
}

bool own_return_is_read(uintptr_t function)
{
	uint32_t known = function_count, first = jump_count;
	uint32_t number = add_function(function);

	ASSERT_LOCKED();
	/* All that these jump to are new, too, or known. */
	for (uint32_t i = known; has_room && i < function_count; i++)
		search_function(i);
	follow_jumps(first);
	return !has_room || function_at(number - 1)->is_read;
}

void own_return_say(const struct source_image *image, uint32_t count)
{
	left_out_say_marks(image->start, count,
			   "marked functions use their own return address, or "
			   "end with a jump to one that does, and are not "
			   "recorded (compile with "
			   "-finstrument-functions or -fxray-instrument)");
}
