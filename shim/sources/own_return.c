/*
 * Looks at each byte of a function's code, as an instruction may begin at any, and asks the
 * unwind table where the return address is.  A function that another one ends with a jump to
 * has the return address of that one.
 */
#include "sources/own_return.h"

#include "os/pages.h"
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
		has_row = eh_frame_find_row(&machine, address);
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

/* --- the functions that a jump reaches --- */

/* The image that is asked about.  (What only looks like a jump may lead anywhere, and
 * eh_frame_open would search for new images there.) */
static uintptr_t image_start, image_end;

/* The function that is asked for, and those that jumps lead to from there. */
static uintptr_t reached[4096];
static uint32_t reached_count;

/* Answers, by their functions: twice the address, and 1 if the return address is read. */
static uint64_t answers[8192];

static uint64_t *answer_place(uintptr_t function)
{
	return &answers[(uint32_t)(function >> 4) %
			(sizeof(answers) / sizeof(*answers))];
}

static void keep_answer(uintptr_t function, bool is_read)
{
	*answer_place(function) = (uint64_t)function << 1 | is_read;
}

void own_return_begin(const struct source_image *image)
{
	image_start = image->start;
	image_end = image->end;
	for (uint32_t i = 0; i < sizeof(answers) / sizeof(*answers); i++)
		if (answers[i])
			answers[i] = 0;
}

/* Whether the stack pointer is where it was when the function began. */
static bool has_no_frame(uintptr_t address)
{
	const struct rule *cfa = &machine.row.cfa;

	return find_row(address) && cfa->how == HOW_IS &&
	       cfa->size == WALK_SP && cfa->value == sizeof(uintptr_t);
}

static bool is_reached(uintptr_t function)
{
	for (uint32_t i = 0; i < reached_count; i++)
		if (reached[i] == function)
			return true;
	return false;
}

/* False if there is no more room. */
static bool reach(uintptr_t from, uintptr_t target)
{
	if (target - machine.fde.start < machine.fde.end - machine.fde.start ||
	    target < image_start || target >= image_end ||
	    !has_no_frame(from) || is_reached(target))
		return true;
	if (reached_count == sizeof(reached) / sizeof(*reached))
		return false;
	reached[reached_count++] = target;
	return true;
}

static bool search(uintptr_t start, size_t size)
{
	struct stack_read read;
	uintptr_t target;

	row_end = 0;
	for (size_t i = 0; i < size; i++) {
		if (entry_reads_stack(buffer + i, size - i, &read) &&
		    is_of_return(&read, start + i))
			return true;
		target = entry_jumps(buffer + i, size - i, start + i);
		if (target && !reach(start + i, target))
			return true;
	}
	return false;
}

static bool is_read_by(uintptr_t function)
{
	struct tables tables;
	size_t size;

	if (!eh_frame_open(function, &tables, &machine.fde))
		return false;
	/* Bytes that only look like a jump lead to the middle of a function. */
	if (function != reached[0] && function != machine.fde.start)
		return false;
	for (uintptr_t at = machine.fde.start; at < machine.fde.end;
	     at += BUFFER_SIZE - ENTRY_READ_SIZE) {
		size = machine.fde.end - at;
		if (size > BUFFER_SIZE)
			size = BUFFER_SIZE;
		if (pages_read((const void *)at, buffer, size) < 0)
			return false;
		if (search(at, size))
			return true;
	}
	return false;
}

bool own_return_is_read(uintptr_t function)
{
	bool is_read = false;

	reached[0] = function;
	reached_count = 1;
	for (uint32_t i = 0; i < reached_count && !is_read; i++) {
		uint64_t answer = *answer_place(reached[i]);

		if (answer >> 1 == reached[i])
			is_read = answer & 1;
		else
			is_read = is_read_by(reached[i]);
	}
	if (is_read)
		keep_answer(function, true);
	for (uint32_t i = 0; i < reached_count && !is_read; i++)
		keep_answer(reached[i], false);
	return is_read;
}

void own_return_say(const struct source_image *image, uint32_t count)
{
	left_out_say_marks(image->start, count,
			   "marked functions use their own return address, or "
			   "end with a jump to one that does, and are not "
			   "recorded (compile with "
			   "-finstrument-functions or -fxray-instrument)");
}
