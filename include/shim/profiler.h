/*
 * Profilers: handles, and the callbacks that they get for events.
 *
 * A profiler is a handle with a pointer of its own and one callback for each
 * event that it wants.  A process has any number of profilers; each event goes
 * to all that have a callback for it, the newest profiler first.
 *
 * A module is a shared library with one profiler or more:
 * libshim-profiler-NAME.so. `profrun -p NAME:ARGUMENTS` loads it and passes the
 * whole "NAME:ARGUMENTS" to its init function.  In -p and SHIM_PROFILE, a
 * backslash precedes a semicolon that belongs to the arguments.  A program can
 * be its own profiler: it declares these functions weak, so that it also runs
 * without shim.
 *
 * Example: a module that prints each thread that starts.
 *
 *     #include <shim/profiler.h>
 *     #include <stdio.h>
 *
 *     static void started(struct shim_profiler *profiler, shim_thread thread)
 *     {
 *             (void)profiler;
 *             fprintf(stderr, "thread %llu\n", (unsigned long long)thread);
 *     }
 *
 *     SHIM_PROFILER_MODULE(example)
 *     {
 *             struct shim_profiler_handle *handle = shim_profiler_create(NULL);
 *
 *             if (!handle)
 *                     return SHIM_E_FAIL;
 *             shim_profiler_on_thread_started(handle, started);
 *             return SHIM_OK;
 *     }
 *
 * A complete ELT profiler is the example calls.c, also shown in shim(7).
 */
#ifndef SHIM_PROFILER_H
#define SHIM_PROFILER_H

#include <shim/shim.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The version of the interface that a module is compiled against.  shim refuses
 * a module that is older than SHIM_PROFILER_API_OLDEST or newer than shim
 * itself.
 *
 *     1  modules, handles, events, hooks, filters, queries
 *
 * Mono: MONO_PROFILER_API_VERSION.
 */
#define SHIM_PROFILER_API_VERSION 1
#define SHIM_PROFILER_API_OLDEST  1

/*
 * shim_profiler_api_version - SHIM_PROFILER_API_VERSION of the library that runs
 *
 * Contract: async.  CLR: GetRuntimeInformation.  Mono: none.
 */
SHIM_API uint32_t shim_profiler_api_version(void) SHIM_ASYNC;

#define SHIM_EXPORT __attribute__((visibility("default")))
#ifdef __cplusplus
#define SHIM_EXTERN_C extern "C"
#else
#define SHIM_EXTERN_C extern
#endif

/*
 * SHIM_PROFILER_MODULE - begins a module's init function
 *
 * @name is the NAME of the library, libshim-profiler-NAME.so.  The function
 * gets `description`, a string that lives as long as the module.  It returns
 * SHIM_OK; SHIM_E_PROFILER_CANCEL_ACTIVATION to be unloaded without a message;
 * or any other failure to be unloaded with a line in the log.
 *
 * CLR: Initialize, InitializeForAttach.  Mono:
 * mono_profiler_init_NAME.
 */
#define SHIM_PROFILER_MODULE(name) \
	SHIM_EXTERN_C SHIM_EXPORT const uint32_t shim_profiler_module_api; \
	const uint32_t shim_profiler_module_api = SHIM_PROFILER_API_VERSION; \
	SHIM_EXTERN_C SHIM_EXPORT enum shim_result shim_profiler_init_##name( \
		const char *description); \
	enum shim_result shim_profiler_init_##name(const char *description \
						   __attribute__((unused)))

struct shim_profiler; /* defined by the profiler; shim only passes the pointer */
struct shim_profiler_handle;
struct shim_call_context;
struct shim_block;	     /* <shim/allocations.h> */
struct shim_mapping;	     /* <shim/mappings.h> */
struct shim_open_calls;	     /* <shim/stack.h> */
struct shim_lock;	     /* <shim/locks.h> */
struct shim_coverage_object; /* <shim/coverage.h> */
struct shim_message;	     /* <shim/message.h> */

