/*
 * The profilers there are, and how an event reaches them.
 *
 * Handles are in a list, newest first, which readers walk without a lock.  A
 * handle's memory is never unmapped and is used again only when nobody walks
 * the list; who calls a profiler's code pins its handle, by a plain counter of
 * its own thread, and who wants it gone waits for these counters (thread_wait).
 */
#ifndef SHIM_EVENTS_H
#define SHIM_EVENTS_H

#include "runtime/subscribe.h"
#include "runtime/thread.h"

#include <shim/coverage.h>
#include <shim/hooks.h>

struct module;
struct plan_call;

enum handle_status {	/* row P-59 */
	HANDLE_NONE,
	HANDLE_DETACHING,
	HANDLE_ACTIVE,
};

enum handle_tells {
	HANDLE_TELLS_ARGUMENTS = 1,	/* ... and not the frame */
	HANDLE_TELLS_RESULT = 2,
	HANDLE_TELLS_ENTER_FRAME = 4,	/* ... and nothing else */
	HANDLE_TELLS_LEAVE_FRAME = 8,
};

struct shim_profiler_handle {
	struct shim_profiler *profiler;
	struct shim_profiler_handle *next;
	uint64_t serial;	/* newer ones have larger */
	unsigned number;	/* of its pins */
	uint32_t status;
	uint8_t tells;		/* of enum handle_tells: what its slow hooks are
				   told, while it is active */
	bool builtin;		/* ours: never leaves, so is never pinned */
	bool may_go;		/* came while the program ran */
	bool waits;		/* its module's init has not returned */
	bool broken;		/* threw, and gets nothing any more */
	bool raw_leaves;	/* its leave hook is called while unwinding, too */
	struct module *module;
	uint64_t images_until;	/* it is to be told of those that came by then */
	bool knows_main;	/* it was told that main's thread has started */
	uint32_t mask, mask_high;

	/* ELT; one kind at a time (elt.c) */
	shim_function_hook fast[3];
	shim_frame_hook frame[2];
	shim_deferred_hook asking;		/* of fast ones, or NULL */
	shim_function_hook restarted[2];	/* fast, after calls were off */
	shim_function_hook_with_info slow[3];
	void (*elt2[3])(void);
	shim_function_hook1 elt1[3];

	shim_function_id_mapper mapper;
	shim_function_id_mapper2 mapper2;
	void *mapper_data;
	shim_call_instrumentation_filter_callback filter;
	bool samples;		/* has enabled sampling */
	shim_coverage_filter_callback coverage_filter;
	int mapper_slot, filter_slot;	/* of dispatch/filter_cache.c, or -1 */

	shim_cleanup_callback cleanup;
#define SHIM_DEFINE_EVENT(name, context, flag, parameters)                     \
	shim_##name##_callback name;
#include <shim/events.def>
#undef SHIM_DEFINE_EVENT
};

/* How many handles have a callback for it: 0 is a load and a branch. */
struct events_counts {
#define SHIM_DEFINE_EVENT(name, context, flag, parameters) uint32_t name;
#include <shim/events.def>
#undef SHIM_DEFINE_EVENT
};

extern struct events_counts events_counts
	__attribute__((visibility("hidden")));

bool handle_is_valid(const struct shim_profiler_handle *handle);

static inline uint32_t handle_get_status(const struct shim_profiler_handle *handle)
{
	return __atomic_load_n(&handle->status, __ATOMIC_ACQUIRE);
}

/* After its mask or its hooks have changed. */
void handle_set_tells(struct shim_profiler_handle *handle);

/* The state a callback runs in; the words of events.def. */
enum event_context { EVENT_THREAD, EVENT_QUIET, EVENT_SIGNAL };

#define EVENT_FLAG_ALWAYS	   0u
#define EVENT_FLAG_APPDOMAIN_LOADS SHIM_MONITOR_APPDOMAIN_LOADS
#define EVENT_FLAG_MODULE_LOADS	   SHIM_MONITOR_MODULE_LOADS
#define EVENT_FLAG_THREADS	   SHIM_MONITOR_THREADS
#define EVENT_FLAG_ENTERLEAVE	   SHIM_MONITOR_ENTERLEAVE
#define EVENT_FLAG_EXCEPTIONS	   SHIM_MONITOR_EXCEPTIONS
#define EVENT_FLAG_OBJECT_ALLOCATED SHIM_MONITOR_OBJECT_ALLOCATED

