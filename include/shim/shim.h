/*
 * shim: the interface for profilers of native programs.  Start reading here.
 *
 * libshim.so is preloaded into a program.  The program's compiler has put calls
 * of hooks into its functions (-finstrument-functions); shim passes these
 * calls, and events such as thread_started, to profilers.  A profiler is a
 * module (a shared library that `profrun -p NAME` loads) or the program itself.
 *
 * The headers, by purpose:
 *
 *     <shim/profiler.h>     create a profiler; callbacks for events; own threads
 *     <shim/events.def>     the list of events
 *     <shim/hooks.h>        a hook for each enter and leave; filters; ID mappers
 *     <shim/contexts.h>     arguments, locals and results, in Mono's manner
 *     <shim/values.h>       types of values, and values as text
 *     <shim/typetree.h>     a type as one piece of memory
 *     <shim/info.h>         names, lines and ranges of functions; images; threads
 *     <shim/query.h>        a query whose buffer grows until the answer fits
 *     <shim/stack.h>        call stacks of any code
 *     <shim/sampling.h>     samples of running threads
 *     <shim/allocations.h>  blocks of malloc and operator new
 *     <shim/mappings.h>     mmap and brk
 *     <shim/reach.h>        leaks: blocks without a pointer to them
 *     <shim/locks.h>        waits for locks
 *     <shim/coverage.h>     lines and functions that were reached
 *     <shim/signals.h>      signals that notify a profiler
 *     <shim/record.h>       files of a profiler in the recording
 *     <shim/format.h>       the layout of these files
 *     <shim/cpu.h>          what a fast hook needs of the processor
 *     <shim/banned.h>       refuses what may not run inside a program
 *     <shim/clr.h>          constants of the CLR that shim does not use
 *     <shim/mark.h>, <shim/trace.h>, <shim/heap.h>
 *                           for programs: marks, tracing, heap snapshots
 *     <shim/compat/mon.h>   monitor(3): PC histograms
 *
 * The life of a profiler:
 *
 *     1  shim loads the module before main, or later by `profrun ctl PID load`.
 *     2  shim calls the module's init function.  It creates handles, enables what
 *        it needs (SHIM_INIT functions work only here), and sets callbacks and hooks.
 *     3  Hooks and callbacks run.  They may set and remove callbacks at any time.
 *     4  The profiler ends by shim_profiler_detach, shim_profiler_destroy, or with
 *        the process.  shim then calls its cleanup callback, last and once.
 *
 * Threads.  A hook or callback runs on the thread that caused it.  Several
 * threads may run the same callback at once.  shim holds no lock of its own
 * meanwhile.  A profiler's own threads come from shim_thread_create.
 *
 * Fork.  The child has all profilers, handles and callbacks of its parent, and
 * only the thread that called fork.  The event `forked` is its first;
 * recordings of the parent stay with the parent.  After execve, the new program
 * has profilers of its own.
 *
 * Contracts.  Each declaration ends with its contract, which the function
 * checks:
 *
 *     SHIM_INIT       only while profilers are set up: in a module's init
 *                     function, or in the program itself before main
 *     SHIM_SYNC       in a callback or a slow hook, on its thread; not in a
 *                     SIGNAL callback, such as sample_hit
 *     SHIM_MAY_BLOCK  as SHIM_SYNC, but not in a QUIET callback: the function may
 *                     allocate, open files, and wait for other threads
 *     SHIM_ASYNC      anywhere, also in a signal handler and in a fast hook: the
 *                     function allocates nothing and keeps errno
 *
 *     called in                          INIT   SYNC   MAY_BLOCK   ASYNC
 *     a module's init function           yes    yes    yes         yes
 *     a THREAD callback, a slow hook     no     yes    yes         yes
 *     a filter or mapper                 no     yes    yes         yes
 *     a QUIET callback                   no     yes    no          yes
 *     a SIGNAL callback, a fast hook     no     no     no          yes
 *     a thread of shim_thread_create     no     yes    yes         yes
 *     a thread that shim does not know   no     yes    yes         yes
 *
 * A task that shares the thread-local data of another (clone) may never call
 * SYNC and MAY_BLOCK functions.  A call that breaks its contract fails with the
 * first of these that applies:
 *
 *     SHIM_E_PROFILER_DETACHING          the handle, or the profiler whose callback
 *                                        runs, is being detached
 *     SHIM_E_UNSUPPORTED_CALL_SEQUENCE   a SYNC or MAY_BLOCK function, called
 *                                        where its contract forbids it
 *     SHIM_E_CALL_ONLY_FROM_INIT         an INIT function, called too late
 *     SHIM_E_INVALIDARG                  a wrong argument
 *
 * With SHIM_CHECK=1 the log names each function that failed so, or that was
 * given a wrong handle, and its caller.
 *
 * Arguments and results.  A function that fails writes no output, unless its
 * description says otherwise.  Outputs are optional (NULL) unless a function
 * has only one.  A function that fills a buffer takes the buffer's length in
 * elements, stores in *total how many elements there are, and fills as many as
 * fit; a short buffer is a success.  Lengths of strings count the NUL.
 *
 * Descriptions name the counterpart in other systems: CLR (ICorProfilerInfo and
 * ICorProfilerCallback), Mono (mono/metadata/profiler.h) and Tru64
 * (monitor(3)).  The manual page shim-names(7) lists them all.
 *
 * Example: a whole profiler is in <shim/profiler.h>.  A result as text:
 *
 *     #include <shim/shim.h>
 *     #include <stdio.h>
 *
 *     void complain(const char *what, enum shim_result result);
 *     void complain(const char *what, enum shim_result result)
 *     {
 *             if (SHIM_FAILED(result))
 *                     fprintf(stderr, "%s: %s\n", what, shim_result_text(result));
 *     }
 */
