/*
 * The handles of profilers, and how an event reaches them.
 *
 * Handles form a list, newest first, which readers walk without a lock.  A handle's
 * memory is never unmapped.  A thread pins a handle while it runs the profiler's code:
 * it increments a plain counter of its own.  A thread that removes the handle waits
 * until these counters are 0 (thread_wait); then shim may reuse the memory.
 */
#ifndef SHIM_EVENTS_H
#define SHIM_EVENTS_H

#include "runtime/subscribe.h"
#include "runtime/thread.h"

#include <shim/coverage.h>
#include <shim/hooks.h>

struct module;
struct plan_call;

enum handle_status { /* row P-59 */
		     HANDLE_NONE,
		     HANDLE_DETACHING,
		     HANDLE_ACTIVE,
};

enum handle_data {
	HANDLE_DATA_ARGUMENTS = 1, /* without the frame */
	HANDLE_DATA_RESULT = 2,
	HANDLE_DATA_ENTER_FRAME = 4, /* without the arguments */
	HANDLE_DATA_LEAVE_FRAME = 8, /* without the result */
};

struct shim_mark_hooks;

struct shim_profiler_handle {
	struct shim_profiler *profiler;
	struct shim_profiler_handle *next;
	uint64_t serial; /* larger for newer handles */
	unsigned number; /* index of its pins and data in struct thread */
	uint32_t status;
	/* of enum handle_data: data that its slow hooks get while it is active */
	uint8_t data_flags;
	bool builtin; /* part of shim: never removed, so never pinned */
	bool may_go;  /* created after main began */
	bool waits;   /* its module's init function has not returned */
	bool broken;  /* switched off after an exception or jump */
	bool leaves_on_unwind; /* its leave hook also runs during unwinding */
	struct module *module;
	uint64_t
		images_until; /* the last image event that it must catch up on */
	bool knows_main;      /* it got thread_started for main's thread */
	uint32_t mask, mask_high;

	/* ELT hooks of one generation (elt.c) */
	shim_function_hook fast[3];
	shim_frame_hook frame[2];
	const struct shim_mark_hooks *marks; /* or NULL */
	shim_deferred_hook deferred;	     /* of a fast enter hook, or NULL */
	shim_function_hook restarted[2]; /* fast hooks after hooks were off */
	shim_function_hook_with_info slow[3];
	void (*elt2[3])(void);
	shim_function_hook1 elt1[3];

	shim_function_id_mapper mapper;
	shim_function_id_mapper2 mapper2;
	void *mapper_data;
	shim_call_instrumentation_filter_callback filter;
	bool samples; /* it has enabled sampling */
	/* If not NULL, the next profiler that enables sampling may take the samples;
	 * the function then notifies this one. */
	void (*samples_taken)(void);
	shim_coverage_filter_callback coverage_filter;
	int mapper_slot, filter_slot; /* of dispatch/filter_cache.c, or -1 */

	shim_cleanup_callback cleanup;
#define SHIM_DEFINE_EVENT(name, context, flag, parameters) \
	shim_##name##_callback name;
#include <shim/events.def>
#undef SHIM_DEFINE_EVENT
};

/* For each event, the number of handles with a callback.  If it is 0, the event costs a
 * load and a branch. */
struct events_counts {
#define SHIM_DEFINE_EVENT(name, context, flag, parameters) uint32_t name;
#include <shim/events.def>
#undef SHIM_DEFINE_EVENT
};

extern struct events_counts events_counts __attribute__((visibility("hidden")));

/* For each event, the only handle with a callback, if it is of shim's own; else NULL.  Some
 * events, like jumps, are as frequent as calls. */
struct events_sole {
#define SHIM_DEFINE_EVENT(name, context, flag, parameters) \
	struct shim_profiler_handle *name;
#include <shim/events.def>
#undef SHIM_DEFINE_EVENT
};

extern struct events_sole events_sole __attribute__((visibility("hidden")));

bool handle_is_valid(const struct shim_profiler_handle *handle);

static inline uint32_t
handle_get_status(const struct shim_profiler_handle *handle)
{
	return __atomic_load_n(&handle->status, __ATOMIC_ACQUIRE);
}

/* Computes handle->data_flags after the mask or the hooks have changed. */
void handle_set_data_flags(struct shim_profiler_handle *handle);

/* The contexts of callbacks in events.def. */
enum event_context { EVENT_THREAD, EVENT_QUIET, EVENT_SIGNAL };

#define EVENT_FLAG_ALWAYS	    0u
#define EVENT_FLAG_APPDOMAIN_LOADS  SHIM_MONITOR_APPDOMAIN_LOADS
#define EVENT_FLAG_MODULE_LOADS	    SHIM_MONITOR_MODULE_LOADS
#define EVENT_FLAG_THREADS	    SHIM_MONITOR_THREADS
#define EVENT_FLAG_ENTERLEAVE	    SHIM_MONITOR_ENTERLEAVE
#define EVENT_FLAG_EXCEPTIONS	    SHIM_MONITOR_EXCEPTIONS
#define EVENT_FLAG_OBJECT_ALLOCATED SHIM_MONITOR_OBJECT_ALLOCATED

