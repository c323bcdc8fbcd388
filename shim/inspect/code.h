/*
 * What the program's code does after a leave hook, read from the code itself.
 */
#ifndef SHIM_CODE_H
#define SHIM_CODE_H

#include "inspect/decode/decode.h"
#include "runtime/hook.h"
#include "runtime/subscribe.h"

enum code_leave {
	CODE_RETURNS,
	CODE_DEPENDS,		/* it returns, unless it is being unwound; also when
				   nothing is known */
	CODE_TAIL_CALLS,	/* it jumps to another function */
	CODE_UNWINDS,		/* it resumes an exception */
};

/*
 * Opens the decoder, libshim-code.so, if there is one for this processor; until
 * then everything CODE_DEPENDS.  Before the first plan that tracks; may be
 * called again.  Not with the state lock: it takes the loader's.
 */
void code_start(void);

/*
 * What happens at @call->return_address, where a leave hook that was called
 * from inside its function returns to.  *@target gets the function that a tail
 * call jumps to, 0 if that is not known.  Decided once per address and remembered.
 * Async; blocks signals and takes the state lock the first time.
 */
enum code_leave code_leave_kind(const struct plan_call *call,
				uintptr_t *target);

/* See decode/decode.h; without a decoder @places stay as they are.  False: there
 * may be one later.  State lock held. */
bool code_find_arguments(const struct decode_location *location,
			 struct decode_frame *frame,
			 struct decode_places *places);

/* See decode/decode.h; without a decoder nothing is known.  State lock held. */
bool code_calls(struct decode_call *call);
bool code_way(struct decode_way *way);
bool code_passed(struct decode_passed *passed);
/* The decoder, or NULL and whether there may be one later. */
const struct decode *code_decoder(bool *may_come);

/* What was known of the code is not any more. */
TOPIC(code_forgotten, void);

/* The program has closed an object: its addresses may be used again. */
void code_closed(void);

#endif
