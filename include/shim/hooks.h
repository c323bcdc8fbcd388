/*
 * Hooks: functions of a profiler that run for every call of an instrumented
 * function (the CLR's enter/leave/tailcall, ELT).
 *
 * A hook runs at any point of the program, with any of its locks held;
 * <shim/banned.h> lists what it may not call.  Fast hooks run on the program's
 * stack.  All other hooks, filters and mappers have at least 384 KiB of stack.
 * Compile hooks without instrumentation.  A hook must not throw: an exception
 * that leaves it ends the program (std::terminate).  (If a C++ library is linked
 * statically, shim cannot see this, and the program may catch the exception.)
 *
 *     generation   arguments of the hook     how it is called
 *     ELT3 fast    function or client id     directly by the program's code
 *     ELT3 slow    the same, and eltInfo     through shim: SHIM_SYNC functions work,
 *                                            and the hook can read arguments
 *     ELT2, ELT1   those of the CLR          through shim, adapters on ELT3
 *
 * A function that a hook calls raises no hooks, if the hook is called through
 * shim. A signal handler that interrupts a hook belongs to the program: its
 * calls raise hooks (on x86-64, in up to three nested handlers).
 *
 * Example: count all calls with a fast hook.
 *
 *     #include <shim/hooks.h>
 *
 *     static unsigned long calls;
 *
 *     static void entered(union shim_function_or_client function)
 *     {
 *             (void)function;
 *             __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
 *     }
 *
 *     SHIM_PROFILER_MODULE(count)
 *     {
 *             return shim_profiler_set_enter_leave_function_hooks3(
 *                     shim_profiler_create(NULL), entered, NULL, NULL);
 *     }
 */
#ifndef SHIM_HOOKS_H
#define SHIM_HOOKS_H

#include <shim/profiler.h>
#include <shim/values.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- the event mask: names and values are the CLR's COR_PRF_MONITOR and
 * COR_PRF_HIGH_MONITOR; <shim/clr.h> has the bits that shim does not act on
 * --- */

#define SHIM_MONITOR_NONE	      0x0u
#define SHIM_MONITOR_MODULE_LOADS     0x4u
#define SHIM_MONITOR_APPDOMAIN_LOADS  0x10u
#define SHIM_MONITOR_EXCEPTIONS	      0x40u
#define SHIM_MONITOR_OBJECT_ALLOCATED 0x100u
#define SHIM_MONITOR_THREADS	      0x200u
#define SHIM_MONITOR_ENTERLEAVE	      0x1000u
#define SHIM_ENABLE_FUNCTION_ARGS     0x2000000u
#define SHIM_ENABLE_FUNCTION_RETVAL   0x4000000u
#define SHIM_ENABLE_FRAME_INFO	      0x8000000u
#define SHIM_ENABLE_STACK_SNAPSHOT    0x10000000u
#define SHIM_MONITOR_ALL	      0x0107ffffu
#define SHIM_MONITOR_IMMUTABLE	      0xeef8cc00u

#define SHIM_HIGH_ALL	    0x1ffu
#define SHIM_HIGH_IMMUTABLE 0x8u

/*
 * shim_profiler_set_event_mask - set the low word of the event mask, clear the high one
 * shim_profiler_set_event_mask2 - set both words
 *
 * shim calls a callback if its event's flag is in the mask, and hooks if
 * MONITOR_ENTERLEAVE is.  A new profiler has MONITOR_ALL without the immutable
 * bits, so a profiler with callbacks only needs no mask.
 *
 * Return SHIM_OK; SHIM_E_INVALIDARG for a wrong handle or unknown high bits;
 * SHIM_E_FAIL if a bit of MONITOR_IMMUTABLE would change after initialization;
 * SHIM_E_INCONSISTENT_WITH_FLAGS during initialization, if the handle has fast
 * hooks and the mask has ENABLE_FUNCTION_ARGS, ENABLE_FUNCTION_RETVAL or
 * ENABLE_FRAME_INFO, if it has slow hooks and the mask has none of these, or if
 * it has hooks and the mask lacks MONITOR_ENTERLEAVE.
 *
 * Contract: async.  If MONITOR_ENTERLEAVE changes, takes the lock of the
 * runtime; hooks are on or off when the call returns.  CLR: SetEventMask,
 * SetEventMask2.  Mono: none.
 */
