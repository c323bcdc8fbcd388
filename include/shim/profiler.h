/*
 * Profilers: who gets which events.
 *
 * A profiler is a handle with a pointer of its own and one callback per event
 * it wants.  Any number of them live side by side; each event goes to all that
 * asked for it, newest profiler first.
 *
 * A module is a shared library with one profiler (or more) in it:
 *
 *     libshim-profiler-example.so
 *
 *     #include <shim/profiler.h>
 *
 *     SHIM_PROFILER_MODULE(example)
 *     {
 *             struct shim_profiler_handle *handle = shim_profiler_create(NULL);
 *
 *             shim_profiler_on_thread_started(handle, started);
 *             return SHIM_OK;
 *     }
 *
 * `profrun -p example:arguments` loads it; its init function gets the whole
 * "example:arguments".  In -p and SHIM_PROFILE a backslash precedes a semicolon
 * that belongs to the arguments.  A program can do the same without a module,
 * through weak symbols, so that it also runs without shim.
 */
#ifndef SHIM_PROFILER_H
#define SHIM_PROFILER_H

#include <shim/shim.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * What a module was compiled against.  shim refuses one that is older than
 * SHIM_PROFILER_API_OLDEST or newer than itself (rows M-72 to M-74).
 *
 *     1  modules, handles, events, hooks, filters, queries
 */
#define SHIM_PROFILER_API_VERSION 1
#define SHIM_PROFILER_API_OLDEST  1

/* The version of the library that runs.  Contract: async. */
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
 * @name must be that of the library, libshim-profiler-NAME.so.  The function
 * gets `description`, a string that lives as long as the module; it returns
 * SHIM_OK; SHIM_E_PROFILER_CANCEL_ACTIVATION to leave quietly, or any other
 * failure to be unloaded with a line in the log.  Rows M-2 to M-4, C-5, P-62.
 */
#define SHIM_PROFILER_MODULE(name)                                             \
	SHIM_EXTERN_C SHIM_EXPORT const uint32_t shim_profiler_module_api;     \
	const uint32_t shim_profiler_module_api = SHIM_PROFILER_API_VERSION;   \
	SHIM_EXTERN_C SHIM_EXPORT enum shim_result shim_profiler_init_##name(  \
		const char *description);                                      \
	enum shim_result shim_profiler_init_##name(                            \
		const char *description __attribute__((unused)))

struct shim_profiler;		/* yours; shim only hands it back */
struct shim_profiler_handle;
struct shim_call_context;
struct shim_block;		/* <shim/allocations.h> */
struct shim_mapping;		/* <shim/mappings.h> */
struct shim_open_calls;		/* <shim/stack.h> */
struct shim_lock;		/* <shim/locks.h> */
struct shim_coverage_object;	/* <shim/coverage.h> */

/*
 * shim_profiler_load - load a module
 *
 * @description is "NAME" or "NAME:ARGUMENTS"; NULL and "default" mean the call
 * tree.  The profilers that come with shim are started by their names, before main;
 * calls that are open then are not theirs.  A module is looked for in the program
 * itself (a function shim_profiler_init_NAME), beside libshim.so, in the
 * directories of SHIM_MODULE_PATH, then wherever the dynamic linker looks; NAME may
 * also be a path to a module.  Loading what is loaded does nothing.  After main has begun this attaches: the module gets
 * attach_complete when it is in place, and @data (may be NULL, @size 0) is what
 * shim_profiler_attach_data gives it.  Rows M-13 to M-17, P-63.
 *
 * Returns SHIM_OK; SHIM_E_INVALIDARG if @description is no name; SHIM_E_FAIL if
 * it was not found or does not fit (the log says why), or shim is off;
 * SHIM_E_UNSUPPORTED_FOR_ATTACHING_PROFILER for one of shim's own after main has
 * begun, and for pchist, which monstartup() starts at any time;
 * SHIM_E_PROFILER_DETACHING if it has not left yet; SHIM_E_OUTOFMEMORY; SHIM_E_UNEXPECTED if its init function threw, or the
 * failure that it returned.
 *
 * Contract: may block; also the program, outside of callbacks.  Takes the
 * loader's lock.
 */
