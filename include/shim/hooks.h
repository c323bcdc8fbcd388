/*
 * Hooks: functions of a profiler that are called for every call the program
 * makes (the CLR's enter/leave/tailcall, ELT).  They run at any place in it, with
 * any of its locks held: see <shim/banned.h> for what they may not touch.  Fast
 * hooks run on the program's stack, whatever is left of it; all others, and filters
 * and mappers, have 384 KiB of stack at least (row P-29).  Compile hooks without
 * instrumentation.
 *
 *     generation   the hook gets             how it is called
 *     ELT3 fast    function or client id     directly by the program's code
 *     ELT3 slow    the same, and eltInfo     through shim: SHIM_SYNC functions
 *                                            work, arguments can be inspected
 *     ELT2, ELT1   what they always got      through shim, adapters on ELT3
 *
 * What a hook itself calls has no hooks called for it, where they go through shim
 * (row E-36).  A signal handler that comes while it runs is the program's: hooks are
 * called for it, on x86-64, three handlers in each other.
 */
#ifndef SHIM_HOOKS_H
#define SHIM_HOOKS_H

#include <shim/profiler.h>
#include <shim/values.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- the event mask (Appendix B): names and values are the CLR's --- */

#define SHIM_MONITOR_NONE		     0x0u
#define SHIM_MONITOR_FUNCTION_UNLOADS	     0x1u
#define SHIM_MONITOR_CLASS_LOADS	     0x2u
#define SHIM_MONITOR_MODULE_LOADS	     0x4u
#define SHIM_MONITOR_ASSEMBLY_LOADS	     0x8u
#define SHIM_MONITOR_APPDOMAIN_LOADS	     0x10u
#define SHIM_MONITOR_JIT_COMPILATION	     0x20u
#define SHIM_MONITOR_EXCEPTIONS		     0x40u
#define SHIM_MONITOR_GC			     0x80u
#define SHIM_MONITOR_OBJECT_ALLOCATED	     0x100u
#define SHIM_MONITOR_THREADS		     0x200u
#define SHIM_MONITOR_REMOTING		     0x400u
#define SHIM_MONITOR_CODE_TRANSITIONS	     0x800u
#define SHIM_MONITOR_ENTERLEAVE		     0x1000u
#define SHIM_MONITOR_CCW		     0x2000u
#define SHIM_MONITOR_REMOTING_COOKIE	     0x4400u
#define SHIM_MONITOR_REMOTING_ASYNC	     0x8400u
#define SHIM_MONITOR_SUSPENDS		     0x10000u
#define SHIM_MONITOR_CACHE_SEARCHES	     0x20000u
#define SHIM_ENABLE_REJIT		     0x40000u
#define SHIM_ENABLE_INPROC_DEBUGGING	     0x80000u
#define SHIM_ENABLE_JIT_MAPS		     0x100000u
#define SHIM_DISABLE_INLINING		     0x200000u
#define SHIM_DISABLE_OPTIMIZATIONS	     0x400000u
#define SHIM_ENABLE_OBJECT_ALLOCATED	     0x800000u
#define SHIM_MONITOR_CLR_EXCEPTIONS	     0x1000000u
#define SHIM_ENABLE_FUNCTION_ARGS	     0x2000000u
#define SHIM_ENABLE_FUNCTION_RETVAL	     0x4000000u
#define SHIM_ENABLE_FRAME_INFO		     0x8000000u
#define SHIM_ENABLE_STACK_SNAPSHOT	     0x10000000u
#define SHIM_USE_PROFILE_IMAGES		     0x20000000u
#define SHIM_DISABLE_TRANSPARENCY_CHECKS     0x40000000u
#define SHIM_DISABLE_ALL_NGEN_IMAGES	     0x80000000u
#define SHIM_MONITOR_ALL		     0x0107ffffu
#define SHIM_MONITOR_IMMUTABLE		     0xeef8cc00u

#define SHIM_HIGH_ADD_ASSEMBLY_REFERENCES    0x1u
#define SHIM_HIGH_IN_MEMORY_SYMBOLS_UPDATED  0x2u
#define SHIM_HIGH_DYNAMIC_FUNCTION_UNLOADS   0x4u
#define SHIM_HIGH_DISABLE_TIERED_COMPILATION 0x8u
#define SHIM_HIGH_BASIC_GC		     0x10u
#define SHIM_HIGH_GC_MOVED_OBJECTS	     0x20u
#define SHIM_HIGH_LARGEOBJECT_ALLOCATED	     0x40u
#define SHIM_HIGH_EVENT_PIPE		     0x80u
#define SHIM_HIGH_PINNEDOBJECT_ALLOCATED     0x100u
#define SHIM_HIGH_ALL			     0x1ffu
#define SHIM_HIGH_IMMUTABLE		     0x8u