SHIM_API enum shim_result
shim_profiler_set_event_mask(SHIM_IN struct shim_profiler_handle *handle,
			     SHIM_IN uint32_t mask) SHIM_ASYNC;
SHIM_API enum shim_result
shim_profiler_set_event_mask2(SHIM_IN struct shim_profiler_handle *handle,
			      SHIM_IN uint32_t low,
			      SHIM_IN uint32_t high) SHIM_ASYNC;
/*
 * shim_get_event_mask - the low word of @handle's event mask
 * shim_get_event_mask2 - both words
 *
 * Return SHIM_OK; SHIM_E_INVALIDARG for a wrong handle, or a NULL @mask;
 * SHIM_E_PROFILER_DETACHING.
 *
 * Contract: async.  CLR: GetEventMask, GetEventMask2.  Mono: none.
 */
SHIM_API enum shim_result
shim_get_event_mask(SHIM_IN struct shim_profiler_handle *handle,
		    SHIM_OUT uint32_t *mask) SHIM_ASYNC;
SHIM_API enum shim_result
shim_get_event_mask2(SHIM_IN struct shim_profiler_handle *handle,
		     SHIM_OUT_OPT uint32_t *low,
		     SHIM_OUT_OPT uint32_t *high) SHIM_ASYNC;

/* --- ELT3 --- */

/* The argument of a hook: the function, or the id that a mapper has returned for it.  CLR:
 * FunctionIDOrClientID. */
union shim_function_or_client {
	shim_function function;
	uintptr_t client;
};

/* The data of a call.  It is valid only in the slow hook that got it, as an
 * argument of the functions below.  CLR: COR_PRF_ELT_INFO. */
typedef uintptr_t shim_elt_info;

/* A frame; valid as shim_elt_info is.  CLR: COR_PRF_FRAME_INFO. */
typedef uintptr_t shim_frame_info;

/*
 * A fast hook.  It must keep errno and the floating point state.  If one
 * profiler has hooks, shim has nothing on the stack when the hook runs:
 * SHIM_CALLER_SP (<shim/cpu.h>) in the hook is the program's stack pointer.  A
 * hook may declare a second argument, the address that its caller will return
 * to: SHIM_SITE_HOOK converts such a hook, a shim_site_hook.
 */
typedef void (*shim_function_hook)(union shim_function_or_client function);
typedef void (*shim_site_hook)(shim_function function, const void *site);
#define SHIM_SITE_HOOK(hook) ((shim_function_hook)(void (*)(void))(hook))
typedef void (*shim_function_hook_with_info)(
	union shim_function_or_client function, shim_elt_info info);

/*
 * shim_profiler_set_enter_leave_function_hooks3 - set fast hooks
 * shim_profiler_set_enter_leave_function_hooks3_with_info - set slow hooks
 *
 * At least one of the three must be there; NULL means no hook.  Without a
 * @tailcall hook, a function that ends by a tail call calls the leave hook.  A
 * call that an exception ends raises no leave hook, with either compiler:
 * functions of gcc call the hook while they are unwound, those of clang do not.
 * shim cannot see this if a C++ library is linked statically into a program
 * that is not optimized.  With a @tailcall hook, or once the program has
 * unwound a frame, one comparison precedes the leave hook, which then runs as
 * if the program had called it.  The last of these calls for a handle replaces
 * all its hooks.
 *
 * Return SHIM_OK; SHIM_E_PROFILER_DETACHING; SHIM_E_CALL_ONLY_FROM_INIT after
 * initialization; SHIM_E_INVALIDARG if all hooks are NULL or @handle is wrong;
 * SHIM_E_INCONSISTENT_WITH_FLAGS if the mask has one of ENABLE_FUNCTION_ARGS,
 * ENABLE_FUNCTION_RETVAL and ENABLE_FRAME_INFO (fast hooks), or none of them
 * (slow hooks).
 *
 * Contract: init.  CLR: SetEnterLeaveFunctionHooks3,
 * SetEnterLeaveFunctionHooks3WithInfo.  Mono: none.
 */
SHIM_API enum shim_result shim_profiler_set_enter_leave_function_hooks3(
	SHIM_IN struct shim_profiler_handle *handle,
	SHIM_IN shim_function_hook enter, SHIM_IN shim_function_hook leave,
	SHIM_IN shim_function_hook tailcall) SHIM_INIT;
