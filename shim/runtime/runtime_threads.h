/*
 * Threads of shim and of modules: those of shim_thread_create, the thread that
 * waits for profilers to detach, and the thread that serves `profrun ctl`.
 *
 * The real pthread_create creates them, because code on them calls libc.  All signals
 * are blocked in them, except SIGTRAP and two of libc.
 */
#ifndef SHIM_RUNTIME_THREADS_H
#define SHIM_RUNTIME_THREADS_H

#include "runtime/subscribe.h"

#include <stdbool.h>
#include <stddef.h>

struct module;

/* Runs call(argument) on a new thread.  The thread belongs to @module unless
 * that is NULL.  A @stack_size of 0 is libc's default.  shim knows the
 * thread as its own when this returns.  Returns 0 or -errno.  Never with the
 * state lock held. */
int runtime_thread_start(void (*call)(void *argument), void *argument,
			 size_t stack_size, struct module *module,
			 const char *name);

/* The calling thread @self, which belongs to shim or a module, runs no more
 * of its code. */
struct thread;
void runtime_thread_ends(struct thread *self);

/* A thread of a module has ended. */
TOPIC(module_thread_ended, void);

/* Whether a thread of @module still runs the module's code. */
bool runtime_threads_has(const struct module *module);

#endif
