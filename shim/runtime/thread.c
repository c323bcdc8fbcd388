/*
 * The records of threads, in chunks that are never unmapped.  So readers take no lock, and
 * an id with a generation tells whether a record still belongs to the same thread.  shim
 * reuses the record of a task that has ended.
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

/* The number of records that a new thread checks for a task that has ended, before it gets
 * a new record.  A check of all records would take quadratic time for many threads. */
#define CHECKED_MAX 64

__thread struct thread *thread_current;

static struct thread *chunks[CHUNKS_MAX];
static uint32_t chunk_count;
static uint64_t generations; /* the upper part of the last id */

static struct thread *record_at(uint32_t index)
{
	return &chunks[index / CHUNK][index % CHUNK];
}

static uint32_t record_count(void)
{
	return __atomic_load_n(&chunk_count, __ATOMIC_ACQUIRE) * CHUNK;
}

/* Finds the record of task @tid, a record whose task has ended, or a record that was never
 * used.  A record keeps its stacks, so a program whose threads come and go needs few. */
static struct thread *find_free(uint32_t tid, int pid, uint32_t *index)
{
	static uint32_t next;
	uint32_t used = 0;

	for (; used < record_count() && record_at(used)->id != 0; used++)
		if (record_at(used)->tid == tid) {
			*index = used;
			return record_at(used);
		}
	/* Tries first the threads that shim has seen ending: most other threads are
	 * alive. */
	for (uint32_t i = 0; i < used; i++) {
		*index = i;
		if ((record_at(i)->state & THREAD_ENDED) &&
		    !sys_is_alive(pid, (int)record_at(i)->tid))
			return record_at(i);
	}
	*index = used;
	if (used < record_count())
		return record_at(used);
	for (uint32_t n = 0; n < record_count() && n < CHECKED_MAX; n++) {
		*index = next++ % record_count();
		if (!sys_is_alive(pid, (int)record_at(*index)->tid))
			return record_at(*index);
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

struct new_record {
	uint32_t state; /* the initial state of the record */
	struct thread *thread;
};

static int make_record(void *argument)
{
	uint32_t tid = (uint32_t)sys_gettid(), index = 0;
	struct thread *thread = find_free(tid, sys_getpid(), &index);
	struct new_record *new_record = argument;

	if (!thread)
		thread = add_chunk(&index);
	if (!thread)
		return -1;
	ASSERT_LOCKED();
	SHIM_ASSERT(index / CHUNK < chunk_count && thread == record_at(index));
	NOTIFY(thread_reset, thread);
	/* A reader that finds a different id after its reads has read two threads. */
	__atomic_store_n(&thread->id, 0, __ATOMIC_SEQ_CST);
	thread->state = new_record->state;
	thread->tid = tid;
	thread->pthread = 0;
	thread->guard = NULL;
	thread->stack_low = thread->stack_high = 0;
	thread->callback_room_low = thread->callback_room_size = 0;
	thread->least_stack_low = 0;
	thread->is_hook_apart = false;
	thread->own_stack_low = thread->own_stack_high = 0;
	thread->own_stack_tries = 0;
	thread->sample_context = NULL;
	thread->sample_debt_ns = 0;
	thread->images_ns = 0;
	thread->sample_weight = 0;
	thread->rests &= ~1u;
	thread->ticket = 0;
	thread->is_signalled = thread->is_watched = false;
	thread->on_callback_stack = false;
	thread->frame = NULL;
	thread->hook_depth = 0;
	thread->module = NULL;
	thread->dispatching = 0;
	thread->pending_answer = NULL;
	for (unsigned i = 0; i < SHIM_PROFILERS_MAX; i++) {
		thread->pins[i] = 0;
		/* A store would allocate a page that is not in use yet. */
		if (thread->data[i])
			thread->data[i] = NULL;
	}
	sys_thread_name(thread->name);
	__atomic_store_n(&thread->id, ++generations << INDEX_BITS | index,
			 __ATOMIC_RELEASE);
	new_record->thread = thread;
	return 0;
}

static struct thread *get_with_state(uint32_t state)
{
	struct new_record new_record = { .state = state };
	struct thread *thread;

	if (state_call_locked(make_record, &new_record) < 0)
		return NULL;
	/* A signal handler may have made the record while this thread waited for the
	 * lock.  find_free returns the same record, because the task is the same. */
	thread = new_record.thread;
	thread->error = &errno;
	thread_current = thread;
	NOTIFY(thread_came, thread);
	return thread;
}

struct thread *thread_get(void)
{
	struct thread *thread = thread_current;

	return thread ? thread : get_with_state(0);
}

struct thread *thread_get_own(void)
{
	return get_with_state(THREAD_OWN);
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

	*has_been = generation != 0 && generation <= generations &&
		    index < record_count();
	if (!*has_been || record_at(index)->id != id)
		return NULL;
	return record_at(index);
}

bool thread_each(bool (*each)(struct thread *thread, void *argument),
		 void *argument)
{
	for (uint32_t i = 0; i < record_count(); i++)
		if (__atomic_load_n(&record_at(i)->id, __ATOMIC_ACQUIRE) != 0 &&
		    !each(record_at(i), argument))
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
	for (uint32_t i = 0; i < record_count(); i++)
		if (record_at(i) != thread_current)
			record_at(i)->id = 0;
	for (uint32_t i = 0; i < record_count(); i++)
		record_at(i)->has_timer = record_at(i)->has_fine_timer = false;
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
		wait->waited_ms += sys_pause_ms();
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
