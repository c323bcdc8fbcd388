/*
 * Call contexts: arguments, locals and results in the callbacks method_enter
 * and method_leave, in Mono's manner.
 *
 * A profiler gets a context if its filter returned
 * SHIM_CALL_INSTRUMENTATION_ENTER_CONTEXT or
 * SHIM_CALL_INSTRUMENTATION_LEAVE_CONTEXT for the function.  A context is valid
 * only in the callback that got it, on its thread.  Anywhere else, and for
 * NULL, the functions below return NULL or an error.  Tail calls and frames
 * that are unwound have no context.
 *
 * A value is exact or not available, for a reason (<shim/values.h>); it is
 * never a guess.
 *
 * Example: add up the results of functions that return int.
 *
 *     #include <shim/contexts.h>
 *
 *     static int sum;
 *
 *     void left(struct shim_profiler *profiler, shim_function function,
 *               struct shim_call_context *context);
 *     void left(struct shim_profiler *profiler, shim_function function,
 *               struct shim_call_context *context)
 *     {
 *             int *result = (int *)shim_call_context_get_result(context);
 *
 *             (void)profiler;
 *             (void)function;
 *             if (result && shim_call_context_get_size(result) == sizeof(int))
 *                     sum += *result;
 *             shim_call_context_free_buffer(result);
 *     }
 */
#ifndef SHIM_CONTEXTS_H
#define SHIM_CONTEXTS_H

#include <shim/hooks.h>
#include <shim/values.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * shim_profiler_enable_call_context_introspection - enable call contexts
 *
 * Applies to the whole process, whichever handle calls it.  Without this call
 * the context of every callback is NULL, at no cost.
 *
 * Returns SHIM_OK; SHIM_E_INVALIDARG for a wrong @handle;
 * SHIM_E_CALL_ONLY_FROM_INIT if it is too late.
 *
 * Contract: init.  CLR: COR_PRF_ENABLE_FUNCTION_ARGS,
 * COR_PRF_ENABLE_FUNCTION_RETVAL.  Mono:
 * mono_profiler_enable_call_context_introspection.
 */
SHIM_API enum shim_result shim_profiler_enable_call_context_introspection(
	SHIM_IN struct shim_profiler_handle *handle) SHIM_INIT;

/*
 * shim_call_context_get_this - the address of the object
 * shim_call_context_get_argument - an argument
 * shim_call_context_get_local - a local variable
 * shim_call_context_get_result - the result of the function
 *
 * Each returns a copy of the value, of the size of its type
 * (shim_call_context_get_size).  The caller owns the copy and frees it with
 * shim_call_context_free_buffer at any time, on any thread.  Two calls make two
 * copies.
 *
 * @position counts arguments from 0, without `this` and `...`.  In method_enter
 * an argument has the value that was passed; in method_leave, the value that
 * its parameter has then.  A reference is an address; for an object that C++
 * passes by its address, method_enter has the object.
 *
 * @position counts locals from 0 in the order of their declaration: those of
 * the function, then those of the blocks around the call of the hook, including
 * static locals.  In method_enter only static locals have a value.  In
 * method_leave a local whose declaration the function has not reached has the
 * previous content of its memory, and a C++ object may have been destroyed,
 * though its bytes remain.  An optimized function does not keep variables that
 * it no longer reads, so most of its locals are not available.
 *
 * Return NULL if there is no such value, or it is not available
 * (shim_call_context_get_info says why); if @context is not valid here; if all
 * buffers are in use (4 MiB for values of up to 32 bytes, and 4 MiB for each
 * larger size up to 512 KiB); or if the contract forbids the call.
 *
 * Contract: sync.  Cost: the first query at a call site of a hook reads debug
 * information, blocks signals and takes the lock of the runtime; later queries
 * look up a table and copy.  A value outside the stack and the function's image
 * takes a system call.  CLR: GetFunctionEnter3Info, GetFunctionLeave3Info.
 * Mono: mono_profiler_call_context_get_this,
 * mono_profiler_call_context_get_argument,
 * mono_profiler_call_context_get_local, mono_profiler_call_context_get_result.
 */
