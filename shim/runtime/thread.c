/*
 * Records of threads.  A record is never unmapped, so readers take no lock; it
 * is reused when its task is gone.
 */
#include "runtime/thread.h"

#include "os/sys.h"
#include "runtime/state.h"

#include <errno.h>
#include <shim/record.h>

#include <shim/banned.h>

#define CHUNK	   64
#define CHUNKS_MAX 1024
#define INDEX_BITS 16

/* How many records are checked for a task that has ended before a new thread gets a
 * new record.  Checking all would take quadratic time for many threads. */
#define ASKED_MAX 64

__thread struct thread *thread_current;

static struct thread *chunks[CHUNKS_MAX];
static uint32_t chunk_count;
static uint64_t made; /* the upper part of the last id */

static struct thread *at(uint32_t index)
{
	return &chunks[index / CHUNK][index % CHUNK];
}

static uint32_t count(void)
{
	return __atomic_load_n(&chunk_count, __ATOMIC_ACQUIRE) * CHUNK;
}

/* Finds a record that was never used or whose task is gone.  A task that has a record
 * keeps it. */
static struct thread *find_free(uint32_t tid, int pid, uint32_t *index)
{
	static uint32_t next;

	for (uint32_t i = 0; i < count(); i++) {
		struct thread *thread = at(i);

		*index = i;
		if (thread->id == 0 || thread->tid == tid)
			return thread;
	}
	/* First threads whose end was seen: the others are mostly alive. */
	for (uint32_t i = 0; i < count(); i++) {
		*index = i;
		if ((at(i)->state & THREAD_ENDED) &&
		    !sys_is_alive(pid, (int)at(i)->tid))
			return at(i);
	}
	for (uint32_t n = 0; n < count() && n < ASKED_MAX; n++) {
		*index = next++ % count();
		if (!sys_is_alive(pid, (int)at(*index)->tid))
			return at(*index);
	}
	return NULL;
}

static struct thread *add_chunk(uint32_t *index)
{
	void *memory;

	if (chunk_count == CHUNKS_MAX ||
	    sys_map(CHUNK * sizeof(struct thread), &memory) < 0)
		return NULL;
	*index = chunk_count * CHUNK;
	chunks[chunk_count] = memory;
	__atomic_store_n(&chunk_count, chunk_count + 1, __ATOMIC_RELEASE);
	return memory;
}

struct making {
	uint32_t state; /* the initial state of the record */
	struct thread *thread;
};

static int make(void *argument)
{
	uint32_t tid = (uint32_t)sys_gettid(), index = 0;
	struct thread *thread = find_free(tid, sys_getpid(), &index);
	struct making *making = argument;

	if (!thread)
		thread = add_chunk(&index);
	if (!thread)
		return -1;
	ASSERT_LOCKED();
	SHIM_ASSERT(index / CHUNK < chunk_count && thread == at(index));
	NOTIFY(thread_reset, thread);
	/* A reader that finds another id than before has read two threads. */
	__atomic_store_n(&thread->id, 0, __ATOMIC_SEQ_CST);
	thread->state = making->state;
	thread->tid = tid;
	thread->pthread = 0;
	thread->guard = NULL;
	thread->stack_low = thread->stack_high = 0;
	thread->roomy_low = thread->roomy_size = 0;
	thread->least_stack_low = 0;
	thread->is_hook_apart = false;
	thread->own_stack_low = thread->own_stack_high = 0;
	thread->own_stack_tries = 0;
	thread->sample_context = NULL;
	thread->sample_debt_ns = 0;
	thread->sample_weight = 0;
	thread->rests &= ~1u;
	thread->ticket = 0;
	thread->is_signalled = thread->is_watched = false;
	thread->on_callback_stack = false;
	thread->frame = NULL;
	thread->hook_depth = 0;
	thread->module = NULL;
	thread->dispatching = 0;
	thread->asking = NULL;
	for (unsigned i = 0; i < SHIM_PROFILERS_MAX; i++) {
		thread->pins[i] = 0;
		/* No store into pages that are not in use yet. */
		if (thread->data[i])
			thread->data[i] = NULL;
	}
	sys_thread_name(thread->name);
	__atomic_store_n(&thread->id, ++made << INDEX_BITS | index,
			 __ATOMIC_RELEASE);
	making->thread = thread;
	return 0;
}