/*
 * shim_profiler_load - load a module
 *
 * @description is "NAME" or "NAME:ARGUMENTS"; NULL and "default" mean the call
 * tree.  NAME of a profiler of shim's own starts that profiler; it does not
 * record calls that are open at that time.  After main has begun, pchist cannot
 * start, and trace only if no profiler counts calls.  shim looks for a
 * module in the program itself (a function shim_profiler_init_NAME), beside
 * libshim.so, in the directories of SHIM_MODULE_PATH, then where the dynamic
 * linker looks.  NAME may also be a path to a module.  A module that is loaded
 * already stays as it is, and the call succeeds.
 *
 * After main has begun, this call attaches the module: the module gets
 * attach_complete when all its callbacks are active, and
 * shim_profiler_attach_data gives it the @size bytes of @data.  @data may be
 * NULL if @size is 0.
 *
 * Returns SHIM_OK; SHIM_E_INVALIDARG if @description has no valid name;
 * SHIM_E_FAIL if the module was not found, does not fit or cannot start any
 * more (the log says why), or shim is off;
 * SHIM_E_UNSUPPORTED_FOR_ATTACHING_PROFILER after main has begun, for pchist,
 * which monstartup() starts at any time; SHIM_E_INCONSISTENT_WITH_FLAGS if
 * the profiler of shim's own has been started with other arguments;
 * SHIM_E_PROFILER_DETACHING if the same module is still being detached;
 * SHIM_E_OUTOFMEMORY; SHIM_E_UNEXPECTED if its init function threw an
 * exception; or the failure that its init function returned.
 *
 * Contract: may block; also the program, outside of callbacks.  Takes the
 * loader's lock.  CLR: ICLRProfiling::AttachProfiler.  Mono:
 * mono_profiler_load.
 */
SHIM_API enum shim_result
shim_profiler_load(SHIM_IN const char *description, SHIM_IN const void *data,
		   SHIM_IN uint32_t size) SHIM_MAY_BLOCK;

/*
 * shim_profiler_attach_data - the data that came with the request to attach
 *
 * Copies at most @count bytes to @data.  *@total is the size of the data in
 * bytes, 0 if the module was not attached.
 *
 * Returns SHIM_OK; SHIM_E_INVALIDARG if @data is NULL and @count is not 0;
 * SHIM_E_CALL_ONLY_FROM_INIT.
 *
 * Contract: init.  CLR: InitializeForAttach.  Mono: none.
 */
SHIM_API enum shim_result
shim_profiler_attach_data(SHIM_IN uint32_t count, SHIM_OUT_OPT uint32_t *total,
			  SHIM_OUT_SIZE_IS(count, total) void *data) SHIM_INIT;

/*
 * shim_profiler_create - create a profiler
 *
 * shim passes @profiler, which may be NULL, to every callback of the new
 * handle.
 *
 * Returns the handle; NULL if SHIM_PROFILERS_MAX handles exist or
 * initialization is over.
 *
 * Contract: init.  CLR: none, it has one profiler.  Mono: mono_profiler_create.
 */
#define SHIM_PROFILERS_MAX 256
SHIM_API struct shim_profiler_handle *
shim_profiler_create(SHIM_IN struct shim_profiler *profiler) SHIM_INIT;

/*
 * shim_profiler_destroy - destroy a profiler
 *
 * Removes all callbacks and hooks of @handle, waits until no other thread runs
 * one, calls the cleanup callback, and frees the handle.
 *
 * Returns SHIM_OK; SHIM_E_INVALIDARG for a wrong @handle;
 * SHIM_E_UNSUPPORTED_CALL_SEQUENCE in a callback or hook of @handle itself;
 * SHIM_E_PROFILER_DETACHING if it is being destroyed already.
 *
 * Contract: may block; also the program, outside of callbacks.  No counterpart.
 */
