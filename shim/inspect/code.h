/*
 * What the program's code does after a leave hook.  shim finds out by decoding the
 * code.
 */
#ifndef SHIM_CODE_H
#define SHIM_CODE_H

#include "inspect/decode/decode.h"
#include "runtime/hook.h"
#include "runtime/subscribe.h"

enum code_leave {
	CODE_RETURNS,
	CODE_DEPENDS,	 /* it returns unless it is being unwound; also if
				   unknown */
	CODE_TAIL_CALLS, /* it jumps to another function */
	CODE_UNWINDS,	 /* it resumes an exception */
};

/*
 * Opens the decoder, libshim-code.so, if this processor has one.  Until then every
 * answer is CODE_DEPENDS.  Called before the first plan that tracks calls; may be
 * called again.  Takes the loader's lock; the caller must not hold the state lock.
 */
void code_start(void);

/*
 * Decides what the code does after a leave hook that the function itself has called: at
 * @call->return_address.  *@target receives the function to which a tail call jumps, or
 * 0 if unknown.  The answer for each address is stored.  Async.  The first query for an
 * address blocks signals and takes the state lock.
 */
enum code_leave code_leave_kind(const struct plan_call *call,
				uintptr_t *target);

/* See decode/decode.h.  Without a decoder, @places stay unchanged.  False if a decoder
 * may be opened later.  State lock held. */
bool code_find_arguments(const struct decode_location *location,
			 struct decode_frame *frame,
			 struct decode_places *places);

/* See decode/decode.h; false without a decoder.  State lock held. */
bool code_calls(struct decode_call *call);
bool code_way(struct decode_way *way);
bool code_passed(struct decode_passed *passed);
/* The decoder; NULL without one.  *@may_come says whether it may be opened later. */
const struct decode *code_decoder(bool *may_come);

/* Stored answers about the code are no longer valid. */
TOPIC(code_forgotten, void);

/* The program has closed an object, so its addresses may be reused. */
void code_closed(void);

#endif
