/*
 * Stacks: who called whom, for any code, instrumented or not.
 *
 * What is needed is the table for exceptions that compilers write by default,
 * also into stripped programs.  A walk may interrupt anything (malloc, the
 * dynamic linker, another walk) and meet any stack: it takes no lock of the
 * program, and what cannot be read ends it.  Row P-45.
 */
#ifndef SHIM_STACK_H
#define SHIM_STACK_H

#include <shim/profiler.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A walk goes no further. */
#define SHIM_STACK_DEPTH_MAX 1024

/*
 * A profiler that keeps account of the open calls itself (calltree does) knows
 * callers where code says nothing about its stack: this is what the event
 * open_calls_requested asks it for.  The walk of functions goes on with what it says.
 */
struct shim_open_calls {
	uintptr_t sp;		/* of the last frame that was found ... */
	shim_function function;	/* ... and its function; 0: not known */
	uint32_t room;		/* in @functions, for its callers */
	uint32_t count;		/* how many are there, the innermost first */
	shim_function *functions;
	uint32_t is_whole;	/* the last of them has no caller */
};

/*
 * shim_stack_addresses - where each frame of the calling thread stands
 *
 * From the innermost outwards: the address in @context, a ucontext_t as signal
 * handlers get it, and then the return addresses of its callers.  @context NULL:
 * in sample_hit the interrupted place, elsewhere the caller of this function.
 *
 * Returns SHIM_OK if the walk came to the end of the stack, SHIM_S_FALSE if it
 * could not go on (@addresses holds what it found, *@total how many);
 * SHIM_E_INVALIDARG if @context cannot be read, or @addresses is NULL and @count
 * is not 0; SHIM_E_PROFILER_DETACHING; SHIM_E_NOTIMPL on processors that shim
 * cannot do this on.
 *
 * Contract: async; the first walk of a thread, and in an object that is not yet
 * known, blocks signals and takes the lock of the runtime.
 */
SHIM_API enum shim_result
shim_stack_addresses(SHIM_IN const void *context, SHIM_IN uint32_t count,
		     SHIM_OUT_OPT uint32_t *total,
		     SHIM_OUT_SIZE_IS(count, total) uintptr_t *addresses)
	SHIM_ASYNC;

/*
 * shim_stack_functions - which functions these frames are in
 *
 * The same with where each function begins, also where the compiler has cut it in
 * parts (f.cold is f); 0: not known.  Where the walk cannot go on it goes on with
 * the calls that calltree, or another profiler that answers open_calls_requested, knows to
 * be open: then those of functions without hooks are missing.  Returns as
 * shim_stack_addresses.
 *
 * Contract: async, as shim_stack_addresses, and as shim_function_find (<shim/info.h>).
 */
SHIM_API enum shim_result
shim_stack_functions(SHIM_IN const void *context, SHIM_IN uint32_t count,
		     SHIM_OUT_OPT uint32_t *total,
		     SHIM_OUT_SIZE_IS(count, total) shim_function *functions)
	SHIM_ASYNC;

/*
 * shim_stack_parts - where the code of these frames begins
 *
 * The same, but a part that the compiler has cut off is told as it is: no symbols
 * are read, and none looked up.  For profilers whose readers have the symbols.
 *
 * Contract: async, as shim_stack_addresses.
 */
SHIM_API enum shim_result
shim_stack_parts(SHIM_IN const void *context, SHIM_IN uint32_t count,
		 SHIM_OUT_OPT uint32_t *total,
		 SHIM_OUT_SIZE_IS(count, total) shim_function *parts)
	SHIM_ASYNC;

/* What shim_stack_snapshot may be asked for. */
enum shim_snapshot_flags {
	SHIM_SNAPSHOT_DEFAULT = 0,
	SHIM_SNAPSHOT_REGISTER_CONTEXT = 1,	/* @context is filled */
	SHIM_SNAPSHOT_X86_OPTIMIZED = 2,	/* allowed, and makes no difference */
	/* Frames of functions without hooks are told once for each run of them,
	 * as function 0 and with the innermost one's address. */
	SHIM_SNAPSHOT_COALESCE = 4,
};

/* What a callback gets with REGISTER_CONTEXT: the registers of its frame, by
 * their DWARF numbers; @known says which, as bits.  16 is the address. */
struct shim_snapshot_context {
	uint64_t known;
	uint64_t registers[17];
};

/*
 * Called for each frame, from the innermost outwards, instrumented or not.
 * @function is the function that holds @ip, as of shim_stack_functions, 0 if that is
 * not known.  @frame is the frame's stack pointer.  Where the walk cannot go on, and a profiler knows
 * which calls are open, these follow with @ip being @function and @frame 0.
 * Anything but SHIM_OK ends the walk.
 */
typedef enum shim_result (*shim_snapshot_callback)(
	shim_function function, uintptr_t ip, uintptr_t frame,
	uint32_t context_size, const void *context, void *client_data);

/*
 * shim_stack_snapshot - walk the stack of a thread
 *
 * @thread 0 is the calling one.  @context, a ucontext_t of @context_size bytes,
 * is where to begin in the calling thread; NULL as in shim_stack_addresses.  What
 * the callback may do is what the caller may.
 *
 * Another thread is interrupted, walks its stack itself and goes on; the callback
 * is called in the caller when that is done.  A thread that sleeps in a call of
 * the system is not woken twice: it is shown as it was when it went to sleep.
 *
 * Returns SHIM_OK, also for a calling thread without a record, of which no frame
 * is told; in this order SHIM_E_STACKSNAPSHOT_UNSAFE before shim has started;
 * SHIM_E_INCONSISTENT_WITH_FLAGS if the profiler whose callback this is, or none
 * outside of callbacks, has SHIM_ENABLE_STACK_SNAPSHOT; SHIM_E_INVALIDARG for
 * other flags, no callback, a @context too short or of another thread;
 * SHIM_E_STACKSNAPSHOT_UNMANAGED_CTX if @context is in no known code;
 * SHIM_E_STACKSNAPSHOT_ABORTED when the callback ended it; SHIM_E_FAIL if there
 * was no frame; SHIM_E_UNEXPECTED if the stack could not be read to its end, or the
 * callback threw an exception;
 * SHIM_E_PROFILER_DETACHING.
 *
 * For another thread also, before the callback was called:
 * SHIM_E_STACKSNAPSHOT_INVALID_TGT_THREAD if it is none or has ended;
 * SHIM_E_STACKSNAPSHOT_UNSAFE from sample_hit, for a thread of shim's or of a
 * module, and if it has not answered after half a second: it blocks all signals by
 * a system call of its own, waits for the child of a vfork, or is stopped;
 * SHIM_E_OUTOFMEMORY; SHIM_E_NOTIMPL on processors other than the x86-64.  Rows
 * P-44, P-45, E-72.
 *
 * Contract: async, as shim_stack_addresses.
 */
SHIM_API enum shim_result
shim_stack_snapshot(SHIM_IN shim_thread thread,
		       SHIM_IN shim_snapshot_callback callback,
		       SHIM_IN uint32_t flags, SHIM_IN void *client_data,
		       SHIM_IN const void *context,
		       SHIM_IN uint32_t context_size) SHIM_ASYNC;

#ifdef __cplusplus
}
#endif
#endif