SHIM_API enum shim_result shim_profiler_destroy(
	SHIM_IN struct shim_profiler_handle *handle) SHIM_MAY_BLOCK;

/*
 * shim_profiler_quiesce - wait until no other thread runs code of @handle
 *
 * Afterwards, a callback that was removed before this call is no longer running
 * and will not run again.
 *
 * Returns as shim_profiler_destroy.
 *
 * Contract: may block; also the program, outside of callbacks.  No counterpart.
 */
SHIM_API enum shim_result shim_profiler_quiesce(
	SHIM_IN struct shim_profiler_handle *handle) SHIM_MAY_BLOCK;

/*
 * shim_profiler_detach - detach the calling profiler
 *
 * Returns at once.  From now on @handle gets no events, and functions that are
 * called for it fail with SHIM_E_PROFILER_DETACHING.  shim checks after
 * @expected_ms milliseconds at the latest (0: 5000), then with growing pauses,
 * whether a thread still runs code of @handle.  When no thread does, @handle
 * gets detach_succeeded and its cleanup callback.  shim unloads the module with
 * the last of its handles.
 *
 * Returns SHIM_OK; SHIM_E_INVALIDARG for a wrong @handle;
 * SHIM_E_PROFILER_DETACHING if it is being detached already;
 * SHIM_E_PROFILER_NOT_YET_INITIALIZED in the module's init function.
 *
 * Contract: may block; also the program, outside of callbacks.  CLR:
 * RequestProfilerDetach.  Mono: none.
 */
SHIM_API enum shim_result
shim_profiler_detach(SHIM_IN struct shim_profiler_handle *handle,
		     SHIM_IN uint32_t expected_ms) SHIM_MAY_BLOCK;

/*
 * shim_profiler_set_cleanup_callback - set the last callback of a handle
 *
 * shim calls @cleanup once, after every other event of @handle: at the end of
 * the process or of the handle, also if shim has disabled the profiler.
 * @cleanup may free the memory of @profiler.  NULL removes the callback.
 *
 * Returns SHIM_OK; SHIM_E_INVALIDARG for a wrong @handle;
 * SHIM_E_PROFILER_DETACHING.
 *
 * Contract: async.  CLR: Shutdown.  Mono:
 * mono_profiler_set_cleanup_callback.
 */
typedef void (*shim_cleanup_callback)(struct shim_profiler *profiler);
SHIM_API enum shim_result shim_profiler_set_cleanup_callback(
	SHIM_IN struct shim_profiler_handle *handle,
	SHIM_IN shim_cleanup_callback cleanup) SHIM_ASYNC;

/*
 * shim_profiler_enable_clauses - enable exception_clause events
 *
 * Applies to the whole process, whichever handle calls it.  Cost: shim reads the
 * exception table of every frame that an exception unwinds.
 *
 * Returns SHIM_OK; SHIM_E_INVALIDARG for a wrong @handle;
 * SHIM_E_CALL_ONLY_FROM_INIT.
 *
 * Contract: init.  CLR: COR_PRF_MONITOR_EXCEPTIONS.  Mono:
 * mono_profiler_enable_clauses.
 */
SHIM_API enum shim_result shim_profiler_enable_clauses(
	SHIM_IN struct shim_profiler_handle *handle) SHIM_INIT;

/* The kinds of exception_clause.  CLR: COR_PRF_CLAUSE_TYPE. */
enum shim_clause {
	SHIM_CLAUSE_NONE = 0,
	SHIM_CLAUSE_FILTER = 1,
	SHIM_CLAUSE_CATCH = 2,
	/* Destructors.  gcc's -finstrument-functions gives each function a cleanup, which
	 * calls the leave hook: it counts, too, because telling it from a destructor
	 * would take disassembling the function while it is unwound.  Frames of clang
	 * have no such cleanup. */
	SHIM_CLAUSE_FINALLY = 3,
};