SHIM_API enum shim_result
shim_profiler_set_enter_leave_function_hooks3_with_info(
	SHIM_IN struct shim_profiler_handle *handle,
	SHIM_IN shim_function_hook_with_info enter,
	SHIM_IN shim_function_hook_with_info leave,
	SHIM_IN shim_function_hook_with_info tailcall) SHIM_INIT;

/*
 * shim_profiler_set_chained_hooks - hooks for when several profilers have hooks
 *
 * If several profilers have hooks, shim has data on the stack when they run.
 * shim then calls these instead of the fast hooks; @frame is the value that
 * SHIM_CALLER_SP would have had.  NULL: shim calls the fast hooks in any case.
 *
 * Returns SHIM_OK; SHIM_E_CALL_ONLY_FROM_INIT; SHIM_E_INVALIDARG for a wrong
 * @handle.
 *
 * Contract: init.  No counterpart.
 */
typedef void (*shim_frame_hook)(shim_function function, const void *site,
				uintptr_t frame);
SHIM_API enum shim_result
shim_profiler_set_chained_hooks(SHIM_IN struct shim_profiler_handle *handle,
				SHIM_IN shim_frame_hook enter,
				SHIM_IN shim_frame_hook leave) SHIM_INIT;

/*
 * shim_profiler_set_raw_leave_hooks - call leave hooks whenever the compiler does
 *
 * Functions of gcc then call the leave hook while an exception unwinds them,
 * too.  For profilers that find out by frame addresses how a call ended.
 *
 * Returns SHIM_OK; SHIM_E_CALL_ONLY_FROM_INIT; SHIM_E_INVALIDARG for a wrong
 * @handle.
 *
 * Contract: init.  No counterpart.
 */
SHIM_API enum shim_result shim_profiler_set_raw_leave_hooks(
	SHIM_IN struct shim_profiler_handle *handle) SHIM_INIT;

/* A call of a hook in the program's code, which shim_profiler_switch_calls
 * switches. */
struct shim_hook_call {
	shim_function function; /* the argument of the hook */
	/* the return address of the call; 0: the jumps to the leave hook that end
	 * @function */
	uintptr_t address;
};

/*
 * shim_profiler_switch_calls - switch single calls of the hooks off, or on again
 *
 * Changes one byte of each of the @count @calls, while other threads run that
 * code.  Calls of a function that is inlined in several places are switched one
 * by one.  When shim_profiler_switch_calls returns, no thread executes the old
 * code.  Calls that begin or end while they are off leave no trace; no
 * calls_started follows.
 * All calls are on again when a further profiler gets hooks, and after a change
 * of filters.
 *
 * Returns SHIM_OK; SHIM_E_INVALIDARG for a wrong @handle, or NULL @calls if
 * @count is not 0; SHIM_E_FAIL if another profiler has hooks, a call is not
 * known, or code cannot be changed.  In the last two cases it has switched the
 * other calls.
 *
 * Contract: async; blocks signals and takes the lock of the runtime.  Cost: as
 * shim_hooks_disable for the first call in an object; later 2 us, and 1 us for
 * each page of code.  No counterpart.
 */
SHIM_API enum shim_result shim_profiler_switch_calls(
	SHIM_IN struct shim_profiler_handle *handle, SHIM_IN int on,
	SHIM_IN uint32_t count,
	SHIM_IN const struct shim_hook_call *calls) SHIM_ASYNC;

/*
 * shim_profiler_set_deferred_hook - set the hook that inspects single calls
 * shim_hook_defer - hand the call over from a fast enter hook to the deferred hook
 *
 * For a profiler with fast hooks that inspects few calls; the others stay fast.
 * The enter hook ends with `shim_hook_defer(function, site)` as a tail call, so
 * that the stack and the callee-saved registers are the program's again.
 * Compilers make it a tail call if they optimize and nothing on the hook's
 * stack is in use.  shim then calls @hook, which may do what slow hooks may do:
 * shim_get_function_enter3_info gives it the arguments, whatever the event mask
 * says.  Unused arguments are available less often than in a slow hook, because
 * the fast hook has overwritten caller-saved registers.  An @info of 0 means
 * that the hook cannot inspect the call: it runs in a signal handler that
 * interrupted a slow hook, or another task uses the same thread-local data.
 *
 * If several profilers have hooks, or @handle may be detached, shim calls @hook
 * for every enter in place of the fast hook.
 *
 * shim_profiler_set_deferred_hook returns SHIM_OK; SHIM_E_CALL_ONLY_FROM_INIT;
 * SHIM_E_INVALIDARG for a wrong @handle.  A NULL @hook removes the hook.
 *
 * Contract: init.  shim_hook_defer is async, and only for a fast enter hook of
 * a profiler that has a deferred hook.  No counterpart.
 */