/* The program, and no module, has created a profiler before main. */
TOPIC(profiler_came, struct shim_profiler_handle *handle);
/* The profiler is ready for the events that it missed before it was created. */
TOPIC(profiler_catches_up, struct shim_profiler_handle *handle);
/* The hooks or callbacks of a profiler have changed; the state lock is not held. */
TOPIC(hooks_changed, void);
/* shim has removed the profiler from the list.  State lock held. */
TOPIC(profiler_left, struct shim_profiler_handle *handle);
/* Subscribers wait until no thread is in a hook.  They set *@is_out to false if a thread is
 * still in a hook after @timeout_ms. */
TOPIC(hooks_awaited, uint32_t timeout_ms, bool *is_out);
/* shim will call no code of the profiler again; subscribers free its resources. */
TOPIC(profiler_gone, struct shim_profiler_handle *handle);
/* The process ends: subscribers stop calling hooks of modules.  State lock held. */
TOPIC(modules_finished, void);
/* A profiler has enabled stack snapshots. */
TOPIC(snapshots_wanted, void);
/* @self is about to continue at @sp: calls with frames below @sp will not return. */
TOPIC(stack_leaving, struct thread *self, uintptr_t sp);
/* @self is about to continue at @sp, and the guards of callbacks below @sp were removed. */
TOPIC(stack_left, struct thread *self, uintptr_t sp);

/* The state of a thread before a call of a profiler's code; on the thread's stack. */
struct guard {
	struct guard *outer;
	uint16_t pins; /* the thread's pins of the handle */
	int error;     /* errno */
	struct shim_profiler_handle *handle;
	struct thread *thread; /* NULL: this struct has no state to restore */
	bool is_shared;	       /* another task uses the thread's record */
	enum event_context kind;
	uintptr_t context;	      /* the context of the call; 0: none */
	const struct plan_call *call; /* the call that the callback is about */
	const char *name;	      /* of the event, for the log */
	uint32_t state;		      /* of the thread */
	const struct arch_frame *frame; /* the slow hook below, or NULL */
};

/* The profilers that get an event. */
enum audience { AUDIENCE_ALL, AUDIENCE_BUILTIN, AUDIENCE_MODULES };

/* As shim_profiler_create, at any time, for profilers that are part of shim; NULL if all
 * handles are in use. */
struct shim_profiler_handle *handle_create(struct shim_profiler *profiler);

/* Raises to @handle the events that came before it was ready.  Called before main, on
 * main's thread. */
void events_catch_up(struct shim_profiler_handle *handle);

/* Between events_start_builtins(true) and (false), new profilers are part of shim. */
void events_start_builtins(bool begins);

/* Undoes shim_profiler_create: no new call of the profiler's code begins, but a thread may
 * still be in it.  False if another thread has retired the handle. */
bool handle_retire(struct shim_profiler_handle *handle);
/* Waits up to @timeout_ms until no thread is in a retired handle's code; false if one still
 * is. */
bool handle_wait(struct shim_profiler_handle *handle, uint32_t timeout_ms);
/* Calls the cleanup callback and frees the handle. */
void handle_free(struct shim_profiler_handle *handle);
/* Whether the calling thread is in a callback or slow hook of @handle. */
bool handle_is_current(const struct shim_profiler_handle *handle);

/* Removes the callbacks of all modules, then calls their cleanup callbacks.  Called at
 * the end of the process. */
void events_finish(void);

/* The list of handles. */
extern struct shim_profiler_handle *events_newest
	__attribute__((visibility("hidden")));

static inline struct shim_profiler_handle *events_first(void)
{
	return __atomic_load_n(&events_newest, __ATOMIC_ACQUIRE);
}

static inline struct shim_profiler_handle *
events_next(struct shim_profiler_handle *handle)
{
	return __atomic_load_n(&handle->next, __ATOMIC_ACQUIRE);
}

/* Fills @guard for a profiler that needs none: it is part of shim. */
static inline void guard_nothing(struct guard *guard,
				 struct shim_profiler_handle *handle)
{
	guard->handle = handle;
	guard->thread = NULL;
	guard->is_shared = false;
}

/* Pins @handle and fills @guard; false if shim must not call the profiler. */
bool guard_enter(struct guard *guard, struct shim_profiler_handle *handle,
		 enum event_context context, uint32_t flag, const char *name);
/* As guard_enter, for the last call of a profiler that is detaching or disabled. */
void guard_enter_last(struct guard *guard, struct shim_profiler_handle *handle,
		      const char *name);
void guard_leave(struct guard *guard);
/* The callback of @guard threw an exception. */
void guard_threw(struct guard *guard);

/* The calling thread jumped to @sp: callbacks with frames below @sp will not return.
 * Disables their profilers. */
void guard_jumped(uintptr_t sp);
/* As guard_jumped, for the unwinding at the thread's end, which disables no profiler. */
void guard_unwound(uintptr_t sp);