SHIM_API enum shim_result
shim_profiler_load(SHIM_IN const char *description, SHIM_IN const void *data,
		   SHIM_IN uint32_t size) SHIM_MAY_BLOCK;

/*
 * shim_profiler_attach_data - what the one who attached this module sent
 *
 * At most @count bytes to @data, and in *@total how many there are; 0 if it was
 * not attached.  Contract: init.
 */
SHIM_API enum shim_result
shim_profiler_attach_data(SHIM_IN uint32_t count, SHIM_OUT_OPT uint32_t *total,
			  SHIM_OUT_SIZE_IS(count, total) void *data) SHIM_INIT;

/*
 * shim_profiler_create - a new profiler
 *
 * @profiler is passed to every callback of this handle and may be NULL.
 * Returns the handle, or NULL if there are too many (SHIM_PROFILERS_MAX) or it
 * is too late.  Rows M-18, M-19.
 *
 * Contract: init.
 */
#define SHIM_PROFILERS_MAX 256
SHIM_API struct shim_profiler_handle *
shim_profiler_create(SHIM_IN struct shim_profiler *profiler) SHIM_INIT;

/*
 * shim_profiler_destroy - undo shim_profiler_create
 *
 * From now on none of @handle's callbacks and hooks is called; waits until no
 * other thread is in one, calls the cleanup callback, and forgets the handle.
 * In a callback of @handle itself it fails.  Row M-20.
 *
 * Returns SHIM_OK; SHIM_E_INVALIDARG; SHIM_E_UNSUPPORTED_CALL_SEQUENCE from a
 * callback or hook of @handle; SHIM_E_PROFILER_DETACHING if it is going already.
 *
 * Contract: may block; also the program, outside of callbacks.
 */
SHIM_API enum shim_result
shim_profiler_destroy(SHIM_IN struct shim_profiler_handle *handle) SHIM_MAY_BLOCK;

/*
 * shim_profiler_quiesce - wait until no other thread is in @handle's code
 *
 * What was set before the call is what runs after it: a callback that was
 * removed will not be called any more.  Row M-69.  Returns as
 * shim_profiler_destroy.
 *
 * Contract: may block; also the program, outside of callbacks.
 */
SHIM_API enum shim_result
shim_profiler_quiesce(SHIM_IN struct shim_profiler_handle *handle) SHIM_MAY_BLOCK;

/*
 * shim_profiler_detach - leave, from inside
 *
 * Returns at once.  From now on @handle gets no events and its calls fail with
 * SHIM_E_PROFILER_DETACHING; when no thread is in its code, at the latest checks
 * after @expected_ms (0: 5000) and again with growing pauses, it gets
 * detach_succeeded, its cleanup callback, and its module is unloaded when that
 * was the last handle of it.  Rows P-67 to P-71.
 *
 * Returns SHIM_OK; SHIM_E_INVALIDARG; SHIM_E_PROFILER_DETACHING;
 * SHIM_E_PROFILER_NOT_YET_INITIALIZED inside the module's init function.
 *
 * Contract: may block; also the program, outside of callbacks.
 */
SHIM_API enum shim_result
shim_profiler_detach(SHIM_IN struct shim_profiler_handle *handle,
		     SHIM_IN uint32_t expected_ms) SHIM_MAY_BLOCK;

/*
 * shim_profiler_set_cleanup_callback - called last of all, once
 *
 * After every other event of @handle, at the end of the process or of the
 * handle, also if it was switched off; it may free what @profiler points to.
 * NULL: none.  Rows M-21, M-22.
 * Returns SHIM_OK; SHIM_E_INVALIDARG; SHIM_E_PROFILER_DETACHING.
 *
 * Contract: async.
 */
typedef void (*shim_cleanup_callback)(struct shim_profiler *profiler);
SHIM_API enum shim_result
shim_profiler_set_cleanup_callback(SHIM_IN struct shim_profiler_handle *handle,
				   SHIM_IN shim_cleanup_callback cleanup)
	SHIM_ASYNC;

