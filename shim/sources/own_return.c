/*
 * Looks at each byte of a function's code, as an instruction may begin at any, and asks the
 * unwind table where the return address is.
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

static bool search(uintptr_t start, size_t size)
{
	struct stack_read read;

	row_end = 0;
	for (size_t i = 0; i < size; i++)
		if (entry_reads_stack(buffer + i, size - i, &read) &&
		    is_of_return(&read, start + i))
			return true;
	return false;
}

bool own_return_is_read(uintptr_t function)
{
	struct tables tables;
	size_t size;

	if (!eh_frame_open(function, &tables, &machine.fde))
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

void own_return_say(const struct source_image *image, uint32_t count)
{
	left_out_say_marks(image->start, count,
			   "marked functions use their own return address, and "
			   "are not recorded (compile with "
			   "-finstrument-functions or -fxray-instrument)");
}