/* A profiler was made before main; it is ready for what came before it. */
TOPIC(profiler_came, struct shim_profiler_handle *handle);
TOPIC(profiler_catches_up, struct shim_profiler_handle *handle);
/* Something has changed that hooks are called by; the state lock is not held. */
TOPIC(hooks_changed, void);
/* The profiler is not in the list any more; state lock held. */
TOPIC(profiler_left, struct shim_profiler_handle *handle);
/* Whether no thread is in a hook: *@is_out turns false if one still was after
 * @timeout_ms. */
TOPIC(hooks_awaited, uint32_t timeout_ms, bool *is_out);
/* Nothing of it is called any more: what it had is free. */
TOPIC(profiler_gone, struct shim_profiler_handle *handle);
/* At the end of the process: hooks of modules are not called any more.  State lock
 * held. */
TOPIC(modules_finished, void);
/* A profiler may take snapshots from now on. */
TOPIC(snapshots_wanted, void);
/* @self is going on at @sp: what it is in below that will not return. */
TOPIC(stack_leaving, struct thread *self, uintptr_t sp);
/* @self goes on at @sp: what it was in below that does not return. */
TOPIC(stack_left, struct thread *self, uintptr_t sp);

/* What is on the stack of a thread around a call into a profiler. */
struct guard {
	struct guard *outer;
	uint16_t pins;		/* the thread's of the handle, before */
	int error;		/* errno, before */
	struct shim_profiler_handle *handle;
	struct thread *thread;	/* NULL: nothing of it was noted */
	bool is_shared;		/* because another task uses its record, too */
	enum event_context kind;
	uintptr_t context;	/* what its callback was told of ... */
	const struct plan_call *call;	/* ... this call; 0: nothing */
	const char *name;	/* of the event, for the log */
	uint32_t state;		/* the thread's, before */
	const struct arch_frame *frame;	/* the slow hook it came in, or NULL */
};

/* Who gets an event. */
enum audience { AUDIENCE_ALL, AUDIENCE_BUILTIN, AUDIENCE_MODULES };

/* shim_profiler_create at any time, for what is part of the library; NULL if
 * there is no room. */
struct shim_profiler_handle *handle_create(struct shim_profiler *profiler);

/* Before main, on its thread: tells @handle, which is ready for events, what came
 * before it was. */
void events_catch_up(struct shim_profiler_handle *handle);

/* Profilers that are made from now on are part of the library, or: no longer. */
void events_start_builtins(bool begins);

/* Undoes shim_profiler_create: nothing of @handle is called from now on, but
 * some thread may still be in it.  False if somebody else does so already. */
bool handle_retire(struct shim_profiler_handle *handle);
/* Whether no thread is in a retired handle's code; waits up to @timeout_ms. */
bool handle_wait(struct shim_profiler_handle *handle, uint32_t timeout_ms);
/* Calls its cleanup callback and gives its memory back. */
void handle_free(struct shim_profiler_handle *handle);
/* Whether the calling thread is in a callback or slow hook of @handle. */
bool handle_is_current(const struct shim_profiler_handle *handle);

/* At the end of the process: no more events; then everybody's cleanup. */
void events_finish(void);

struct shim_profiler_handle *events_first(void);
struct shim_profiler_handle *events_next(struct shim_profiler_handle *handle);

/* Pins @handle and puts @guard up; false: do not call it. */
bool guard_enter(struct guard *guard, struct shim_profiler_handle *handle,
		 enum event_context context, uint32_t flag, const char *name);
/* The same for the last calls of a profiler that is leaving or switched off. */
void guard_enter_last(struct guard *guard, struct shim_profiler_handle *handle,
		      const char *name);
void guard_leave(struct guard *guard);
/* An exception came out of what was called in it. */
void guard_threw(struct guard *guard);

/* The calling thread goes on at @sp: callbacks below it will not return. */
void guard_jumped(uintptr_t sp);
/* The same when it was unwound, which is the thread's end. */
void guard_unwound(uintptr_t sp);

