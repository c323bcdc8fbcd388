/*
 * Wrappers for threads, and the events of their life.  A thread begins in a stub of
 * shim (arch/.../edge.S).  The stub jumps to the program's function; or calls it, if a
 * profiler wants the event thread_stopping.  For shim a thread ends in the last round
 * of its destructors.
 *
 * Threads that libc creates for itself, and threads created by raw system calls, get a
 * record at their first event, but shim raises none of the events below for them.
 */
#define _GNU_SOURCE
#include "edge/edge.h"

#include "arch.h"
#include "dispatch/frame_exits.h"
#include "inspect/helper.h"
#include "os/lookup.h"
#include "os/sys.h"
#include "runtime/events.h"
#include "runtime/hidden_signals.h"
#include "runtime/runtime_threads.h"
#include "runtime/state.h"
#include "sampling/sample.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <shim/record.h>
#include <threads.h>
#include <unwind.h>

#include <shim/banned.h>

#define HIDDEN __attribute__((visibility("hidden")))

/* --- the data that a new thread gets from its creator --- */

struct start {
	uint32_t is_claimed;
	void *(*call)(void *argument);
	void *argument;
	/* The stack, if the program has chosen it; 0 otherwise. */
	uintptr_t stack_low;
	size_t stack_size;
	/* the hidden signals that the creator blocks (runtime/hidden_signals.h) */
	uint64_t blocked;
};

/* The pool has an entry for each thread that was created and has not begun. */
struct pool {
	struct pool *next;
	struct start starts[64];
};

static struct pool first_pool;

static struct start *claim_from(struct pool *pool)
{
	for (unsigned i = 0; i < 64; i++) {
		struct start *start = &pool->starts[i];

		if (__atomic_load_n(&start->is_claimed, __ATOMIC_RELAXED) ==
			    0 &&
		    __atomic_exchange_n(&start->is_claimed, 1,
					__ATOMIC_ACQUIRE) == 0)
			return start;
	}
	return NULL;
}

static struct start *claim_start(void)
{
	struct pool *more, *next = NULL;
	struct start *start;

	for (struct pool *pool = &first_pool; pool;
	     pool = __atomic_load_n(&pool->next, __ATOMIC_ACQUIRE)) {
		start = claim_from(pool);
		if (start)
			return start;
	}
	more = shim_memory_map(sizeof(*more));
	if (!more)
		return NULL;
	more->starts[0].is_claimed = 1;
	do {
		next = __atomic_load_n(&first_pool.next, __ATOMIC_ACQUIRE);
		more->next = next;
	} while (!__atomic_compare_exchange_n(&first_pool.next, &next, more,
					      false, __ATOMIC_RELEASE,
					      __ATOMIC_RELAXED));
	return &more->starts[0];
}

static void release_start(struct start *start)
{
	__atomic_store_n(&start->is_claimed, 0, __ATOMIC_RELEASE);
}

/* --- the events of a thread, each once --- */

static pthread_t (*real_self)(void);

/* Whether @self is a thread of the program between its thread_started and its
 * thread_exited. */
static bool is_alive(const struct thread *self)
{
	return self && state_get() == STATE_RUNNING &&
	       (self->state & (THREAD_STARTED | THREAD_ENDED | THREAD_OWN)) ==
		       THREAD_STARTED;
}

static void set_started(struct thread *self)
{
	if (real_self)
		self->pthread = (uintptr_t)real_self();
	self->state |= THREAD_STARTED;
}

static void raise_started(uintptr_t stack_low)
{
	struct thread *self = thread_get();

	if (!self || (self->state & (THREAD_STARTED | THREAD_OWN)))
		return;
	self->least_stack_low = stack_low;
	set_started(self);
	RAISE(thread_started, self->id);
}

/* Each profiler gets thread_started of the main thread when the profiler is ready
 * (events_catch_up). */
void edge_thread_main(void)
{
	bool is_main = sys_gettid() == sys_getpid();
	struct thread *self;

	/* profrun may attach shim on any thread. */
	if (state_get() != STATE_RUNNING ||
	    (!is_main && !lookup_was_attached()))
		return;
	self = is_main ? thread_get() : NULL;
	if (self)
		set_started(self);
	for (struct shim_profiler_handle *h = events_first(); h;
	     h = events_next(h))
		if (!h->waits)
			events_catch_up(h);
}

static void raise_stopping(void)
{
	struct thread *self = thread_current;

	if (!is_alive(self) || (self->state & THREAD_STOPPING))
		return;
	self->state |= THREAD_STOPPING;
	RAISE(thread_stopping, self->id);
}

void edge_thread_unwinds(void)
{
	raise_stopping();
}

