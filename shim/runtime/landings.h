/*
 * The landing pads that a thread runs: code that cleans up while an exception,
 * or the end of a thread, unwinds a function.  Some compilers call leave hooks
 * there; a leave hook that is called in such a frame is no return.
 */
#ifndef SHIM_LANDINGS_H
#define SHIM_LANDINGS_H

#include <stdbool.h>
#include <stdint.h>

/* Nested landing pads (a destructor throws in turn); older ones are forgotten. */
#define LANDINGS_MAX 8

struct landing {
	uintptr_t sp, end; /* of the frame */
};

/* The number of landing pads that the calling thread runs; arch/.../dispatch.S reads it. */
extern __thread uint8_t landings_count
	__attribute__((visibility("hidden"), tls_model("initial-exec")));

/* A landing pad begins in the frame [@sp, @end).  Frames below are gone. */
void landings_begin(uintptr_t sp, uintptr_t end);
/* A catch block begins in the frame just above @sp: the landing pad there is done. */
void landings_caught(uintptr_t sp);
/* Frames below @sp are gone. */
void landings_cut(uintptr_t sp);
/* Whether a landing pad called the hook that was called with this stack pointer. */
bool landings_has(uintptr_t frame);

#endif