/*
 * shim_profiler_set_event_mask, shim_profiler_set_event_mask2 - what @handle wants
 *
 * A callback is called if it is set and its event's flag is in the mask; hooks
 * if MONITOR_ENTERLEAVE is.  A new profiler has MONITOR_ALL but the immutable
 * ones, so that one that knows callbacks only needs no mask.
 * shim_profiler_set_event_mask clears the high word.
 *
 * Returns SHIM_OK; SHIM_E_INVALIDARG for a wrong handle or unknown high bits;
 * SHIM_E_FAIL if a bit of MONITOR_IMMUTABLE would change after initialization;
 * SHIM_E_INCONSISTENT_WITH_FLAGS during initialization, when fast hooks are set
 * and ARGS, RETVAL or FRAME_INFO would be, slow ones are and none of these would
 * be, or hooks are and ENTERLEAVE would not be.  Rows E-26 to E-30, P-12.
 *
 * Contract: async (the hooks follow when it returns; takes the lock of
 * the runtime if ENTERLEAVE changes).
 */
SHIM_API enum shim_result shim_profiler_set_event_mask(
	SHIM_IN struct shim_profiler_handle *handle, SHIM_IN uint32_t mask) SHIM_ASYNC;
SHIM_API enum shim_result
shim_profiler_set_event_mask2(SHIM_IN struct shim_profiler_handle *handle, SHIM_IN uint32_t low,
		     SHIM_IN uint32_t high) SHIM_ASYNC;
SHIM_API enum shim_result shim_get_event_mask(
	SHIM_IN struct shim_profiler_handle *handle, SHIM_OUT uint32_t *mask) SHIM_ASYNC;
SHIM_API enum shim_result shim_get_event_mask2(
	SHIM_IN struct shim_profiler_handle *handle, SHIM_OUT_OPT uint32_t *low,
	SHIM_OUT_OPT uint32_t *high) SHIM_ASYNC;

/* --- ELT3 --- */

/* What a hook is told: the function, or what a mapper made of it.  Row E-11. */
union shim_function_or_client {
	shim_function function;
	uintptr_t client;
};

/* Valid in the slow hook that got it and only for the functions below.  Row
 * E-20. */
typedef uintptr_t shim_elt_info;
typedef uintptr_t shim_frame_info;

/*
 * A fast hook.  It leaves errno and the floating point state as they are.  When
 * one profiler has hooks, nothing of ours is on the stack when it runs:
 * SHIM_CALLER_SP (<shim/cpu.h>) in it is the program's stack pointer.  A second
 * argument, the address its caller will be returned to, may be declared
 * (SHIM_SITE_HOOK of a shim_site_hook); shim's own profilers do.
 */
typedef void (*shim_function_hook)(union shim_function_or_client function);
typedef void (*shim_site_hook)(shim_function function, const void *site);
#define SHIM_SITE_HOOK(hook) ((shim_function_hook)(void (*)(void))(hook))
typedef void (*shim_function_hook_with_info)(
	union shim_function_or_client function, shim_elt_info info);

/*
 * shim_profiler_set_enter_leave_function_hooks3 - fast hooks
 * shim_profiler_set_enter_leave_function_hooks3_with_info - slow hooks
 *
 * At least one of the three must be there; NULL means that one is not wanted.
 * Without a @tailcall hook, a function that ends by a tail call calls the leave hook.
 * A call that an exception ends has no leave, whichever the compiler: gcc's functions
 * call the hook while they are unwound, clang's do not.  A C++ library that is
 * linked into the program statically hides this, where nothing was optimized.  With
 * a @tailcall hook, and once something of the program was unwound, one comparison is
 * before the leave hook, which then runs as if the program had called it.  The last
 * call for a handle wins as a whole, whichever it was.  Rows E-10, E-16 to E-18, E-22
 * to E-31, section 3.2.
 *
 * Returns SHIM_OK; SHIM_E_PROFILER_DETACHING; SHIM_E_CALL_ONLY_FROM_INIT after
 * initialization; SHIM_E_INVALIDARG if all are NULL or @handle is wrong;
 * SHIM_E_INCONSISTENT_WITH_FLAGS if the mask has one of ENABLE_FUNCTION_ARGS,
 * ENABLE_FUNCTION_RETVAL, ENABLE_FRAME_INFO (fast), or has none of them (slow).
 *
 * Contract: init.
 */