/*
 * shim_profiler_on_EVENT - set, replace or (NULL) remove a callback
 *
 * <shim/events.def> lists the events with the types of their callbacks.  Any
 * thread may call this at any time.  Another thread that already runs the old
 * callback finishes it (see shim_profiler_quiesce).  A wrong @handle is
 * ignored.
 *
 * If a callback throws an exception, or a longjmp leaves it, the callback ends
 * there.  shim then disables its profiler for good and writes a line to the log.
 * The same holds for filters, mappers, cleanup callbacks, and callbacks of walks
 * (the walk then ends with SHIM_E_UNEXPECTED).  If a thread of
 * shim_thread_create throws an exception, shim disables all profilers of its
 * module.
 *
 * shim restores the program's errno and floating point state (exception flags and
 * masks, rounding) after a callback and after a slow hook.  It does not restore the
 * signal mask: that takes two system calls, 2.5 us on a virtual machine where a
 * function call with two slow hooks takes 34 ns.  Nor does it restore the
 * cancellation state.  A callback or hook that changes them restores them itself.
 *
 * Contract: async.  CLR: ICorProfilerCallback.  Mono:
 * mono_profiler_set_EVENT_callback.
 */
#define SHIM_DEFINE_EVENT(name, context, flag, parameters) \
	typedef void(*shim_##name##_callback) parameters; \
	SHIM_API void shim_profiler_on_##name( \
		SHIM_IN struct shim_profiler_handle *handle, \
		SHIM_IN shim_##name##_callback callback) SHIM_ASYNC;
#include <shim/events.def>
#undef SHIM_DEFINE_EVENT

/*
 * shim_thread_create - create a thread of the profiler's own
 *
 * The thread runs call(argument).  It raises no events, enumerations do not
 * list it, and all signals are blocked in it.  It may call any function but
 * INIT functions at any time.  shim unloads its module only after the thread
 * has ended and its destructors have run.
 *
 * Returns SHIM_OK; SHIM_E_INVALIDARG if @call is NULL; SHIM_E_OUTOFMEMORY if
 * the kernel refuses the thread.
 *
 * Contract: may block; also from init.  CLR: InitializeCurrentThread.  Mono:
 * none.
 */
SHIM_API enum shim_result
shim_thread_create(SHIM_IN void (*call)(void *argument),
		   SHIM_IN void *argument) SHIM_MAY_BLOCK;

/*
 * shim_thread_data - a pointer of @handle's own in the calling thread
 *
 * *@data gets the address of the pointer.  The pointer is NULL when a thread
 * begins and keeps its address until the thread has ended.  Hooks, callbacks
 * and samples on the thread find the same pointer, even before thread-local
 * variables exist and after they are destroyed, and in a module that came by
 * dlopen, whose thread-local variables a signal handler may not touch first.
 * The profiler owns the memory behind the pointer.  It should free it in
 * thread_exited and set the pointer to NULL: fast hooks may still run on the
 * thread then, because libc may run more destructors.  In a fork child, the
 * thread that called fork keeps its pointer.  A task that shares the
 * thread-local data of another (clone) shares the pointer.
 *
 * Returns SHIM_OK; SHIM_E_INVALIDARG for a wrong @handle or NULL;
 * SHIM_E_PROFILER_DETACHING; SHIM_E_OUTOFMEMORY if the thread is new to shim
 * and there is no memory for its record.
 *
 * Contract: async.  Takes the lock of the runtime if the thread is new to shim.
 * Cost: some loads.  No counterpart (profilers of Mono use thread-local
 * variables of its runtime).
 */
SHIM_API enum shim_result
shim_thread_data(SHIM_IN struct shim_profiler_handle *handle,
		 SHIM_OUT void ***data) SHIM_ASYNC;

#ifdef __cplusplus
}
#endif
#endif