typedef void (*shim_deferred_hook)(shim_function function, const void *site,
				   uintptr_t frame, shim_elt_info info);
SHIM_API enum shim_result
shim_profiler_set_deferred_hook(SHIM_IN struct shim_profiler_handle *handle,
				SHIM_IN shim_deferred_hook hook) SHIM_INIT;
SHIM_API void shim_hook_defer(SHIM_IN shim_function function,
			      SHIM_IN const void *site) SHIM_ASYNC;

/*
 * shim_profiler_set_restart_hooks - hooks for after calls_started
 *
 * They replace the fast hooks for good just before the first calls_started.  So
 * only they need to check for calls that began or ended while hooks were
 * disabled, and a program that never disables hooks does not pay for the check.
 *
 * Returns SHIM_OK; SHIM_E_CALL_ONLY_FROM_INIT; SHIM_E_INVALIDARG if a hook is
 * NULL or @handle is wrong.
 *
 * Contract: init.  No counterpart.
 */
SHIM_API enum shim_result
shim_profiler_set_restart_hooks(SHIM_IN struct shim_profiler_handle *handle,
				SHIM_IN shim_function_hook enter,
				SHIM_IN shim_function_hook leave) SHIM_INIT;

/* --- ELT1 and ELT2: adapters on ELT3 --- */

typedef void (*shim_function_hook1)(shim_function function);

struct shim_argument_range {
	uintptr_t start;
	uint32_t length;
};

struct shim_argument_info {
	uint32_t ranges_count;
	uint32_t total_size;
	struct shim_argument_range ranges[1]; /* ranges_count of them */
};

typedef void (*shim_enter_hook2)(shim_function function, uintptr_t client,
				 shim_frame_info frame,
				 struct shim_argument_info *arguments);
typedef void (*shim_leave_hook2)(shim_function function, uintptr_t client,
				 shim_frame_info frame,
				 struct shim_argument_range *result);
typedef void (*shim_tailcall_hook2)(shim_function function, uintptr_t client,
				    shim_frame_info frame);

/*
 * shim_profiler_set_enter_leave_function_hooks - set hooks of generation 1
 * shim_profiler_set_enter_leave_function_hooks2 - set hooks of generation 2
 *
 * If the handle has hooks of a newer generation, these calls return SHIM_OK,
 * the log gets a line, and nothing changes.  @frame is 0 without
 * ENABLE_FRAME_INFO; @arguments and @result are NULL without
 * ENABLE_FUNCTION_ARGS and ENABLE_FUNCTION_RETVAL.  @arguments is the data of
 * shim_get_function_enter3_info, in memory of the thread that is valid while
 * the hook runs, or NULL if the function is unknown.  @result is the data of
 * shim_get_function_leave3_info, read before the hook is called; a value that
 * is not available, also for lack of debug information, has a start of 0.
 *
 * Return as shim_profiler_set_enter_leave_function_hooks3, but do not check the
 * mask.
 *
 * Contract: init.  CLR: SetEnterLeaveFunctionHooks,
 * SetEnterLeaveFunctionHooks2.  Mono: none.
 */
SHIM_API enum shim_result shim_profiler_set_enter_leave_function_hooks(
	SHIM_IN struct shim_profiler_handle *handle,
	SHIM_IN shim_function_hook1 enter, SHIM_IN shim_function_hook1 leave,
	SHIM_IN shim_function_hook1 tailcall) SHIM_INIT;
SHIM_API enum shim_result shim_profiler_set_enter_leave_function_hooks2(
	SHIM_IN struct shim_profiler_handle *handle,
	SHIM_IN shim_enter_hook2 enter, SHIM_IN shim_leave_hook2 leave,
	SHIM_IN shim_tailcall_hook2 tailcall) SHIM_INIT;

/* --- the choice of functions, and their ids --- */