#ifndef SHIM_SHIM_H
#define SHIM_SHIM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__clang__)
#define SHIM_INIT      __attribute__((annotate("shim:init")))
#define SHIM_SYNC      __attribute__((annotate("shim:sync")))
#define SHIM_MAY_BLOCK __attribute__((annotate("shim:may_block")))
#define SHIM_ASYNC     __attribute__((annotate("shim:async")))
#else
#define SHIM_INIT
#define SHIM_SYNC
#define SHIM_MAY_BLOCK
#define SHIM_ASYNC
#endif

/*
 * The direction of a parameter: an input; an output; an output that may be NULL;
 * an output array of @count elements, for a result of *@total elements.  The
 * project generates tests from these words.
 */
#define SHIM_IN
#define SHIM_OUT
#define SHIM_OUT_OPT
#define SHIM_OUT_SIZE_IS(count, total)

/* Calls through the GOT without the PLT's jump: fast hooks call these functions. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__)
#define SHIM_NO_JUMP __attribute__((noplt))
#else
#define SHIM_NO_JUMP
#endif

#define SHIM_API SHIM_NO_JUMP __attribute__((visibility("default")))

/* For inline functions of these headers: their calls raise no hooks. */
#define SHIM_QUIET __attribute__((no_instrument_function))

enum shim_result {
#define SHIM_DEFINE_RESULT(name, value, text) name = (int)value,
#include <shim/results.def>
#undef SHIM_DEFINE_RESULT
};

#define SHIM_SUCCEEDED(result) ((int)(result) >= 0)
#define SHIM_FAILED(result)    ((int)(result) < 0)

/*
 * shim_result_name - the name of @result, such as "SHIM_E_FAIL"
 * shim_result_text - the meaning of @result in a few words
 *
 * The strings live as long as the process.  Return NULL if @result is unknown.
 *
 * Contract: async.  CLR: HRESULT.  Mono: none.
 */
SHIM_API const char *shim_result_name(SHIM_IN int result) SHIM_ASYNC;
SHIM_API const char *shim_result_text(SHIM_IN int result) SHIM_ASYNC;

/*
 * A function: the address of its first instruction, as the compiler passes it
 * to the hooks.  After dlclose, another function may have the same address; the
 * recording tells the two apart by their generation (<shim/format.h>).  CLR:
 * FunctionID.  Mono: MonoMethod.
 */
typedef uintptr_t shim_function;

/* A loaded object.  A process never uses a number twice; 0 is no image.  CLR:
 * ModuleID.  Mono: MonoImage. */
typedef uint64_t shim_image;

/* A thread.  A process never uses a number twice, unlike the kernel; 0 is no
 * thread.  CLR: ThreadID. */
typedef uint64_t shim_thread;

#ifdef __cplusplus
}
#endif
#endif