/* Runs callback(a) on a stack with enough room.  Catches C++ exceptions, and disables the
 * profiler that has thrown one. */
void guard_run(struct guard *guard, void (*callback)(void), uintptr_t a);

/* As guard_run, for callback(a, b, c, d, e), followed by guard_leave. */
void guard_call(struct guard *guard, void (*callback)(void), uintptr_t a,
		uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e);

/* Whether the stack of the calling thread @self has enough room for a profiler's code. */
bool events_has_room(struct thread *self);

/* Runs call(argument) on the stack *@memory.  Maps the stack if *@memory is NULL; uses the
 * current stack if that fails. */
int events_call_on(char **memory, int (*call)(void *), void *argument);

/* Runs call(argument) on the stack for callbacks, which may be the current stack. */
int events_call_apart(struct thread *self, int (*call)(void *), void *argument);

/*
 * Runs call(argument), which calls functions of the calling profiler, as a stack walk does.
 * events_run uses the current stack, events_run_apart the stack for callbacks.  If the
 * profiler throws an exception, the result is SHIM_E_UNEXPECTED, the profiler is disabled,
 * and the log names @name.
 */
int events_run(const char *name, int (*call)(void *), void *argument);
int events_run_apart(struct thread *self, const char *name, int (*call)(void *),
		     void *argument);

/* The code of a thread of @module has thrown an exception. */
void events_thread_threw(const struct module *module);

#define EVENT_ARGUMENTS_(a, b, c, d, e, ...) \
	(uintptr_t)(a), (uintptr_t)(b), (uintptr_t)(c), (uintptr_t)(d), \
		(uintptr_t)(e)
#define EVENT_ARGUMENTS(...) EVENT_ARGUMENTS_(__VA_ARGS__, 0, 0, 0, 0, 0)

/*
 * RAISE(event, arguments...) calls the callbacks of all profilers, newest first; those of
 * shim's own profilers without a guard, because they never go and never throw.
 * RAISE_TO(AUDIENCE_..., event, ...) calls the callbacks of an audience, and
 * RAISE_ONE(handle, event, ...) the callback of one profiler.  The macros evaluate the
 * arguments only if a profiler has a callback.  The arguments may use the guard of the
 * callback, guard_.
 */
#define RAISE_ONE(target, event, ...) \
	do { \
		struct shim_profiler_handle *one_ = (target); \
		shim_##event##_callback callback_ = __atomic_load_n( \
			&one_->event, __ATOMIC_RELAXED); \
		struct guard guard_; \
		if (!callback_) \
			break; \
		if (one_->builtin) { \
			guard_nothing(&guard_, one_); \
			callback_(one_->profiler, ##__VA_ARGS__); \
			break; \
		} \
		if (!guard_enter(&guard_, one_, event_context_##event, \
				 event_flag_##event, #event)) \
			break; \
		/* Again: the handle was not pinned before. */ \
		callback_ = __atomic_load_n(&one_->event, __ATOMIC_ACQUIRE); \
		guard_call(&guard_, (void (*)(void))callback_, \
			   EVENT_ARGUMENTS(one_->profiler, ##__VA_ARGS__)); \
	} while (0)

/* Meanwhile the handle at the cursor may be freed and become a new handle at the head
 * of the list.  So the serials tell which handles the loop has passed. */
#define RAISE_TO(audience, event, ...) \
	do { \
		uint64_t passed_ = UINT64_MAX; \
		if (__atomic_load_n(&events_counts.event, __ATOMIC_RELAXED) == \
		    0) \
			break; \
		for (struct shim_profiler_handle *each_ = events_first(); \
		     each_; each_ = events_next(each_)) { \
			if (each_->serial >= passed_) \
				continue; \
			passed_ = each_->serial; \
			if ((audience) == AUDIENCE_ALL || \
			    each_->builtin == \
				    ((audience) == AUDIENCE_BUILTIN)) \
				RAISE_ONE(each_, event, ##__VA_ARGS__); \
		} \
	} while (0)

#define RAISE(event, ...) RAISE_TO(AUDIENCE_ALL, event, ##__VA_ARGS__)

/* Raises the event if one profiler of shim's own gets it, and no other; else false. */
#define RAISE_SOLE(event, ...) \
	({ \
		const struct shim_profiler_handle *sole_ = __atomic_load_n( \
			&events_sole.event, __ATOMIC_ACQUIRE); \
		shim_##event##_callback callback_ = \
			sole_ ? __atomic_load_n(&sole_->event, \
						__ATOMIC_RELAXED) : \
				NULL; \
		if (callback_) \
			callback_(sole_->profiler, ##__VA_ARGS__); \
		callback_ != NULL; \
	})

#define SHIM_DEFINE_EVENT(name, context, flag, parameters) \
	static const enum event_context event_context_##name \
		__attribute__((unused)) = EVENT_##context; \
	static const uint32_t event_flag_##name \
		__attribute__((unused)) = EVENT_FLAG_##flag;
#include <shim/events.def>
#undef SHIM_DEFINE_EVENT

#endif
