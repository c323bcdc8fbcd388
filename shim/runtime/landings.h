/*
 * The landing pads that a thread runs: what cleans up while an exception, or the
 * end of a thread, goes through a function.  Compilers call leave hooks there or
 * do not; a leave hook that is called in such a frame does not mean a return.
 */
#ifndef SHIM_LANDINGS_H
#define SHIM_LANDINGS_H

#include <stdbool.h>
#include <stdint.h>

/* One in another's destructor, and so on; older ones are forgotten. */
#define LANDINGS_MAX 8

struct landing {
	uintptr_t sp, end;	/* of the frame */
};

/* How many the calling thread runs; entry.S reads it. */
extern __thread uint8_t landings_count
	__attribute__((visibility("hidden"), tls_model("initial-exec")));

/* A landing pad begins in the frame [@sp, @end); what was below it is gone. */
void landings_begin(uintptr_t sp, uintptr_t end);
/* A catch block begins in the frame just above @sp: its pad is done. */
void landings_caught(uintptr_t sp);
/* What was below @sp is gone. */
void landings_cut(uintptr_t sp);
/* Whether a hook that was called with this stack pointer was called by a pad. */
bool landings_has(uintptr_t frame);

#endif