/*
 * shim_profiler_enable_clauses - ask for exception_clause events
 *
 * They cost the program an extra look at every frame that is unwound.  For the
 * whole process.  Row M-75.  Returns SHIM_OK, or SHIM_E_CALL_ONLY_FROM_INIT.
 *
 * Contract: init.
 */
SHIM_API enum shim_result shim_profiler_enable_clauses(void) SHIM_INIT;

/* The kinds of exception_clause. */
enum shim_clause {
	SHIM_CLAUSE_NONE = 0,
	SHIM_CLAUSE_FILTER = 1,
	SHIM_CLAUSE_CATCH = 2,
	SHIM_CLAUSE_FINALLY = 3,	/* destructors */
};

/*
 * shim_profiler_on_EVENT - set, replace or (NULL) remove a callback
 *
 * The types and the events are those of <shim/events.def>.  Any thread may do
 * so at any time; another that is already in the old callback stays in it (see
 * shim_profiler_quiesce).  A wrong @handle is ignored.  Rows M-10, M-66 to M-70.
 *
 * A callback that throws is left, its profiler is switched off for good, and
 * the log says so; so is one that is left by longjmp.  That is so of everything
 * shim calls: filters, mappers, cleanup, callbacks of walks (which end, with
 * SHIM_E_UNEXPECTED), and threads of shim_thread_create, where it switches all
 * profilers of the module off.  Row P-21.  The program's errno and
 * floating point exception flags are kept for it; its signal mask is not.
 *
 * Contract: async.
 */
#define SHIM_DEFINE_EVENT(name, context, flag, parameters)                     \
	typedef void(*shim_##name##_callback) parameters;                      \
	SHIM_API void shim_profiler_on_##name(                                 \
		SHIM_IN struct shim_profiler_handle *handle,                            \
		SHIM_IN shim_##name##_callback callback) SHIM_ASYNC;
#include <shim/events.def>
#undef SHIM_DEFINE_EVENT

/*
 * shim_thread_create - a thread of the profiler's own
 *
 * Runs call(argument).  It is no thread of the program: it gets no events, is
 * not enumerated, has all signals blocked, and may call any function but INIT
 * ones at any time.  Its module is not unloaded before it has ended, and its
 * destructors have run.  Row P-36.
 *
 * Returns SHIM_OK; SHIM_E_INVALIDARG; SHIM_E_OUTOFMEMORY if the system refuses.
 *
 * Contract: may block; also from init.
 */
SHIM_API enum shim_result
shim_thread_create(SHIM_IN void (*call)(void *argument),
		   SHIM_IN void *argument) SHIM_MAY_BLOCK;

/*
 * shim_thread_data - a pointer of @handle's own in the calling thread
 *
 * *@data gets the address of the pointer, which is NULL when a thread begins, and
 * stays where it is until the thread has ended.  Hooks, callbacks and samples on
 * that thread find the same one, also while thread-local variables do not exist yet
 * or any more, and in libraries that came by dlopen, whose thread-local variables a
 * signal handler may not touch first.  What the pointer points to is the profiler's:
 * thread_exited is the moment to give it back and to set the pointer to NULL (fast
 * hooks are still called then: libc may go on with destructors).  In a forked child the thread that
 * called fork has what it had.  Tasks that share the thread-local data of another
 * (clone) share the pointer.
 *
 * Returns SHIM_OK; SHIM_E_INVALIDARG; SHIM_E_PROFILER_DETACHING;
 * SHIM_E_OUTOFMEMORY when the thread is new to shim, which then takes the lock of
 * the runtime to make a record of it.
 *
 * Contract: async.  Cost: some loads.  The CLR and Tru64 have no counterpart, the
 * profilers of Mono use thread-local variables of its runtime.
 */
SHIM_API enum shim_result
shim_thread_data(SHIM_IN struct shim_profiler_handle *handle,
		 SHIM_OUT void ***data) SHIM_ASYNC;

#ifdef __cplusplus
}
#endif
#endif
