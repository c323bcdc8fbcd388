/*
 * Threads that are not the program's: a module's (shim_thread_create), and ours
 * while somebody detaches or where `profrun ctl` was let in.
 *
 * They are libc's threads, because what runs on them calls libc; made by the
 * real pthread_create, and with all signals blocked.
 */
#ifndef SHIM_RUNTIME_THREADS_H
#define SHIM_RUNTIME_THREADS_H

#include "runtime/subscribe.h"

#include <stdbool.h>
#include <stddef.h>

struct module;

/* Runs call(argument) on a new thread, which belongs to @module if that is not
 * NULL; @stack_size 0 is libc's default.  It is known as ours when this
 * returns.  0 or -errno.  Never with the state lock held. */
int runtime_thread_start(void (*call)(void *argument), void *argument, size_t stack_size,
	      struct module *module, const char *name);

/* The calling thread, which is @self, is one of ours or of a module, and runs no
 * more of its code. */
struct thread;
void runtime_thread_ends(struct thread *self);

/* ... which was a module's. */
TOPIC(module_thread_ended, void);

/* Whether a thread that belongs to @module is still in its code. */
bool runtime_threads_has(const struct module *module);

#endif