SHIM_API enum shim_result shim_profiler_set_enter_leave_function_hooks3(
	SHIM_IN struct shim_profiler_handle *handle, SHIM_IN shim_function_hook enter,
	SHIM_IN shim_function_hook leave,
	SHIM_IN shim_function_hook tailcall) SHIM_INIT;
SHIM_API enum shim_result shim_profiler_set_enter_leave_function_hooks3_with_info(
	SHIM_IN struct shim_profiler_handle *handle,
	SHIM_IN shim_function_hook_with_info enter,
	SHIM_IN shim_function_hook_with_info leave,
	SHIM_IN shim_function_hook_with_info tailcall) SHIM_INIT;

/*
 * shim_profiler_set_chained_hooks - what stands in for fast hooks that need their frame
 *
 * When several profilers have hooks, something of ours is on the stack, and
 * these are called instead: @frame is what SHIM_CALLER_SP would have been.  NULL: the fast hooks are called anyway.
 *
 * Returns SHIM_OK; SHIM_E_CALL_ONLY_FROM_INIT; SHIM_E_INVALIDARG.
 * Contract: init.
 */
typedef void (*shim_frame_hook)(shim_function function, const void *site,
				uintptr_t frame);
SHIM_API enum shim_result
shim_profiler_set_chained_hooks(SHIM_IN struct shim_profiler_handle *handle,
		     SHIM_IN shim_frame_hook enter,
		     SHIM_IN shim_frame_hook leave) SHIM_INIT;

/*
 * shim_profiler_set_raw_leave_hooks - leave hooks are called as compilers call them
 *
 * Of functions compiled by gcc also while they are unwound: for profilers that find
 * out by their frames how calls end.  Row E-16.
 *
 * Returns SHIM_OK; SHIM_E_CALL_ONLY_FROM_INIT; SHIM_E_INVALIDARG.
 * Contract: init.
 */
SHIM_API enum shim_result
shim_profiler_set_raw_leave_hooks(SHIM_IN struct shim_profiler_handle *handle) SHIM_INIT;

/*
 * shim_profiler_set_deferred_hook - lets a fast enter hook ask about single calls
 * shim_hook_defer - the fast enter hook that is running hands its call over
 *
 * For fast hooks that want to know more of a few calls: the others stay as fast
 * as they are.  The last thing that an enter hook does is `shim_hook_defer(function,
 * site)`, as a tail call, so that the stack and the registers that calls keep are
 * the program's again: compilers do that when they optimize and nothing that the
 * hook has on its stack is in use.  @hook is called instead, and may do what slow
 * hooks may: shim_get_function_enter3_info tells it the arguments, whatever the
 * event mask says.  Of what the function does not use there is less than in a slow
 * hook: registers that no call keeps were the fast hook's.  An @info of 0 says that
 * nothing can be asked here: in a signal handler that came while a slow hook ran,
 * or with a thread's data that another task uses as well.
 *
 * When several profilers have hooks, or @handle may go, @hook is called for every
 * enter in place of the fast hook: nothing can be handed over there.
 *
 * shim_profiler_set_deferred_hook returns SHIM_OK; SHIM_E_CALL_ONLY_FROM_INIT;
 * SHIM_E_INVALIDARG.  NULL: no such hook.
 * Contract: init; shim_hook_defer async, in a fast enter hook of a profiler that has an
 * asking hook.
 */
typedef void (*shim_deferred_hook)(shim_function function, const void *site,
				 uintptr_t frame, shim_elt_info info);
SHIM_API enum shim_result
shim_profiler_set_deferred_hook(SHIM_IN struct shim_profiler_handle *handle,
		     SHIM_IN shim_deferred_hook hook) SHIM_INIT;
SHIM_API void shim_hook_defer(SHIM_IN shim_function function,
		       SHIM_IN const void *site) SHIM_ASYNC;

/*
 * shim_profiler_set_restart_hooks - fast hooks that ask one question more
 *
 * They take the place of the fast hooks for good just before the first
 * calls_started: programs whose calls are never off do not pay for the question
 * whether they were.
 *
 * Returns SHIM_OK; SHIM_E_CALL_ONLY_FROM_INIT; SHIM_E_INVALIDARG if one is NULL.
 * Contract: init.
 */