static struct thread *get(uint32_t state)
{
	struct making making = { .state = state };
	struct thread *thread;

	if (state_slowly(make, &making) < 0)
		return NULL;
	/* A signal handler may have made the record while this thread waited
	 * for the lock: the task is the same, so the record is. */
	thread = making.thread;
	thread->error = &errno;
	thread_current = thread;
	NOTIFY(thread_came, thread);
	return thread;
}

struct thread *thread_get(void)
{
	struct thread *thread = thread_current;

	return thread ? thread : get(0);
}

struct thread *thread_get_own(void)
{
	return get(THREAD_OWN);
}

bool thread_ours_begins(void)
{
	struct thread *self = thread_get();
	bool before = self && (self->state & THREAD_OURS);

	if (self)
		self->state |= THREAD_OURS;
	return before;
}

void thread_ours_ends(bool before)
{
	if (thread_current && !before)
		thread_current->state &= ~(uint32_t)THREAD_OURS;
}

struct thread *thread_find(shim_thread id, bool *has_been)
{
	uint32_t index = id & ((1u << INDEX_BITS) - 1);
	uint64_t generation = id >> INDEX_BITS;

	*has_been = generation != 0 && generation <= made && index < count();
	if (!*has_been || at(index)->id != id)
		return NULL;
	return at(index);
}

bool thread_each(bool (*each)(struct thread *thread, void *argument),
		 void *argument)
{
	for (uint32_t i = 0; i < count(); i++)
		if (__atomic_load_n(&at(i)->id, __ATOMIC_ACQUIRE) != 0 &&
		    !each(at(i), argument))
			return false;
	return true;
}

static bool is_another(struct thread *thread, void *tid)
{
	return !(thread->state & THREAD_OWN) ||
	       thread->tid != *(const uint32_t *)tid;
}

bool thread_is_own(uint32_t tid)
{
	return !thread_each(is_another, &tid);
}

void thread_forked(void)
{
	for (uint32_t i = 0; i < count(); i++)
		if (at(i) != thread_current)
			at(i)->id = 0;
	for (uint32_t i = 0; i < count(); i++)
		at(i)->has_timer = at(i)->has_fine_timer = false;
	if (thread_current)
		thread_current->tid = (uint32_t)sys_gettid();
}

/* --- waiting for the others --- */

struct wait {
	uint32_t (*is_inside)(const struct thread *thread, unsigned number);
	unsigned number;
	uint32_t waited_ms;
	uint32_t timeout_ms;
	int pid;
};

/* A task that died inside counts as outside. */
static bool see_outside(struct thread *thread, void *argument)
{
	struct wait *wait = argument;
	uint32_t pauses = 0;

	if (thread == thread_current)
		return true;
	while (wait->is_inside(thread, wait->number) != 0) {
		if (!sys_is_alive(wait->pid, (int)thread->tid))
			return true;
		if (wait->waited_ms >= wait->timeout_ms)
			return false;
		if (++pauses < 20) {
			sys_yield();
			continue;
		}
		sys_sleep_ms(1);
		wait->waited_ms++;
	}
	return true;
}

bool thread_wait(uint32_t (*is_inside)(const struct thread *thread,
				       unsigned number),
		 unsigned number, uint32_t timeout_ms)
{
	struct wait wait = {
		.is_inside = is_inside,
		.number = number,
		.timeout_ms = timeout_ms,
		.pid = sys_getpid(),
	};

	sys_barrier();
	return thread_each(see_outside, &wait);
}