/* A thread that began before an attach, or between two of them, has no events, but its
 * record becomes free, too. */
static void raise_ended(void)
{
	struct thread *self = thread_current;
	bool is_told = is_alive(self);

	if (!self || state_get() != STATE_RUNNING ||
	    (self->state & (THREAD_ENDED | THREAD_OWN)))
		return;
	if (is_told)
		RAISE(thread_stopped, self->id);
	/* The state is set before the event, so that lists of threads lack this thread
	 * during the event. */
	__atomic_store_n(&self->state, self->state | THREAD_ENDED,
			 __ATOMIC_SEQ_CST);
	if (is_told)
		RAISE(thread_exited, self->id);
	sample_thread_gone(self);
}

/* --- the start: called by the stub in arch/.../edge.S --- */

struct begun {
	void *argument;
	uint64_t is_watched; /* the stub must see the function's return */
};

HIDDEN void *edge_thread_begins(struct start *start, struct begun *begun);
HIDDEN void edge_thread_returned(void);
HIDDEN void *edge_thread_start(void *start);

void *edge_thread_begins(struct start *start, struct begun *begun)
{
	void *(*call)(void *) = start->call;
	uintptr_t stack_low = start->stack_low;
	uint64_t blocked = start->blocked;

	/* libc's control block is at the upper end of the stack. */
	if (stack_low == 0 && start->stack_size != 0)
		stack_low = arch_thread_pointer() - start->stack_size;
	begun->argument = start->argument;
	release_start(start);
	helper_thread_begins();
	hidden_thread_begins(blocked);
	raise_started(stack_low);
	begun->is_watched = events_counts.thread_stopping > 0;
	return (void *)call;
}

void edge_thread_returned(void)
{
	raise_stopping();
}

/* The stub's personality routine.  When the unwinder calls it, all frames of the
 * program have ended. */
HIDDEN _Unwind_Reason_Code edge_thread_personality(
	int version, _Unwind_Action actions, _Unwind_Exception_Class class,
	struct _Unwind_Exception *exception, struct _Unwind_Context *context);

_Unwind_Reason_Code edge_thread_personality(int version, _Unwind_Action actions,
					    _Unwind_Exception_Class class,
					    struct _Unwind_Exception *exception,
					    struct _Unwind_Context *context)
{
	(void)version;
	(void)class;
	(void)exception;
	(void)context;
	if ((actions & _UA_FORCE_UNWIND) && (actions & _UA_CLEANUP_PHASE)) {
		raise_stopping();
		frame_exits_ended();
	}
	return _URC_CONTINUE_UNWIND;
}

typedef int (*creator)(pthread_t *thread, const pthread_attr_t *attributes,
		       void *(*call)(void *), void *argument);
typedef int (*c11_creator)(thrd_t *thread, thrd_start_t call, void *argument);

static creator real_create;
static c11_creator real_c11_create;

static int (*real_getstack)(const pthread_attr_t *attributes, void **low,
			    size_t *size);

/* Stores the bounds of the stack.  Memory below the stack may belong to the same
 * mapping, so the mapping does not tell the lower end. */
static void store_stack(struct start *start, const pthread_attr_t *attributes)
{
	void *low = NULL;
	size_t size = 0;

	start->stack_low = start->stack_size = 0;
	if (!attributes || !real_getstack ||
	    real_getstack(attributes, &low, &size) != 0)
		return;
	start->stack_size = size;
	if ((uintptr_t)low + size != 0)
		start->stack_low = (uintptr_t)low;
}

static struct start *prepare_start(const pthread_attr_t *attributes,
				   void *(*call)(void *), void *argument)
{
	struct start *start;

	if (state_get() != STATE_RUNNING)
		return NULL;
	start = claim_start();
	if (start) {
		start->call = call;
		start->argument = argument;
		start->blocked = hidden_blocked();
		store_stack(start, attributes);
	}
	return start;
}

EDGE int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
			void *(*call)(void *), void *argument)
{
	struct start *start = prepare_start(attributes, call, argument);
	int result;

	if (!real_create)
		real_create = (creator)lookup_real("pthread_create");
	if (!real_create)
		return ENOSYS;
	if (!start)
		return real_create(thread, attributes, call, argument);
	result = real_create(thread, attributes, edge_thread_start, start);
	sample_signal_keep();
	if (result != 0)
		release_start(start);
	return result;
}

