/*
 * Threads of shim and of modules.  libc's pthread_create creates them, because modules
 * call libc on them.  Nearly all signals are blocked (OWN_SIGNALS).
 */
#include "runtime/runtime_threads.h"

#include "arch.h"
#include "os/lookup.h"
#include "os/sys.h"
#include "runtime/contract.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

#include <shim/banned.h>

struct start {
	void (*call)(void *argument);
	void *argument;
	struct module *module;
	const char *name;
	uint32_t runs; /* 1: the thread runs; 2: it has no record and ends */
};

/*
 * All signals are blocked except three.  libc sends 32 (cancel) and 33 (setuid on
 * every thread) to its threads: with 33 blocked, the program's setuid would never
 * return.  SIGTRAP stays open because these threads may run code with traps, also in
 * the loader.
 */
#define OWN_SIGNALS (~(3ull << 31 | 1ull << (SIGTRAP - 1)))

void runtime_thread_ends(struct thread *self)
{
	struct module *module = __atomic_exchange_n(&self->module, NULL,
						    __ATOMIC_ACQ_REL);

	if (module)
		NOTIFY(module_thread_ended);
}

static void *run_thread(void *argument)
{
	struct start *start = argument;
	void (*call)(void *) = start->call;
	struct thread *self;

	sys_set_signals(OWN_SIGNALS);
	argument = start->argument;
	if (start->name)
		sys_name_thread(start->name);
	self = thread_get_own();
	if (self)
		self->module = start->module;
	__atomic_store_n(&start->runs, self ? 1 : 2, __ATOMIC_RELEASE);
	sys_wake(&start->runs);
	/* Without a record, the thread could not prevent the unmapping of its module. */
	if (!self)
		return NULL;
	if (arch_call_guarded((void (*)(void))call, (uintptr_t)argument, 0, 0,
			      0, 0))
		events_thread_threw(self->module);
	/* For a watched thread, edge/thread.c calls it after the thread's destructors,
	 * which may be code of the module. */
	if (!self->is_watched)
		runtime_thread_ends(self);
	return NULL;
}

static int create_thread(struct start *start, size_t stack_size)
{
	typedef int (*create_function)(pthread_t *, const pthread_attr_t *,
				       void *(*)(void *), void *);
	create_function real = (create_function)lookup_real("pthread_create");
	pthread_attr_t attributes;
	pthread_t thread;
	uint64_t signals;
	int r;

	if (!real || pthread_attr_init(&attributes) != 0)
		return -ENOSYS;
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	if (stack_size != 0)
		pthread_attr_setstacksize(&attributes, stack_size);
	/* The thread inherits this mask: it must take no signal before it has set its
	 * own mask. */
	r = sys_block_signals(&signals);
	if (r == 0) {
		r = -real(&thread, &attributes, run_thread, start);
		sys_restore_signals(signals);
		NOTIFY(runtime_thread_created);
	}
	pthread_attr_destroy(&attributes);
	return r;
}

int runtime_thread_start(void (*call)(void *argument), void *argument,
			 size_t stack_size, struct module *module,
			 const char *name)
{
	struct start start = { call, argument, module, name, 0 };
	int r = create_thread(&start, stack_size);

	if (r < 0)
		return r;
	while (__atomic_load_n(&start.runs, __ATOMIC_ACQUIRE) == 0)
		sys_wait(&start.runs, 0, 0);
	return start.runs == 1 ? 0 : -ENOMEM;
}

struct search {
	const struct module *module;
	int pid;
};

/* Searches for the threads of a module.  A count would become wrong, because threads end in
 * many ways and a forked child has none of them. */
static bool is_not_of(struct thread *thread, void *argument)
{
	const struct search *search = argument;

	return !(thread->state & THREAD_OWN) ||
	       __atomic_load_n(&thread->module, __ATOMIC_ACQUIRE) !=
		       search->module ||
	       !sys_is_alive(search->pid, (int)thread->tid);
}

bool runtime_threads_has(const struct module *module)
{
	struct search search = { module, sys_getpid() };

	return !thread_each(is_not_of, &search);
}

static struct module *calling_module(void)
{
	const struct thread *self = thread_current;

	if (!self)
		return NULL;
	if (self->state & THREAD_INIT)
		return self->module;
	/* A guard also counts on threads of shim: one of them raises attach_complete. */
	if (self->guard)
		return self->guard->handle->module;
	if (frame_answers(self))
		return frame_get_handle(self)->module;
	return self->state & THREAD_OWN ? self->module : NULL;
}

enum shim_result shim_thread_create(void (*call)(void *argument),
				    void *argument)
{
	ENTRY_MAY_BLOCK();
	if (!call)
		return SHIM_E_INVALIDARG;
	return runtime_thread_start(call, argument, 0, calling_module(), NULL) <
			       0 ?
		       SHIM_E_OUTOFMEMORY :
		       SHIM_OK;
}
