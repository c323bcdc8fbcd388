/*
 * The landing pads that a thread runs: code that cleans up while an exception, or the
 * end of a thread, unwinds a function.  Some compilers call leave hooks in landing
 * pads.  Such a call means unwinding, not a return.
 */
#ifndef SHIM_LANDINGS_H
#define SHIM_LANDINGS_H

#include <stdbool.h>
#include <stdint.h>

/* The number of nested landing pads (a destructor throws in turn).  A deeper one
 * replaces the oldest. */
#define LANDINGS_MAX 8

struct landing {
	uintptr_t sp, end; /* of the frame */
};

/* The number of landing pads that the calling thread runs; arch/.../dispatch.S reads it. */
extern __thread uint8_t landings_count
	__attribute__((visibility("hidden"), tls_model("initial-exec")));

/* A landing pad begins in the frame [@sp, @end).  Removes landing pads below. */
void landings_begin(uintptr_t sp, uintptr_t end);
/* A catch block begins in the frame just above @sp: the landing pad of that frame has
 * ended. */
void landings_caught(uintptr_t sp);
/* Removes landing pads below @sp, whose frames no longer exist. */
void landings_cut(uintptr_t sp);
/* Whether a landing pad has called the hook whose caller has the stack pointer @frame. */
bool landings_has(uintptr_t frame);

#endif