SHIM_API void *
shim_call_context_get_this(SHIM_IN struct shim_call_context *context) SHIM_SYNC;
SHIM_API void *
shim_call_context_get_argument(SHIM_IN struct shim_call_context *context,
			       SHIM_IN uint32_t position) SHIM_SYNC;
SHIM_API void *
shim_call_context_get_local(SHIM_IN struct shim_call_context *context,
			    SHIM_IN uint32_t position) SHIM_SYNC;
SHIM_API void *shim_call_context_get_result(
	SHIM_IN struct shim_call_context *context) SHIM_SYNC;

/*
 * shim_call_context_free_buffer - free a buffer of one of these functions
 *
 * NULL has no effect.  An address that is no buffer, or a buffer that was freed
 * before, has no effect but a line in the log.
 *
 * Contract: async: any thread, also while the profiler is being detached.  CLR:
 * none.  Mono: mono_profiler_call_context_free_buffer.
 */
SHIM_API void shim_call_context_free_buffer(SHIM_IN void *buffer) SHIM_ASYNC;

/*
 * shim_call_context_get_size - the size in bytes of a buffer of one of these functions
 *
 * Returns 0 if @buffer is not from one of these functions, or was freed.
 *
 * Contract: async.  No counterpart.
 */
SHIM_API size_t shim_call_context_get_size(SHIM_IN const void *buffer)
	SHIM_ASYNC;

enum shim_call_value {
	SHIM_CALL_THIS,
	SHIM_CALL_ARGUMENT,
	SHIM_CALL_LOCAL,
	SHIM_CALL_RESULT,
};

/*
 * shim_call_context_get_count - the number of values of a kind
 *
 * It is 0 or 1 for `this` and for the result.
 *
 * Returns SHIM_OK; SHIM_E_INVALIDARG if @context is not valid here or @kind is
 * unknown; SHIM_E_FUNCTION_NOT_IL without debug information;
 * SHIM_E_NOT_YET_AVAILABLE if another thread takes long to read it;
 * SHIM_E_UNEXPECTED without memory.
 *
 * Contract: sync.  Cost: as shim_call_context_get_local.  No counterpart.
 */
SHIM_API enum shim_result
shim_call_context_get_count(SHIM_IN struct shim_call_context *context,
			    SHIM_IN enum shim_call_value kind,
			    SHIM_OUT uint32_t *number) SHIM_SYNC;

/*
 * shim_call_context_get_info - the size of a value, and why it is not available
 *
 * *@size is in bytes, 0 if not known.  *@reason is SHIM_AVAILABLE if the value
 * is available.  @position is not read for `this` and the result.
 *
 * Returns SHIM_OK, also for a value that does not exist; otherwise as
 * shim_call_context_get_count, but the lack of debug information is a *@reason.
 *
 * Contract: sync.  Cost: as shim_call_context_get_local.  No counterpart.
 */
SHIM_API enum shim_result shim_call_context_get_info(
	SHIM_IN struct shim_call_context *context,
	SHIM_IN enum shim_call_value kind, SHIM_IN uint32_t position,
	SHIM_OUT_OPT uint32_t *size,
	SHIM_OUT_OPT enum shim_unavailable *reason) SHIM_SYNC;

/*
 * shim_call_context_get_local_info - the same for a local variable, with its name
 *
 * @name may be empty.
 *
 * Returns as shim_call_context_get_info; SHIM_E_INVALIDARG if @position is too
 * high.
 *
 * Contract: sync.  Cost: as shim_call_context_get_local.  No counterpart.
 */
SHIM_API enum shim_result shim_call_context_get_local_info(
	SHIM_IN struct shim_call_context *context, SHIM_IN uint32_t position,
	SHIM_OUT_OPT uint32_t *size, SHIM_OUT_OPT enum shim_unavailable *reason,
	SHIM_IN uint32_t count, SHIM_OUT_OPT uint32_t *total,
	SHIM_OUT_SIZE_IS(count, total) char *name) SHIM_SYNC;

#ifdef __cplusplus
}
#endif
#endif
