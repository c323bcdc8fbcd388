/*
 * The values of a function's variables while one of its hooks runs.  At the leave hook
 * these are the current values of locals and parameters.
 *
 * shim reads debug information once for each call of a hook, and stores the result
 * (variables.h).
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
 * Finds the variables at the call of the hook that runs on @frame.  Returns SHIM_OK;
 * SHIM_E_FUNCTION_NOT_IL without debug information for the function;
 * SHIM_E_NOT_YET_AVAILABLE while another thread takes long to read it;
 * SHIM_E_UNEXPECTED without memory.  The first call takes the locks of helper_ask and
 * the state lock.
 */
enum shim_result locals_find(const struct arch_frame *frame,
			     const struct locals **locals);

const struct variables *locals_variables(const struct locals *locals);

/*
 * Copies the value of variable @number to @value, which has room for the variable's
 * size.  It reads the program's stack directly, and other memory by a system call,
 * because that memory may be unmapped.
 */
enum shim_unavailable locals_read_value(const struct thread *self,
					const struct arch_frame *frame,
					const struct locals *locals,
					uint32_t number, void *value);

#endif
