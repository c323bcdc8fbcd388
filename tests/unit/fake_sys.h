/*
 * A system that fails on demand: the functions of shim/os/sys.h.  Each works
 * normally unless a test requested a failure.
 */
#ifndef FAKE_SYS_H
#define FAKE_SYS_H

#include <stdbool.h>
#include <stdint.h>

/* The number of calls so far. */
extern unsigned fake_calls;

/* Makes the @n-th call from now on (the first is 1) fail with @error; with
 * @for_good, all later calls fail, too. */
void fake_fail(unsigned n, int error, bool for_good);

/* The name of the function that failed; NULL: the failing call was not
 * reached. */
const char *fake_failed(void);

/* From now on, each call first calls @watcher with the name of its function; NULL: stop. */
void fake_watch(void (*watcher)(const char *name));

/* From now on, the n-th call stores the first letter of its function in
 * @names[n], n < @room; NULL: stop. */
void fake_note_names(char *names, unsigned room);

/* Each reading of the time takes @each_ns longer, by the clocks. */
void fake_slow(uint64_t each_ns);

/* The time stands still from now on.  A wait with a limit ends at once, and by the clocks
 * it has taken as long as it may.  The first @room limits are stored in @waits_ms. */
void fake_waits(uint32_t *waits_ms, unsigned room);

/* The number of such waits so far. */
unsigned fake_waited(void);

/* A reader of @path gets @text, in pieces of at most @piece bytes. */
void fake_file(const char *path, const char *text, unsigned piece);

#endif
