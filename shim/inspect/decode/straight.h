/* The straight code before a call. */
#ifndef SHIM_DECODE_STRAIGHT_H
#define SHIM_DECODE_STRAIGHT_H

#include "inspect/decode/decode.h"

#include <stdbool.h>
#include <stdint.h>

struct straight_code {
	uintptr_t
		begin; /* the last address to which a jump or a return may lead */
	bool has_frame_pointer; /* the caller's, set once, to the stack pointer */
};

/* False if the caller's code is not understood.  Keeps the caller that was decoded
 * last: only one call may run at a time. */
bool straight_find(const struct decode_passed *passed,
		   struct straight_code *code);

#endif
