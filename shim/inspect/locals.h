/*
 * The values of a function's variables while a hook of it runs: at the leave
 * hook those of its locals and of its parameters as they are by then.
 *
 * Debug information is asked once for each place that calls a hook, and what it
 * says is kept (variables.h).
 */
#ifndef SHIM_LOCALS_H
#define SHIM_LOCALS_H

#include "arch.h"
#include "inspect/variables.h"

#include <shim/shim.h>
#include <shim/values.h>

struct locals;
struct thread;

/*
 * Finds what is known of the place that called the hook which runs on @frame.
 * SHIM_OK; SHIM_E_FUNCTION_NOT_IL without debug information for the function;
 * SHIM_E_NOT_YET_AVAILABLE while another thread takes long to read it;
 * SHIM_E_UNEXPECTED without memory.  The first time it takes what helper_ask
 * does, and the state lock.
 */
enum shim_result locals_find(const struct arch_frame *frame,
			     const struct locals **locals);

const struct variables *locals_variables(const struct locals *locals);

/*
 * Copies the value of the variable of that number to @value, which has room for
 * as much as its size says.  What is on the program's stack is read as it is;
 * anything else through the system, in case there is nothing.
 */
enum shim_unavailable locals_read_value(const struct thread *self,
					const struct arch_frame *frame,
					const struct locals *locals,
					uint32_t number, void *value);

#endif
