/*
 * Call stacks of any code, instrumented or not.
 *
 * The unwinder reads .eh_frame, the table for exceptions that compilers write
 * by default, also for stripped programs.  A walk may interrupt any code
 * (malloc, the dynamic linker, another walk) and find any stack: it takes no
 * lock of the program, and memory that cannot be read ends the walk.
 *
 * Code without such a table (assembly, Go, code that the program makes) is left
 * by its frame pointer, if it has one.  Such a caller is a guess, made only where
 * a call instruction precedes the return address; its function is 0.
 *
 * Example: count the frames of the calling thread.
 *
 *     #include <shim/stack.h>
 *
 *     uint32_t depth(void);
 *     uint32_t depth(void)
 *     {
 *             uintptr_t addresses[64];
 *             uint32_t total = 0;
 *
 *             shim_stack_addresses(NULL, 64, &total, addresses);
 *             return total;
 *     }
 */
#ifndef SHIM_STACK_H
#define SHIM_STACK_H

#include <shim/profiler.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Frames; a walk ends there. */
#define SHIM_STACK_DEPTH_MAX 1024

/*
 * Open calls, for the event open_calls_requested.  A profiler that tracks open
 * calls (calltree does) fills it, and shim_stack_functions continues with these
 * functions where the unwinder cannot.
 */
struct shim_open_calls {
	uintptr_t sp; /* of the last frame that the unwinder has found */
	shim_function function; /* of that frame; 0: not known */
	uint32_t room;		/* elements of @functions, for its callers */
	uint32_t count;		/* elements filled, the innermost call first */
	shim_function *functions;
	uint32_t is_whole; /* the last element has no caller */
};

/*
 * shim_stack_addresses - the addresses of the calling thread's frames
 *
 * @addresses gets, from the innermost frame outwards, the address in @context,
 * a ucontext_t of a signal handler, and the return addresses of its callers.
 * With a NULL @context the walk begins at the interrupted code in sample_hit,
 * and at the caller of this function elsewhere.
 *
 * Returns SHIM_OK if the walk reached the end of the stack; SHIM_S_FALSE if it
 * could not continue (@addresses has the frames before); SHIM_E_INVALIDARG if
 * @context cannot be read, or @addresses is NULL and @count is not 0;
 * SHIM_E_PROFILER_DETACHING; SHIM_E_NOTIMPL on processors for which shim has no
 * unwinder.
 *
 * Contract: async; the first walk of a thread, and the first in an object,
 * blocks signals and takes the lock of the runtime.  CLR: DoStackSnapshot.
 * Mono: mono_stack_walk_async_safe.
 */
SHIM_API enum shim_result
shim_stack_addresses(SHIM_IN const void *context, SHIM_IN uint32_t count,
		     SHIM_OUT_OPT uint32_t *total,
		     SHIM_OUT_SIZE_IS(count, total)
			     uintptr_t *addresses) SHIM_ASYNC;

/* Flag of an address: its caller, which follows, is a guess.  No address of a program
 * has it. */
#define SHIM_STACK_GUESS ((uintptr_t)1 << (sizeof(uintptr_t) * 8 - 1))

/*
 * shim_stack_calls - the addresses of the calling thread's innermost frames
 *
 * As shim_stack_addresses, but each return address is less 1, which is an
 * address in the call; addresses may have SHIM_STACK_GUESS; and the walk ends
 * with the frame that holds the stack address @end.  An @end of 0 is in no frame:
 * the walk goes on to the end of the stack, and open calls follow as in
 * shim_stack_functions.
 *
 * Returns SHIM_OK if the walk reached @end, or the end of the stack; otherwise
 * as shim_stack_addresses.
 *
 * Contract: async, as shim_stack_addresses.  No counterpart.
 */
SHIM_API enum shim_result
shim_stack_calls(SHIM_IN const void *context, SHIM_IN uintptr_t end,
		 SHIM_IN uint32_t count, SHIM_OUT_OPT uint32_t *total,
		 SHIM_OUT_SIZE_IS(count, total)
			 uintptr_t *addresses) SHIM_ASYNC;

/*
 * shim_stack_functions - the functions of the calling thread's frames
 *
 * As shim_stack_addresses, with the first address of each function, also for a
 * part that the compiler split off (f.cold is f); 0: not known.  Where the
 * unwinder cannot continue, open calls of calltree follow, or of another
 * profiler that handles open_calls_requested; functions without hooks are then
 * missing.
 *
 * Returns as shim_stack_addresses.
 *
 * Contract: async, as shim_stack_addresses, and as shim_function_find
 * (<shim/info.h>).  CLR: DoStackSnapshot.  Mono: mono_stack_walk_async_safe.
 */
SHIM_API enum shim_result
shim_stack_functions(SHIM_IN const void *context, SHIM_IN uint32_t count,
		     SHIM_OUT_OPT uint32_t *total,
		     SHIM_OUT_SIZE_IS(count, total)
			     shim_function *functions) SHIM_ASYNC;

/*
 * shim_stack_parts - the code ranges of the calling thread's frames
 *
 * As shim_stack_functions, but a part that the compiler split off keeps its own
 * first address: no symbols are read or searched.  For profilers whose report
 * has the symbols.
 *
 * Contract: async, as shim_stack_addresses.  No counterpart.
 */
