/*
 * A file of the recording that somebody makes shorter: what was mapped there is
 * a hole, and the next store would end the program by SIGBUS.  The signal is
 * ours (runtime/kept_signals.h); for a hole of ours there is private memory from then on, which
 * reads as zero, and the log says so once for each file.
 */
#ifndef SHIM_HOLE_H
#define SHIM_HOLE_H

#include <stdbool.h>
#include <stddef.h>

/* State lock held.  @name stays. */
void hole_start(void);
void hole_watch(const void *memory, size_t size, const char *name);

#endif
