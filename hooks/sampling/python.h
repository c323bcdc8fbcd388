/*
 * The frames of CPython: functions of Python in the place of the interpreter's.
 */
#ifndef HOOKS_SAMPLING_PYTHON_H
#define HOOKS_SAMPLING_PYTHON_H

#include <shim/info.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is known about the Python of a thread.  All zero at first; one writer. */
struct python_thread;

/* Allocates memory in the file of the thread's samples, which stays; or NULL. */
typedef void *(*python_allocate)(void *argument, size_t size);

/* Looks for the interpreter among the objects that were loaded at the start; the log says
 * why its frames are not read, if there is one. */
void python_begin(void);
/* Looks for the interpreter in @image, unless there is one. */
void python_image_loaded(shim_image image);
void python_image_unloaded(uintptr_t low, uintptr_t high);
/* Async. */
bool python_is_there(void);

/*
 * Copies a stack of @count addresses, the innermost first, to @mixed, which has room for
 * @room.  A frame of the interpreter becomes the functions of Python that it runs, if they
 * can be read; else it stays.  Returns the number of addresses.
 *
 * A function of Python has an address that no code has: struct shim_code_node names it.
 * Async: nothing is called that takes a lock, and no read of memory can fault.
 */
uint32_t python_mix(struct python_thread **thread, python_allocate allocate,
		    void *argument, const uintptr_t *stack, uint32_t count,
		    uintptr_t *mixed, uint32_t room);

#endif