SHIM_API enum shim_result
shim_stack_parts(SHIM_IN const void *context, SHIM_IN uint32_t count,
		 SHIM_OUT_OPT uint32_t *total,
		 SHIM_OUT_SIZE_IS(count, total)
			 shim_function *parts) SHIM_ASYNC;

/* The unwinder of all walks in the process. */
enum shim_unwinder {
	SHIM_UNWINDER_OWN = 0, /* shim's; the default */
	SHIM_UNWINDER_LIBUNWIND = 1,
	SHIM_UNWINDER_BOTH = 2, /* libunwind where shim's has no answer */
};

/*
 * shim_stack_set_unwinder - choose the unwinder of all walks
 *
 * A profiler that wants libunwind calls this in its init function.  Then shim
 * loads libshim-unwind.so before main (or when an attach ends), in a namespace
 * of its own.  If that fails, the log says so, and shim's unwinder is used.
 * libunwind serves one thread at a time; a walk that has waited too long ends.
 * Code without tables is left by its frame pointer with either.  The last call
 * counts, whichever profiler made it.
 *
 * Returns SHIM_OK; SHIM_S_FALSE if libunwind is wanted and not loaded (yet);
 * SHIM_E_INVALIDARG if @unwinder is unknown; SHIM_E_PROFILER_DETACHING.
 *
 * Contract: async.  No counterpart.
 */
SHIM_API enum shim_result
shim_stack_set_unwinder(SHIM_IN uint32_t unwinder) SHIM_ASYNC;

/* Flags of shim_stack_snapshot.  CLR: COR_PRF_SNAPSHOT_INFO. */
enum shim_snapshot_flags {
	SHIM_SNAPSHOT_DEFAULT = 0,
	SHIM_SNAPSHOT_REGISTER_CONTEXT = 1, /* the callback gets @context */
	SHIM_SNAPSHOT_X86_OPTIMIZED = 2,    /* accepted, without effect */
	/* A run of functions without hooks is one frame, with function 0 and the
	 * innermost address. */
	SHIM_SNAPSHOT_COALESCE = 4,
};

/* With REGISTER_CONTEXT: the registers of the frame, by DWARF number; bits
 * of @known say which are known.  Number 16 is the address. */
struct shim_snapshot_context {
	uint64_t known;
	uint64_t registers[17];
};

/*
 * shim calls it for each frame, from the innermost outwards, instrumented or
 * not.  @function is the function that holds @ip, as in shim_stack_functions;
 * 0: not known.  @frame is the frame's stack pointer.  Open calls that follow
 * where the unwinder cannot continue have @ip equal to @function, and a @frame
 * of 0. Any result but SHIM_OK ends the walk.  CLR: StackSnapshotCallback.
 */
typedef enum shim_result (*shim_snapshot_callback)(
	shim_function function, uintptr_t ip, uintptr_t frame,
	uint32_t context_size, const void *context, void *client_data);

/*
 * shim_stack_snapshot - walk the stack of a thread
 *
 * @thread 0 is the calling thread.  @context, a ucontext_t of @context_size
 * bytes, is the point of the calling thread where the walk begins; NULL as in
 * shim_stack_addresses.  @callback may call all functions that the caller may call.
 *
 * Another thread is interrupted, walks its own stack and continues; @callback
 * then runs in the caller.  A thread that sleeps in a system call is
 * interrupted only once: later snapshots show its stack as it was when it went
 * to sleep.
 *
 * Returns SHIM_OK, also for a calling thread without a record, which has no
 * frames.  The errors, in this order: SHIM_E_STACKSNAPSHOT_UNSAFE before shim
 * has started; SHIM_E_INCONSISTENT_WITH_FLAGS unless the profiler whose
 * callback runs has SHIM_ENABLE_STACK_SNAPSHOT (outside of callbacks: unless
 * any profiler has it); SHIM_E_INVALIDARG for unknown flags, no callback, or a
 * @context that is too short or of another thread;
 * SHIM_E_STACKSNAPSHOT_UNMANAGED_CTX if @context is in unknown code;
 * SHIM_E_STACKSNAPSHOT_ABORTED if @callback ended the walk; SHIM_E_FAIL if
 * there was no frame; SHIM_E_UNEXPECTED if the stack could not be read to its
 * end, or @callback threw an exception; SHIM_E_PROFILER_DETACHING.
 *
 * The further errors for another thread, before any call of @callback:
 * SHIM_E_STACKSNAPSHOT_INVALID_TGT_THREAD if there is no such thread or it has
 * ended; SHIM_E_STACKSNAPSHOT_UNSAFE in sample_hit, for a thread of shim's or
 * of a module, and for a thread that does not answer in half a second because
 * it blocks all signals by a system call of its own, waits for a vfork child,
 * or is stopped; SHIM_E_OUTOFMEMORY; SHIM_E_NOTIMPL on processors other than
 * the x86-64.
 *
 * Contract: async, as shim_stack_addresses.  CLR: DoStackSnapshot.  Mono:
 * mono_stack_walk_async_safe.
 */
SHIM_API enum shim_result shim_stack_snapshot(
	SHIM_IN shim_thread thread, SHIM_IN shim_snapshot_callback callback,
	SHIM_IN uint32_t flags, SHIM_IN void *client_data,
	SHIM_IN const void *context, SHIM_IN uint32_t context_size) SHIM_ASYNC;

#ifdef __cplusplus
}
#endif
#endif
