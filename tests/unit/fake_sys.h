/*
 * A system that fails on demand: the functions of shim/os/sys.h, each of which
 * does what it should unless a test has asked for something else.
 */
#ifndef FAKE_SYS_H
#define FAKE_SYS_H

#include <stdbool.h>
#include <stdint.h>

/* How many calls there were so far. */
extern unsigned fake_calls;

/* The @n-th call from now on (the first is 1) fails with @error; with
 * @for_good, and every one after it. */
void fake_fail(unsigned n, int error, bool for_good);

/* Which function the failing call was; NULL: not reached. */
const char *fake_failed(void);

/* @names[n], n < @room, becomes the first letter of the n-th call's function
 * from now on; NULL: no more. */
void fake_note_names(char *names, unsigned room);

/* Asking for the time takes @each_ns longer, by the clocks. */
void fake_slow(uint64_t each_ns);

/* Whoever opens @path for reading finds @text there, which is handed out in
 * pieces of at most @piece bytes. */
void fake_file(const char *path, const char *text, unsigned piece);

#endif
