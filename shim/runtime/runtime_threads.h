/*
 * Threads of shim and of modules: those of shim_thread_create, the thread that waits
 * for profilers to detach, and the thread that serves `profrun ctl`.
 *
 * libc's pthread_create creates them, because their code calls libc.  They block all
 * signals except SIGTRAP and two signals of libc.
 */
#ifndef SHIM_RUNTIME_THREADS_H
#define SHIM_RUNTIME_THREADS_H

#include "runtime/subscribe.h"

#include <stdbool.h>
#include <stddef.h>

struct module;

/* Runs call(argument) on a new thread, which belongs to @module, or to shim if @module
 * is NULL.  A @stack_size of 0 means libc's default.  When the function returns, the
 * thread has its record.  Returns 0 or -errno.  The caller must not hold the state
 * lock. */
int runtime_thread_start(void (*call)(void *argument), void *argument,
			 size_t stack_size, struct module *module,
			 const char *name);

/* The calling thread @self, which belongs to shim or a module, will run no more code of
 * its owner. */
struct thread;
void runtime_thread_ends(struct thread *self);

/* libc's pthread_create was called, not by the program. */
TOPIC(runtime_thread_created, void);

/* A thread of a module has ended. */
TOPIC(module_thread_ended, void);

/* Whether a thread of @module still runs the module's code. */
bool runtime_threads_has(const struct module *module);

#endif