/* Runs callback(a) where there is room for it; a C++ exception ends there and
 * switches the profiler off. */
void guard_run(struct guard *guard, void (*callback)(void), uintptr_t a);

/* The same of callback(a, b, c, d, e), and leaves its guard. */
void guard_call(struct guard *guard, void (*callback)(void), uintptr_t a,
		uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e);

/* Whether a profiler's code has enough of the stack that the thread runs on. */
bool events_has_room(struct thread *self);

/* Runs call(argument) on a stack at *@memory, which is made if there is none; without
 * memory, here. */
int events_call_on(char **memory, int (*call)(void *), void *argument);

/* Runs call(argument) on the stack for callbacks, or goes on there. */
int events_call_apart(struct thread *self, int (*call)(void *), void *argument);

/*
 * The same for what calls back the profiler that called us, here or apart: a walk.
 * An exception that comes out of it ends it, with SHIM_E_UNEXPECTED, and switches
 * that profiler off; @name is said in the log.
 */
int events_run(const char *name, int (*call)(void *), void *argument);
int events_run_apart(struct thread *self, const char *name,
		     int (*call)(void *), void *argument);

/* What a thread of @module's runs has thrown an exception. */
void events_thread_threw(const struct module *module);

#define EVENT_ARGUMENTS_(a, b, c, d, e, ...)                                   \
	(uintptr_t)(a), (uintptr_t)(b), (uintptr_t)(c), (uintptr_t)(d),        \
		(uintptr_t)(e)
#define EVENT_ARGUMENTS(...) EVENT_ARGUMENTS_(__VA_ARGS__, 0, 0, 0, 0, 0)

/*
 * RAISE(event, arguments...) calls everybody's callback, newest profiler first.
 * RAISE_TO(AUDIENCE_..., event, ...) those of some only; RAISE_ONE(handle, ...)
 * that one's.  The arguments are not looked at when nobody asked; they may use
 * the guard of the callback, which is called guard_.
 */
#define RAISE_ONE(target, event, ...)                                          \
	do {                                                                   \
		struct shim_profiler_handle *one_ = (target);                           \
		shim_##event##_callback callback_ =                            \
			__atomic_load_n(&one_->event, __ATOMIC_RELAXED);       \
		struct guard guard_;                                           \
		if (!callback_ ||                                              \
		    !guard_enter(&guard_, one_, event_context_##event,         \
				 event_flag_##event, #event))                  \
			break;                                                 \
		/* Once more: the handle was not pinned then. */               \
		callback_ = __atomic_load_n(&one_->event, __ATOMIC_ACQUIRE);   \
		guard_call(&guard_, (void (*)(void))callback_,                 \
			   EVENT_ARGUMENTS(one_->profiler, ##__VA_ARGS__));    \
	} while (0)

/* A handle that went while we stood at it may be in the list again, as a new
 * one further up: what has been passed is known by its serial. */
#define RAISE_TO(audience, event, ...)                                         \
	do {                                                                   \
		uint64_t passed_ = UINT64_MAX;                                 \
		if (__atomic_load_n(&events_counts.event, __ATOMIC_RELAXED) == \
		    0)                                                         \
			break;                                                 \
		for (struct shim_profiler_handle *each_ = events_first(); each_;        \
		     each_ = events_next(each_)) {                             \
			if (each_->serial >= passed_)                          \
				continue;                                      \
			passed_ = each_->serial;                               \
			if ((audience) == AUDIENCE_ALL ||                      \
			    each_->builtin == ((audience) == AUDIENCE_BUILTIN)) \
				RAISE_ONE(each_, event, ##__VA_ARGS__);        \
		}                                                              \
	} while (0)

#define RAISE(event, ...) RAISE_TO(AUDIENCE_ALL, event, ##__VA_ARGS__)

#define SHIM_DEFINE_EVENT(name, context, flag, parameters)                     \
	static const enum event_context event_context_##name                   \
		__attribute__((unused)) = EVENT_##context;                     \
	static const uint32_t event_flag_##name __attribute__((unused)) =      \
		EVENT_FLAG_##flag;
#include <shim/events.def>
#undef SHIM_DEFINE_EVENT

#endif