SHIM_API enum shim_result
shim_profiler_set_restart_hooks(SHIM_IN struct shim_profiler_handle *handle,
		       SHIM_IN shim_function_hook enter,
		       SHIM_IN shim_function_hook leave) SHIM_INIT;

/* --- ELT1 and ELT2: adapters on ELT3 (rows E-69 to E-74) --- */

typedef void (*shim_function_hook1)(shim_function function);

struct shim_argument_range {
	uintptr_t start;
	uint32_t length;
};

struct shim_argument_info {
	uint32_t ranges_count;
	uint32_t total_size;
	struct shim_argument_range ranges[1];	/* ranges_count of them */
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
 * shim_profiler_set_enter_leave_function_hooks, ...2 - hooks of generation 1 and 2
 *
 * Newer hooks of the same handle win whatever the order: then the answer is
 * SHIM_OK, the log gets a line, and nothing changes.  Row E-32.  @frame is 0
 * without ENABLE_FRAME_INFO; @arguments and @result are NULL without
 * ENABLE_FUNCTION_ARGS and ENABLE_FUNCTION_RETVAL.  @arguments, which is also NULL
 * if nothing is known of the function, is what shim_get_function_enter3_info
 * tells, in memory of the thread's that is good while the hook runs.  @result is
 * what shim_get_function_leave3_info says, found before the hook is called; what
 * cannot be had, also for want of debug information, has a start of 0.
 *
 * Returns and contract as shim_profiler_set_enter_leave_function_hooks3, but flags are
 * not looked at.
 */
SHIM_API enum shim_result shim_profiler_set_enter_leave_function_hooks(
	SHIM_IN struct shim_profiler_handle *handle, SHIM_IN shim_function_hook1 enter,
	SHIM_IN shim_function_hook1 leave,
	SHIM_IN shim_function_hook1 tailcall) SHIM_INIT;
SHIM_API enum shim_result shim_profiler_set_enter_leave_function_hooks2(
	SHIM_IN struct shim_profiler_handle *handle, SHIM_IN shim_enter_hook2 enter,
	SHIM_IN shim_leave_hook2 leave,
	SHIM_IN shim_tailcall_hook2 tailcall) SHIM_INIT;

/* --- which functions, and under what name --- */

/*
 * shim_profiler_set_function_id_mapper, ...mapper2 - what hooks are told of a function
 *
 * Asked once for each function, before its first event: what it returns is what
 * hooks get instead of the function (0: the function itself), and *@hook, which
 * is true, may be made false: then no hook of this profiler is called for it.
 * Functions of a library that has gone are forgotten: what comes to their
 * addresses is asked about.
 * Threads that come to the function while one is in the mapper wait for its answer,
 * for a second at most; then they ask as well, and one answer is taken for all.  Set
 * again, the new mapper is asked for functions that have not been seen.  Mapper2
 * wins over mapper1.  NULL: none.  SHIM_SYNC functions may be called in it.
 * Rows E-41 to E-47, section 3.3.
 *
 * Returns SHIM_OK; SHIM_E_INVALIDARG for a wrong handle; SHIM_E_OUTOFMEMORY if 32
 * mappers and filters are set in the process.
 * Contract: async; takes the lock of the runtime.
 */
typedef uintptr_t (*shim_function_id_mapper)(shim_function function, int *hook);
typedef uintptr_t (*shim_function_id_mapper2)(shim_function function,
					      void *client_data, int *hook);
SHIM_API enum shim_result
shim_profiler_set_function_id_mapper(SHIM_IN struct shim_profiler_handle *handle,
			    SHIM_IN shim_function_id_mapper mapper) SHIM_ASYNC;
SHIM_API enum shim_result
shim_profiler_set_function_id_mapper2(SHIM_IN struct shim_profiler_handle *handle,
			     SHIM_IN shim_function_id_mapper2 mapper,
			     SHIM_IN void *client_data) SHIM_ASYNC;

/* Row M-50: the values are Mono's. */
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
 * shim_profiler_set_call_instrumentation_filter_callback - which functions
 *
 * Asked once for each function, before its first event, of every profiler that
 * has one: the flags it returns are what *this* profiler gets of the function,
 * hooks and method_* events alike.  Without a filter a profiler gets hooks for
 * every function and no method_* events.  A function nobody wants is switched
 * off where it is called, and costs next to nothing.  NULL: none.  Set again, it
 * is asked anew.  SHIM_SYNC functions may be called in it.  Rows M-47 to M-55.
 *
 * Returns SHIM_OK; SHIM_E_INVALIDARG for a wrong handle; SHIM_E_OUTOFMEMORY if 32
 * mappers and filters are set in the process.
 * Contract: async; takes the lock of the runtime.
 */
typedef enum shim_call_instrumentation_flags (
	*shim_call_instrumentation_filter_callback)(
	struct shim_profiler *profiler, shim_function function);
SHIM_API enum shim_result
shim_profiler_set_call_instrumentation_filter_callback(
	SHIM_IN struct shim_profiler_handle *handle,
	SHIM_IN shim_call_instrumentation_filter_callback filter) SHIM_ASYNC;

/*
 * shim_filters_invalidate - ask all filters again
 *
 * Each function is asked for anew before its next event.  Row M-55.
 * Returns SHIM_OK.  Contract: async; takes the lock of the runtime.
 */
SHIM_API enum shim_result shim_filters_invalidate(void) SHIM_ASYNC;

/* --- inspection: in a slow hook, with what it got (rows E-48 to E-57) --- */

/*
 * shim_get_function_enter3_info and so on
 *
 * @info must be what the hook that is running got, and the function that of its
 * kind.  With ENABLE_FRAME_INFO *@frame is written.
 *
 * With ENABLE_FUNCTION_ARGS @arguments gets one range for each declared
 * parameter, from left to right, `this` first: its value is in those bytes while
 * the hook runs, and must not be changed.  A reference's value is an address; the
 * range of an object that C++ passes by its address is the object, with a length of 0
 * where clang has left its class to another object's debug information.  An argument
 * that cannot be had has a start of 0, and its length; shim_get_value_reason says
 * why: what the function does not use is often gone by then, and of a function
 * that was inlined nothing can be had.  An object that is passed by its address
 * may lack what an optimized function does not read of it, if its caller was
 * compiled with it: compilers do not say what they left out.  *@size is 24 bytes
 * and 16 for each range, the CLR's sum; it says what is needed when it is too
 * small, and nothing else is written then.
 *
 * With ENABLE_FUNCTION_RETVAL *@result gets the range of what the function
 * returns: what came in several registers is put together there, and an object
 * that the caller has memory for is in that memory.  It is valid as arguments
 * are, and must not be changed.  A function that returns nothing has {0, 0}.  A
 * result that cannot be had has a start of 0, and its length: that of a function
 * that was inlined, or is left by an exception.  @function is not looked at.
 *
 * Returns SHIM_OK; SHIM_E_PROFILER_DETACHING; SHIM_E_UNSUPPORTED_CALL_SEQUENCE
 * outside of a slow hook; SHIM_E_INCONSISTENT_WITH_FLAGS if the mask asks for
 * nothing these could tell; SHIM_E_INVALIDARG for a wrong @info, a NULL @frame
 * with ENABLE_FRAME_INFO (for results: in any case), a @function of 0, a NULL
 * @size with ENABLE_FUNCTION_ARGS, NULL @arguments unless *@size is 0, or a NULL
 * @result with ENABLE_FUNCTION_RETVAL;
 * SHIM_E_INSUFFICIENT_BUFFER, and then *@size is what is needed, in bytes: the
 * one exception to the rule that a short buffer is a success (section 3.5);
 * SHIM_E_FUNCTION_NOT_IL if the function was compiled without -g, or, of
 * arguments, debug information does not tell all of them;
 * SHIM_E_NOT_YET_AVAILABLE if another thread takes long to read it;
 * SHIM_E_UNEXPECTED without memory.
 *
 * Contract: sync.  Cost: the first question about arguments or results at a call
 * of a hook reads debug information, blocks signals and takes the lock of
 * the runtime; later ones look up a table, and copy.  What is computed after
 * the hook is computed twice.
 */
SHIM_API enum shim_result shim_get_function_enter3_info(
	SHIM_IN shim_function function, SHIM_IN shim_elt_info info,
	SHIM_OUT_OPT shim_frame_info *frame, SHIM_OUT_OPT uint32_t *size,
	SHIM_OUT_OPT struct shim_argument_info *arguments) SHIM_SYNC;
SHIM_API enum shim_result shim_get_function_leave3_info(
	SHIM_IN shim_function function, SHIM_IN shim_elt_info info,
	SHIM_OUT_OPT shim_frame_info *frame,
	SHIM_OUT_OPT struct shim_argument_range *result) SHIM_SYNC;
SHIM_API enum shim_result shim_get_function_tailcall3_info(
	SHIM_IN shim_function function, SHIM_IN shim_elt_info info,
	SHIM_OUT shim_frame_info *frame) SHIM_SYNC;

/* As a position: the result. */
#define SHIM_RESULT UINT32_MAX

/*
 * shim_get_value_reason - why an argument, or the result, cannot be had
 *
 * @info as above: of an enter hook, or of a leave hook with SHIM_RESULT as
 * @position.  Arguments are counted from 0 as the ranges are, `this` first.
 * *@reason is SHIM_AVAILABLE if the value can be had, and
 * SHIM_UNAVAILABLE_NONE if there are not so many.
 *
 * Returns SHIM_OK; SHIM_E_PROFILER_DETACHING; SHIM_E_UNSUPPORTED_CALL_SEQUENCE
 * outside of a slow hook; SHIM_E_INCONSISTENT_WITH_FLAGS without
 * ENABLE_FUNCTION_ARGS, or ENABLE_FUNCTION_RETVAL for the result;
 * SHIM_E_INVALIDARG for a wrong @info, or a NULL @reason;
 * SHIM_E_NOT_YET_AVAILABLE and SHIM_E_UNEXPECTED as shim_get_function_enter3_info.
 *
 * Contract: sync.  Cost: as shim_get_function_enter3_info.
 */
SHIM_API enum shim_result
shim_get_value_reason(SHIM_IN shim_elt_info info, SHIM_IN uint32_t position,
		      SHIM_OUT enum shim_unavailable *reason) SHIM_SYNC;

/*
 * shim_get_frame_instance - exactly which function it was (GetFunctionInfo2, row E-66)
 *
 * @frame is what one of the functions above has told in the hook that is running.
 * *@code is where the function begins whose code ran: @function of the hook; a copy
 * that the compiler made of it for some callers (f.constprop.0); or the function that
 * it was inlined into.  In a hook that the function jumped to, at its end, only the
 * first is known.
 *
 * @name is filled with the name of the instance as the source has it
 * (`int twice<long>(int)`, `f(int) [clone .constprop.0]`): where the linker made one
 * function of several, that which the caller's debug information says was called, or
 * the first.
 *
 * Returns SHIM_OK; SHIM_E_PROFILER_DETACHING; SHIM_E_UNSUPPORTED_CALL_SEQUENCE outside
 * of a slow hook; SHIM_E_INVALIDARG for another @frame, or NULL @name with a @count;
 * SHIM_E_FAIL if the function has no name; SHIM_E_DATAINCOMPLETE if its image has
 * gone; SHIM_E_NOT_YET_AVAILABLE and SHIM_E_OUTOFMEMORY as shim_function_demangled_name.
 *
 * Contract: may block.  Cost: two searches; where there are several names, debug
 * information is read.
 */
SHIM_API enum shim_result
shim_get_frame_instance(SHIM_IN shim_frame_info frame,
			SHIM_OUT_OPT shim_function *code, SHIM_IN uint32_t count,
			SHIM_OUT_OPT uint32_t *total,
			SHIM_OUT_SIZE_IS(count, total) char *name) SHIM_MAY_BLOCK;

/*
 * shim_hooks_disable - from now on no hook is called
 *
 * The instructions that call the hooks are changed in place, one byte each, in
 * everything that is loaded and while other threads run it; a call that is off
 * costs next to nothing.  Where the program's code may not be written the call
 * is made and leads nowhere.  A hook that has begun goes on.
 *
 * Calls that begin or end while stopped leave no trace: what was open may have
 * ended, and what ends later may never have begun.  Stopping twice is stopping.
 *
 * Returns SHIM_OK; SHIM_E_FAIL if shim does not run here, or the program has
 * forbidden itself the system calls this takes.
 *
 * Contract: async; blocks signals and takes the lock of the runtime.  The
 * first time takes some 3 ms for each MB of code that calls hooks: it is looked
 * through, and the process gets its own copy of the pages that change.  Later it
 * is 15 ns a call site.
 */
SHIM_API enum shim_result shim_hooks_disable(void) SHIM_ASYNC;

/*
 * shim_hooks_enable - hooks are called again
 *
 * Undoes shim_hooks_disable, however often that was called; does nothing without
 * one.  Results as there.
 *
 * Contract: async; blocks signals and takes the lock of the runtime.
 */
SHIM_API enum shim_result shim_hooks_enable(void) SHIM_ASYNC;

#ifdef __cplusplus
}
#endif
#endif
