/*
 * Files of the recording that another process truncates.  The mapping then has a hole,
 * and the next store would end the program by SIGBUS.  shim handles that signal
 * (runtime/kept_signals.h): it maps private memory, which reads as zero, over a hole in
 * a file of the recording.  The log has one line for each file.
 */
#ifndef SHIM_HOLE_H
#define SHIM_HOLE_H

#include "runtime/subscribe.h"

#include <stdbool.h>
#include <stddef.h>

/* Installs the handler of SIGBUS.  State lock held. */
void hole_start(void);
/* Another process has truncated the file @name, which is mapped at @memory.  Raised once
 * for each file, in a signal handler: subscribers must be async. */
TOPIC(file_shortened, const char *name, const void *memory);

/* Adds a mapping of the file @name, which must stay valid.  State lock held. */
void hole_watch(const void *memory, size_t size, const char *name);

#endif