/* The function returns an int; the stub leaves it in the same register. */
EDGE int thrd_create(thrd_t *thread, thrd_start_t call, void *argument)
{
	struct start *start = prepare_start(
		NULL, (void *(*)(void *))(void (*)(void))call, argument);
	int result;

	if (!real_c11_create)
		real_c11_create = (c11_creator)lookup_real("thrd_create");
	if (!real_c11_create)
		return thrd_error;
	if (!start)
		return real_c11_create(thread, call, argument);
	result = real_c11_create(
		thread, (thrd_start_t)(void (*)(void))edge_thread_start, start);
	sample_signal_keep();
	if (result != thrd_success)
		release_start(start);
	return result;
}

/* --- the end --- */

static void *real_exit, *real_c11_exit;

/* Called by stubs.  They jump to the returned function, so that an unwinder finds no
 * frame of shim. */
HIDDEN void *edge_thread_exits(void);
HIDDEN void *edge_c11_thread_exits(void);

void *edge_thread_exits(void)
{
	if (!real_exit)
		real_exit = lookup_real("pthread_exit");
	raise_stopping();
	return real_exit;
}

void *edge_c11_thread_exits(void)
{
	if (!real_c11_exit)
		real_c11_exit = lookup_real("thrd_exit");
	raise_stopping();
	return real_c11_exit;
}

static pthread_key_t key;
static bool have_key;

/*
 * The destructor of shim's key.  It sets the key again in every round but the last, so
 * that in the last round the program's destructors have run.  (Destructors of keys
 * created after shim's key run after it in the last round.)
 */
static void destroy_key(void *value)
{
	uintptr_t round = (uintptr_t)value;

	if (round == 1) {
		raise_stopping();
		frame_exits_ended();
		RAISE(thread_ended);
	}
	if (round < PTHREAD_DESTRUCTOR_ITERATIONS &&
	    pthread_setspecific(key, (void *)(round + 1)) == 0)
		return;
	if (round > 1)
		RAISE_TO(AUDIENCE_BUILTIN, thread_ended);
	raise_ended();
	if (thread_current && (thread_current->state & THREAD_OWN))
		runtime_thread_ends(thread_current);
}

/* Allocates nothing: shim's key is one of the first 32, and libc stores their values in
 * the thread itself. */
void shim_thread_watch(void)
{
	if (have_key && !pthread_getspecific(key))
		pthread_setspecific(key, (void *)1);
	if (thread_current)
		thread_current->is_watched = have_key &&
					     pthread_getspecific(key);
}

static void watch_new(struct thread *self)
{
	(void)self;
	shim_thread_watch();
}

SUBSCRIBE(thread_came, watch_new);

/* --- names --- */

#define NAME_SIZE 16

static int (*real_set_name)(pthread_t thread, const char *name);

/* Stores the name, cut to the kernel's length, and raises thread_name. */
static void store_name(struct thread *thread, const char *given)
{
	char copy[NAME_SIZE] = { 0 };

	for (unsigned i = 0; i < NAME_SIZE - 1 && given[i]; i++)
		copy[i] = given[i];
	for (unsigned i = 0; i < NAME_SIZE; i++)
		thread->name[i] = copy[i];
	if (is_alive(thread))
		RAISE(thread_name, thread->id, copy);
}

struct search {
	uintptr_t pthread;
	struct thread *found;
};

static bool find_by_pthread(struct thread *thread, void *argument)
{
	struct search *search = argument;

	if (thread->pthread != search->pthread || !is_alive(thread))
		return true;
	search->found = thread;
	return false;
}

EDGE int pthread_setname_np(pthread_t thread, const char *given)
{
	struct search search = { .pthread = (uintptr_t)thread };
	int result;

	if (!real_set_name)
		edge_thread_resolve();
	if (!real_set_name)
		return ENOSYS;
	result = real_set_name(thread, given);
	if (result == 0 && state_get() == STATE_RUNNING) {
		thread_each(find_by_pthread, &search);
		if (search.found)
			store_name(search.found, given);
	}
	return result;
}

void edge_thread_named(const char *given)
{
	if (thread_current)
		store_name(thread_current, given);
}

void edge_thread_resolve(void)
{
	static bool done;

	real_create = (creator)lookup_real("pthread_create");
	real_c11_create = (c11_creator)lookup_real("thrd_create");
	real_exit = lookup_real("pthread_exit");
	real_c11_exit = lookup_real("thrd_exit");
	real_getstack = (int (*)(const pthread_attr_t *, void **,
				 size_t *))lookup_real("pthread_attr_getstack");
	real_self = (pthread_t(*)(void))lookup_real("pthread_self");
	real_set_name = (int (*)(pthread_t, const char *))lookup_real(
		"pthread_setname_np");
	if (!done) {
		done = true;
		have_key = pthread_key_create(&key, destroy_key) == 0 &&
			   key < 32;
	}
}
