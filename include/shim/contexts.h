/*
 * Call contexts: in the manner of Mono, a profiler whose filter asked for it
 * (SHIM_CALL_INSTRUMENTATION_ENTER_CONTEXT, ..._LEAVE_CONTEXT) is told of
 * arguments, locals and results in its method_enter and method_leave callbacks.
 *
 *     static void left(struct shim_profiler *profiler, shim_function function,
 *                      struct shim_call_context *context)
 *     {
 *             int *result = shim_call_context_get_result(context);
 *
 *             if (result)
 *                     count(*result);
 *             shim_call_context_free_buffer(result);
 *     }
 *
 * A context is valid only in the callback that got it, on its thread: anywhere
 * else, NULL included, nothing is told.  There is none for tail calls, nor for
 * frames that are unwound.
 *
 * A value that cannot be known is not available, for a reason (<shim/values.h>);
 * one that is told is never a guess.
 */
#ifndef SHIM_CONTEXTS_H
#define SHIM_CONTEXTS_H

#include <shim/hooks.h>
#include <shim/values.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * shim_profiler_enable_call_context_introspection - ask for contexts
 *
 * For the whole process.  Without it the context of every callback is NULL, and
 * the program pays nothing.  Row M-57.  Returns SHIM_OK, or
 * SHIM_E_CALL_ONLY_FROM_INIT when it is too late.
 *
 * Contract: init.
 */
SHIM_API enum shim_result
shim_profiler_enable_call_context_introspection(void) SHIM_INIT;

/*
 * shim_call_context_get_this - the address of the object
 * shim_call_context_get_argument - an argument
 * shim_call_context_get_local - a local variable
 * shim_call_context_get_result - what the function returns
 *
 * Each returns a copy of the value, of as many bytes as its type has
 * (shim_call_context_get_size).  It is the caller's, who gives it back with
 * shim_call_context_free_buffer, when and where it likes; two calls make two
 * copies.  Rows M-58 to M-62, section 4.3.
 *
 * Arguments count from 0, `this` not among them, and `...` neither.  In
 * method_enter they are what was passed; in method_leave, what the parameters
 * hold by then.  A reference is an address; of an object that C++ passes by its
 * address, method_enter has the object.
 *
 * Locals count from 0 in the order of their declaration: those of the function,
 * then those of the blocks around the place that calls the hook, static ones
 * too.  In
 * method_enter only static ones have a value.  In method_leave a local that the
 * function did not get to holds what was there, and objects of C++ may have been
 * destroyed, whose bytes are still there.  An optimized function leaves out
 * what is not read any more, so of its locals only those are told whose value
 * the compiler follows: few, because most are dead by then.
 *
 * Return NULL if there is no such value, or it is not available
 * (shim_call_context_get_info says why); if @context is not valid here; if all
 * buffers are in use, which hold 4 MiB of values of up to 32 bytes, and of each
 * next size, up to 512 KiB; and where the contract does not allow the call.
 *
 * Contract: sync.  Cost: the first question at a place in the program reads debug
 * information, blocks signals and takes the lock of the runtime; later ones look
 * up a table, and copy.  What is neither on the stack nor in the function's object
 * takes a system call.
 */
SHIM_API void *
shim_call_context_get_this(SHIM_IN struct shim_call_context *context) SHIM_SYNC;
SHIM_API void *
shim_call_context_get_argument(SHIM_IN struct shim_call_context *context,
			       SHIM_IN uint32_t position) SHIM_SYNC;
SHIM_API void *
shim_call_context_get_local(SHIM_IN struct shim_call_context *context,
			    SHIM_IN uint32_t position) SHIM_SYNC;
SHIM_API void *
shim_call_context_get_result(SHIM_IN struct shim_call_context *context)
	SHIM_SYNC;

/*
 * shim_call_context_free_buffer - give back what one of these returned
 *
 * NULL is allowed.  What is no buffer, or was given back before, is left alone
 * and noted in the log.  Rows M-62, M-63.
 *
 * Contract: async: any thread, also when its profiler is being detached.
 */
SHIM_API void shim_call_context_free_buffer(SHIM_IN void *buffer) SHIM_ASYNC;

/* shim_call_context_get_size - the bytes of a value that one of these returned; 0
 * for what is none.  Contract: async. */
SHIM_API size_t
shim_call_context_get_size(SHIM_IN const void *buffer) SHIM_ASYNC;

enum shim_call_value {
	SHIM_CALL_THIS,
	SHIM_CALL_ARGUMENT,
	SHIM_CALL_LOCAL,
	SHIM_CALL_RESULT,
};

/*
 * shim_call_context_get_count - how many values of a kind there are
 *
 * 1 or 0 of `this`, and of results.  Returns SHIM_OK; SHIM_E_INVALIDARG if
 * @context is not valid here or @kind is none; SHIM_E_FUNCTION_NOT_IL without
 * debug information; SHIM_E_NOT_YET_AVAILABLE if another thread takes long to read
 * it; SHIM_E_UNEXPECTED without memory.
 *
 * Contract: sync.  Cost: as shim_call_context_get_local.
 */
SHIM_API enum shim_result
shim_call_context_get_count(SHIM_IN struct shim_call_context *context,
			    SHIM_IN enum shim_call_value kind,
			    SHIM_OUT uint32_t *number) SHIM_SYNC;

/*
 * shim_call_context_get_info - how large a value is, and why it is not available
 *
 * *@size is in bytes, 0 if that is not known; *@reason is SHIM_AVAILABLE if it can
 * be had.  @position is not looked at for `this` and the result.  Returns
 * SHIM_OK, also for what is not there; otherwise as shim_call_context_get_count,
 * but without debug information that is the reason.
 *
 * Contract: sync.  Cost: as shim_call_context_get_local.
 */
SHIM_API enum shim_result
shim_call_context_get_info(SHIM_IN struct shim_call_context *context,
			   SHIM_IN enum shim_call_value kind,
			   SHIM_IN uint32_t position,
			   SHIM_OUT_OPT uint32_t *size,
			   SHIM_OUT_OPT enum shim_unavailable *reason)
	SHIM_SYNC;

/*
 * shim_call_context_get_local_info - the name of a local variable, besides
 *
 * @name may be empty.  Returns as shim_call_context_get_info, and
 * SHIM_E_INVALIDARG for a @position that is too high.
 *
 * Contract: sync.  Cost: as shim_call_context_get_local.
 */
SHIM_API enum shim_result
shim_call_context_get_local_info(SHIM_IN struct shim_call_context *context,
				 SHIM_IN uint32_t position,
				 SHIM_OUT_OPT uint32_t *size,
				 SHIM_OUT_OPT enum shim_unavailable *reason,
				 SHIM_IN uint32_t count,
				 SHIM_OUT_OPT uint32_t *total,
				 SHIM_OUT_SIZE_IS(count, total) char *name)
	SHIM_SYNC;

#ifdef __cplusplus
}
#endif
#endif
