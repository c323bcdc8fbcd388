/*
 * Files of the recording that another process truncates.  The mapping then has
 * a hole, and the next store would end the program by SIGBUS.  shim handles
 * that signal (runtime/kept_signals.h): it maps private memory, which reads as
 * zero, over a hole in a file of the recording.  The log says so once for each
 * file.
 */
#ifndef SHIM_HOLE_H
#define SHIM_HOLE_H

#include <stdbool.h>
#include <stddef.h>

/* State lock held.  @name must stay valid. */
void hole_start(void);
void hole_watch(const void *memory, size_t size, const char *name);

#endif