/*
 * shim_profiler_set_function_id_mapper - replace functions by ids of the profiler
 * shim_profiler_set_function_id_mapper2 - the same, with @client_data
 *
 * shim calls the mapper once for each function, before the function's first
 * event.  Hooks get the mapper's result instead of the function; 0 means the
 * function itself.  The mapper may set *@hook, which is true, to false: the
 * function then raises no hook of this profiler.  When a library is unloaded,
 * its functions are forgotten, and the mapper is called for functions that come
 * to their addresses.
 *
 * A thread that calls the function while another is in the mapper waits for
 * that result for at most a second; then it calls the mapper itself, and all
 * threads use one of the results.  A new mapper is called for functions that
 * were not seen before. mapper2 wins over mapper.  NULL removes the mapper.  A
 * mapper may call SHIM_SYNC functions.
 *
 * Return SHIM_OK; SHIM_E_INVALIDARG for a wrong handle; SHIM_E_OUTOFMEMORY if
 * the process has 32 mappers and filters.
 *
 * Contract: async; takes the lock of the runtime.  CLR: SetFunctionIDMapper,
 * SetFunctionIDMapper2.  Mono: none.
 */
typedef uintptr_t (*shim_function_id_mapper)(shim_function function, int *hook);
typedef uintptr_t (*shim_function_id_mapper2)(shim_function function,
					      void *client_data, int *hook);
SHIM_API enum shim_result shim_profiler_set_function_id_mapper(
	SHIM_IN struct shim_profiler_handle *handle,
	SHIM_IN shim_function_id_mapper mapper) SHIM_ASYNC;
SHIM_API enum shim_result shim_profiler_set_function_id_mapper2(
	SHIM_IN struct shim_profiler_handle *handle,
	SHIM_IN shim_function_id_mapper2 mapper,
	SHIM_IN void *client_data) SHIM_ASYNC;

/* The values are Mono's MonoProfilerCallInstrumentationFlags. */
enum shim_call_instrumentation_flags {
	SHIM_CALL_INSTRUMENTATION_NONE = 0,
	SHIM_CALL_INSTRUMENTATION_ENTER = 1 << 1,
	SHIM_CALL_INSTRUMENTATION_ENTER_CONTEXT = 1 << 2,
	SHIM_CALL_INSTRUMENTATION_LEAVE = 1 << 3,
	SHIM_CALL_INSTRUMENTATION_LEAVE_CONTEXT = 1 << 4,
	SHIM_CALL_INSTRUMENTATION_TAIL_CALL = 1 << 5,
	SHIM_CALL_INSTRUMENTATION_EXCEPTION_LEAVE = 1 << 6,
};

/*
 * shim_profiler_set_call_instrumentation_filter_callback - choose functions
 *
 * shim calls the filter of each profiler once for each function, before the function's
 * first event.  The flags that the filter returns say which hooks and method_* events
 * this profiler gets of the function.  A profiler without a filter gets hooks for every
 * function and no method_* events.  If no profiler wants a function, shim switches its
 * call sites off; a call then costs as much as the test of a register.  NULL removes
 * the filter.  A new filter is called for all functions again.  A filter may call
 * SHIM_SYNC functions.
 *
 * Returns SHIM_OK; SHIM_E_INVALIDARG for a wrong handle; SHIM_E_OUTOFMEMORY if the
 * process has 32 mappers and filters.
 *
 * Contract: async; takes the lock of the runtime.  CLR: SetFunctionIDMapper.  Mono:
 * mono_profiler_set_call_instrumentation_filter_callback.
 */
typedef enum shim_call_instrumentation_flags (
	*shim_call_instrumentation_filter_callback)(
	struct shim_profiler *profiler, shim_function function);
SHIM_API enum shim_result
shim_profiler_set_call_instrumentation_filter_callback(
	SHIM_IN struct shim_profiler_handle *handle,
	SHIM_IN shim_call_instrumentation_filter_callback filter) SHIM_ASYNC;

/*
 * shim_filters_invalidate - call all filters again
 *
 * shim calls them for each function before the function's next event.
 *
 * Returns SHIM_OK.
 *
 * Contract: async; takes the lock of the runtime.  No counterpart.
 */
SHIM_API enum shim_result shim_filters_invalidate(void) SHIM_ASYNC;

