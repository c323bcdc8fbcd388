/* Which argument registers the code of a function reads, behind a mark at its beginning. */
#ifndef SHIM_DECODE_USES_H
#define SHIM_DECODE_USES_H

#include "inspect/decode/decode.h"
#include "inspect/decode/instruction.h"

/* The address behind the instruction.  Moved instructions end with a jump to those behind
 * them in the function.  0 if the instruction leads out of both. */
uintptr_t uses_next(const struct decode_location *location,
		    const struct instruction *instruction);

/*
 * The registers (bits; vector registers from 16) that the function reads before it writes
 * them, on any path from @location->entry up to the first call.  A compiler does not read
 * registers that have no value, so these arguments are passed.  Registers of which nothing
 * is known are missing.
 */
uint32_t uses_at_entry(const struct decode_location *location);

/* Whether the code in front of a mark that is behind the function's frame leaves all argument
 * registers alone. */
bool uses_keep_arguments(const struct decode_location *location);

/* Whether the code behind a call reads register @number, as above. */
bool uses_after_call(uintptr_t site, unsigned number);

/* Whether an instruction of the function writes the register. */
bool uses_write(const struct decode_location *location, unsigned number);

#endif
