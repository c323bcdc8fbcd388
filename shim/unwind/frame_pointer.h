/*
 * Guesses the caller of code without unwind tables: code that a program makes while it
 * runs, Go, assembly.  Such code often keeps frame pointers.
 */
#ifndef SHIM_FRAME_POINTER_H
#define SHIM_FRAME_POINTER_H

#include "unwind/unwind.h"

/*
 * Goes to the caller's frame: by the instructions at the address, if these are the
 * beginning or the end of a function, else by the frame pointer.  Each address that it
 * takes for a return address is in executable memory, after a call instruction; only the
 * outermost frame, whose caller's frame pointer is 0, may have another one.  The new frame
 * is above the old one, or on another stack.  False if this fails, or if a frame pointer has
 * led to this frame, whose own is 0 (is_last).  Async.
 */
bool frame_pointer_step(struct unwind *walk);

/* Drops what was found about addresses: they may be reused. */
void frame_pointer_clear(void);

#endif