/* --- inspection: in a slow hook, with the arguments of the hook --- */

/*
 * shim_get_function_enter3_info - frame and arguments, in an enter hook
 * shim_get_function_leave3_info - frame and result, in a leave hook
 * shim_get_function_tailcall3_info - frame, in a tailcall hook
 *
 * @info must be the argument of the hook that runs, and the hook must be of the
 * function's kind.  With ENABLE_FRAME_INFO the function writes *@frame.
 *
 * With ENABLE_FUNCTION_ARGS, @arguments gets one range for each declared
 * parameter, from left to right, `this` first.  The range holds the parameter's
 * value while the hook runs; the hook must not change it.  The value of a
 * reference is an address.  The range of an object that C++ passes by its
 * address is the object; its length is 0 if clang has left its class to another
 * object's debug information.  An argument that is not available has a start of
 * 0 and its length; shim_get_value_reason says why.  Often no copy of an argument is
 * left because the function does not use it; in a function that was inlined, no
 * argument is available.  An object that is passed by its address may lack the
 * parts that an optimized function does not read, if its caller was compiled
 * with it: compilers do not say what they left out.  *@size is 24 bytes and 16
 * for each range, the sum that the CLR has.  If *@size is too small, it gets
 * the size needed, and nothing else is written.
 *
 * With ENABLE_FUNCTION_RETVAL, *@result gets the range of the function's
 * result.  A result in several registers is put together there; a result in
 * memory of the caller stays in that memory.  The range is valid while the hook
 * runs; the hook must not change it.  A function that returns nothing has {0,
 * 0}.  A result that is not available, because the function was inlined or an
 * exception ends it, has a start of 0 and its length.  shim does not read
 * @function.
 *
 * Return SHIM_OK; SHIM_E_PROFILER_DETACHING; SHIM_E_UNSUPPORTED_CALL_SEQUENCE
 * outside of a slow hook; SHIM_E_INCONSISTENT_WITH_FLAGS if the mask enables
 * nothing that the function could give; SHIM_E_INVALIDARG for a wrong @info, a
 * NULL @frame with ENABLE_FRAME_INFO (for results: in any case), a @function of
 * 0, a NULL @size with ENABLE_FUNCTION_ARGS, NULL @arguments unless *@size is
 * 0, or a NULL @result with ENABLE_FUNCTION_RETVAL; SHIM_E_INSUFFICIENT_BUFFER
 * if *@size is too small (the only function for which a short buffer is a
 * failure, as in the CLR); SHIM_E_FUNCTION_NOT_IL if the function was compiled
 * without -g, or its debug information lacks some of its arguments;
 * SHIM_E_NOT_YET_AVAILABLE if another thread takes long to read debug
 * information; SHIM_E_UNEXPECTED without memory.
 *
 * Contract: sync.  Cost: the first query about arguments or results at a call
 * site of a hook reads debug information, blocks signals and takes the lock of
 * the runtime; later queries look up a table and copy.  A value that the
 * program computes after the hook is computed twice.  CLR:
 * GetFunctionEnter3Info, GetFunctionLeave3Info, GetFunctionTailcall3Info.
 * Mono: mono_profiler_call_context_get_argument.
 */
SHIM_API enum shim_result shim_get_function_enter3_info(
	SHIM_IN shim_function function, SHIM_IN shim_elt_info info,
	SHIM_OUT_OPT shim_frame_info *frame, SHIM_OUT_OPT uint32_t *size,
	SHIM_OUT_OPT struct shim_argument_info *arguments) SHIM_SYNC;
SHIM_API enum shim_result shim_get_function_leave3_info(
	SHIM_IN shim_function function, SHIM_IN shim_elt_info info,
	SHIM_OUT_OPT shim_frame_info *frame,
	SHIM_OUT_OPT struct shim_argument_range *result) SHIM_SYNC;
SHIM_API enum shim_result
shim_get_function_tailcall3_info(SHIM_IN shim_function function,
				 SHIM_IN shim_elt_info info,
				 SHIM_OUT shim_frame_info *frame) SHIM_SYNC;

/* @position of the result. */
#define SHIM_RESULT UINT32_MAX

