/*
 * The words every shim header uses: results, identities, contracts.
 *
 * Each declaration ends with its contract, which its body enforces:
 *
 *     SHIM_INIT      only while profilers are being set up: from a module's
 *                    init function, or by the program itself before main
 *     SHIM_SYNC      inside a callback or a slow hook, on its thread; not in
 *                    a SIGNAL callback, such as sample_hit
 *     SHIM_MAY_BLOCK  the same, but not in a QUIET callback: it may allocate,
 *                    open files, wait for other threads
 *     SHIM_ASYNC     anywhere, also in a signal handler and in a fast hook:
 *                    allocates nothing, leaves errno alone
 *
 * Threads that shim does not know, and a module's own (shim_thread_create), may
 * call SHIM_SYNC and SHIM_MAY_BLOCK functions at any time (row P-36); tasks that
 * share the thread-local data of others (clone), never.  Whoever breaks a contract
 * gets an error, in this order (row P-56):
 *
 *     SHIM_E_PROFILER_DETACHING          the profiler, or the one whose callback
 *                                        runs, is being detached
 *     SHIM_E_UNSUPPORTED_CALL_SEQUENCE   SYNC or MAY_BLOCK, and not called there
 *     SHIM_E_CALL_ONLY_FROM_INIT         INIT, and too late
 *     SHIM_E_INVALIDARG                  then come the arguments
 *
 * With SHIM_CHECK=1 the log names each function that was refused so, or was given a
 * handle that is none, and what called it (row P-47).
 *
 * On failure no output is written, but where a function says so.  Outputs are
 * optional (NULL) unless a function has only one.  A function that fills a
 * buffer takes its length in elements, stores in *total how many there are
 * altogether and fills as many as fit; a short buffer is a success.  Strings
 * count their NUL.  Rows C-7 to C-29.
 */
#ifndef SHIM_SHIM_H
#define SHIM_SHIM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__clang__)
#define SHIM_INIT     __attribute__((annotate("shim:init")))
#define SHIM_SYNC     __attribute__((annotate("shim:sync")))
#define SHIM_MAY_BLOCK __attribute__((annotate("shim:may_block")))
#define SHIM_ASYNC    __attribute__((annotate("shim:async")))
#else
#define SHIM_INIT
#define SHIM_SYNC
#define SHIM_MAY_BLOCK
#define SHIM_ASYNC
#endif

/* What a parameter is, for readers and for the tests that are made from the
 * headers: given, given back, given back if not NULL, an array of @count
 * elements of which *@total exist. */
#define SHIM_IN
#define SHIM_OUT
#define SHIM_OUT_OPT
#define SHIM_OUT_SIZE_IS(count, total)

/* Hooks ask at each call: a jump less. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__)
#define SHIM_NO_JUMP __attribute__((noplt))
#else
#define SHIM_NO_JUMP
#endif

#define SHIM_API SHIM_NO_JUMP __attribute__((visibility("default")))

/* Of what these headers have inline: it is no call of the program's. */
#define SHIM_QUIET __attribute__((no_instrument_function))

enum shim_result {
#define SHIM_DEFINE_RESULT(name, value, text) name = (int)value,
#include <shim/results.def>
#undef SHIM_DEFINE_RESULT
};

#define SHIM_SUCCEEDED(result) ((int)(result) >= 0)
#define SHIM_FAILED(result)    ((int)(result) < 0)

/*
 * shim_result_name - "SHIM_E_FAIL", or NULL if there is no such result
 * shim_result_text - what it means, in a few words, or NULL
 *
 * The strings live as long as the process.  Row C-40.  Contract: async.
 */
SHIM_API const char *shim_result_name(SHIM_IN int result) SHIM_ASYNC;
SHIM_API const char *shim_result_text(SHIM_IN int result) SHIM_ASYNC;

/*
 * A function: the address of its first instruction, as the compiler passes it
 * to the hooks.  An address may be used again after dlclose; the recording
 * tells the two apart by their generation (<shim/format.h>).  Row E-38.
 */
typedef uintptr_t shim_function;

/* A loaded object.  Never used twice in the life of a process; 0 is none. */
typedef uint64_t shim_image;

/* A thread.  Never used twice either, unlike the system's; 0 is none. */
typedef uint64_t shim_thread;

#ifdef __cplusplus
}
#endif
#endif