/*
 * shim_get_value_reason - the reason why an argument or the result is unavailable
 *
 * @info is that of the enter hook that runs, or of the leave hook, with
 * SHIM_RESULT as @position.  @position counts arguments from 0, `this` first.
 * *@reason is SHIM_AVAILABLE if the value is available, and
 * SHIM_UNAVAILABLE_NONE if @position is too high.
 *
 * Returns SHIM_OK; SHIM_E_PROFILER_DETACHING; SHIM_E_UNSUPPORTED_CALL_SEQUENCE
 * outside of a slow hook; SHIM_E_INCONSISTENT_WITH_FLAGS without
 * ENABLE_FUNCTION_ARGS, or ENABLE_FUNCTION_RETVAL for the result;
 * SHIM_E_INVALIDARG for a wrong @info, or a NULL @reason;
 * SHIM_E_NOT_YET_AVAILABLE and SHIM_E_UNEXPECTED as
 * shim_get_function_enter3_info.
 *
 * Contract: sync.  Cost: as shim_get_function_enter3_info.  No counterpart.
 */
SHIM_API enum shim_result
shim_get_value_reason(SHIM_IN shim_elt_info info, SHIM_IN uint32_t position,
		      SHIM_OUT enum shim_unavailable *reason) SHIM_SYNC;

/*
 * shim_get_frame_instance - the instance of a function that a frame runs
 *
 * @frame is the output of one of the functions above in the hook that runs.
 * *@code is the first address of the function whose code runs: @function of the
 * hook; a copy that the compiler made for some callers (f.constprop.0); or the
 * function that it was inlined into.  In a hook that the function jumped to at
 * its end, only @function itself is known.
 *
 * @name gets the name of the instance as the source has it (`int
 * twice<long>(int)`, `f(int) [clone .constprop.0]`).  If the linker has folded
 * several functions into one, @name is the function that the caller's debug
 * information names, or the first.
 *
 * Returns SHIM_OK; SHIM_E_PROFILER_DETACHING; SHIM_E_UNSUPPORTED_CALL_SEQUENCE
 * outside of a slow hook; SHIM_E_INVALIDARG for another @frame, or a NULL @name
 * with a @count other than 0; SHIM_E_FAIL if the function has no name;
 * SHIM_E_DATAINCOMPLETE if its image was unloaded; SHIM_E_NOT_YET_AVAILABLE and
 * SHIM_E_OUTOFMEMORY as shim_function_demangled_name.
 *
 * Contract: may block.  Cost: two searches; reads debug information if there
 * are several names.  CLR: GetFunctionInfo2.  Mono: none.
 */
SHIM_API enum shim_result shim_get_frame_instance(
	SHIM_IN shim_frame_info frame, SHIM_OUT_OPT shim_function *code,
	SHIM_IN uint32_t count, SHIM_OUT_OPT uint32_t *total,
	SHIM_OUT_SIZE_IS(count, total) char *name) SHIM_MAY_BLOCK;

/*
 * shim_hooks_disable - call no hooks from now on
 *
 * Changes one byte of each instruction that calls a hook, in all loaded code, while
 * other threads run it.  A call site that is off costs as much as the test of a
 * register.  If the program's code may not be written, the call is made and goes to an
 * empty function. A hook that has begun finishes.
 *
 * Calls that begin or end while hooks are disabled leave no trace: a call that was open
 * may have ended, and a call that ends later may have begun unseen.  Disabling hooks
 * that are disabled has no effect.
 *
 * Returns SHIM_OK; SHIM_E_FAIL if shim is off, or the program has forbidden itself the
 * system calls that are needed.
 *
 * Contract: async; blocks signals and takes the lock of the runtime.  Cost: the first
 * time some 3 ms for each MB of code that calls hooks, and a private copy of each page
 * that changes; later 15 ns a call site.  CLR: COR_PRF_MONITOR_ENTERLEAVE.  Mono: none.
 */
SHIM_API enum shim_result shim_hooks_disable(void) SHIM_ASYNC;

/*
 * shim_hooks_enable - call hooks again
 *
 * One call undoes any number of shim_hooks_disable; without one it does
 * nothing.  Returns as shim_hooks_disable.
 *
 * Contract: async; blocks signals and takes the lock of the runtime.  CLR:
 * COR_PRF_MONITOR_ENTERLEAVE.  Mono: none.
 */
SHIM_API enum shim_result shim_hooks_enable(void) SHIM_ASYNC;

#ifdef __cplusplus
}
#endif
#endif
