/*
 * The threads that compete with the one that makes the calls: for processors, and for locks.
 *
 * It shares the processors with the others that run.  If a call takes long, these are
 * stopped.  One of them may hold a lock that a call needs.  So if the thread sleeps in a
 * call, those go on that are in code with such locks; if that does not help, all.
 *
 * Where very many run, there is a queue for each lock, which takes seconds.  So all are
 * stopped from the first, also those that sleep: then they leave the queues.  If the thread
 * sleeps, those go on for a moment that may hold the lock, and are stopped again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/memory.h"
#include "base/seconds.h"
#include "process/steps.h"
#include "process/stop_wait.h"

/* The thread sleeps in a call: the time after which some of the others go on, or all. */
#define SLEEP_SOME_NS 200000
#define SLEEP_ALL_NS  300000000
#define SLEEP_LONG_NS 5000000 /* very many threads compete for a lock */
#define COMPETE_NS    2000000 /* they are stopped, or again, if it runs so long */
/* Where very many run: the time of a thread that may hold a lock. */
#define TURN_NS 2000000ull
#define REST_NS 100000000 /* after they were stopped for long */
/* malloc's arenas but the first begin at a multiple of this size, with their locks. */
#define ARENA	   (64ull << 20)
#define ARENA_HEAD 4096
/* For so long they may be stopped: on a busy machine they would not be what it waits for, or
 * one of them may have a spin lock that it wants. */
#define STOPPED_NS	  10000000
#define STOPPED_THREAD_NS 300000 /* more, for each */

struct attach_thread *attach_list_threads(const struct attach *attach,
					  uint32_t *count)
{
	pid_t *threads = target_threads(&attach->target, count);
	struct attach_thread *list = allocate(*count + 1, sizeof(*list));
	uint32_t i;

	for (i = 0; i < *count; i++) {
		char name[64];

		list[i].tid = threads[i];
		if (!target_thread(&attach->target, threads[i], name,
				   &list[i].state))
			list[i].state = 'Z';
	}
	free(threads);
	return list;
}

static void note_stopped(struct attach *attach)
{
	if (attach->others.count > attach->stopped_threads)
		attach->stopped_threads = attach->others.count;
}

static bool is_caller(const struct attach *attach, pid_t tid)
{
	return attach->remote.is_stopped && tid == attach->remote.tid;
}

void attach_stop_running(struct attach *attach,
			 const struct attach_thread *list, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		if (list[i].state == 'R' && !is_caller(attach, list[i].tid))
			others_add(&attach->others, list[i].tid);
	others_stop(&attach->others);
	note_stopped(attach);
}

void attach_count_running(struct attach *attach,
			  const struct attach_thread *list, uint32_t count)
{
	uint32_t i, running = 0;

	for (i = 0; i < count; i++)
		running += list[i].state == 'R';
	attach->has_many = stop_are_more(count, 2 * STOP_MANY);
	/* At a look, most of those may sleep that come and go at a lock. */
	attach->is_crowded = stop_are_more(running, STOP_MANY) ||
			     (attach->has_many && stop_are_more(running, 1));
}

/* Stops all but the one that makes the calls. */
static void stop_all(struct attach *attach)
{
	uint32_t count, i;
	pid_t *threads = target_threads(&attach->target, &count);

	for (i = 0; threads && i < count; i++)
		if (!is_caller(attach, threads[i]))
			others_add(&attach->others, threads[i]);
	free(threads);
	others_stop(&attach->others);
	note_stopped(attach);
}

static void stop_others(struct attach *attach)
{
	struct attach_thread *list;
	uint32_t count;

	if (attach->is_crowded) {
		stop_all(attach);
		return;
	}
	list = attach_list_threads(attach, &count);
	attach_stop_running(attach, list, count);
	free(list);
}

uint64_t attach_awaited_futex(const struct attach *attach, pid_t tid)
{
	unsigned long long word = 0;
	char path[64];
	long number = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall",
		 (int)attach->target.pid, (int)tid);
	file = fopen(path, "re");
	if (file && fscanf(file, "%ld %llx", &number, &word) != 2)
		number = -1;
	if (file)
		fclose(file);
	return number == SYS_futex ? word : 0;
}

/* The thread that @lock names: a lock of shim, or the word of a thread's end; 0: none. */
static pid_t holder_of(const struct attach *attach, uint64_t lock)
{
	pid_t word;

	if (!lock || !remote_read(&attach->remote, lock, &word, sizeof(word)))
		return 0;
	if (word < 0)
		word = ~word; /* of shim, while others wait */
	/* Locks of libc are 0 to 2. */
	return word > 2 && others_have(&attach->others, word) ? word : 0;
}

/* What is wanted, and who may have it. */
struct wanted {
	struct attach *attach;
	pid_t holder;	  /* 0: unknown */
	bool is_awaiting; /* the holder waits for another one */
	unsigned turn; /* of those for this lock, from 1; 0: there are none */
};

static bool is_inner_module(const struct attach *attach,
			    const struct module *module)
{
	return module && (module->start == attach->libc.start ||
			  !strncmp(module->name, "ld-", 3) ||
			  !strncmp(module->name, "libshim", 7));
}

/* Whether a thread that waits at @futex may hold another lock of these modules. */
static bool is_inner_lock(struct attach *attach, uint64_t futex)
{
	return futex % ARENA < ARENA_HEAD ||
	       is_inner_module(attach,
			       space_module(&attach->memory.space, futex));
}

/* In code of the allocator, of the dynamic linker, or of shim, and in no queue; if that does
 * not help, also in a queue for another lock of these; at last, for any other lock. */
static bool may_hold_lock(pid_t tid, const struct user_regs_struct *now,
			  void *argument)
{
	const struct wanted *wanted = argument;
	struct attach *attach = wanted->attach;

	if (tid == wanted->holder)
		return true;
	if (wanted->holder && !wanted->is_awaiting)
		return false;
	if (now->orig_rax == SYS_futex &&
	    (now->rdi == attach->awaited || wanted->turn == 1 ||
	     (wanted->turn == 2 && !is_inner_lock(attach, now->rdi))))
		return false;
	return is_inner_module(attach,
			       space_module(&attach->memory.space, now->rip));
}

/* Whether the others were stopped for long enough: then they go on.  Very many are stopped
 * again after a rest: without that, the thread would wait in queues for seconds. */
static bool have_waited(struct attach *attach)
{
	uint64_t now = ns_of(CLOCK_MONOTONIC);
	uint64_t stopped = others_stopped_ns(&attach->others);

	if (attach->has_shared && attach->is_crowded &&
	    now > attach->rest_ends) {
		attach->has_shared = false;
		attach->stopped_before = stopped;
	}
	if (!attach->has_shared &&
	    stopped - attach->stopped_before >
		    STOPPED_NS + STOPPED_THREAD_NS * attach->stopped_threads) {
		attach->has_shared = true;
		attach->rest_ends = now + REST_NS;
	}
	if (attach->has_shared)
		others_release(&attach->others, attach->target.pid);
	return attach->has_shared;
}

bool attach_make_way(struct attach *attach, uint64_t lock)
{
	struct wanted wanted = { .attach = attach };
	uint64_t now = ns_of(CLOCK_MONOTONIC);
	bool is_new = lock != attach->awaited;

	if (have_waited(attach))
		return false;
	if (is_new)
		attach->turns = 0;
	if (attach->is_crowded && (is_new || now > attach->turn_ends)) {
		stop_all(attach);
		attach->turn_ends = ns_of(CLOCK_MONOTONIC) +
				    (TURN_NS << attach->turns++);
		is_new = true;
	}
	wanted.holder = holder_of(attach, lock);
	wanted.is_awaiting = wanted.holder &&
			     attach_awaited_futex(attach, wanted.holder);
	is_new |= wanted.holder != attach->holder;
	wanted.turn = attach->is_crowded ? attach->turns : 0;
	attach->awaited = lock;
	attach->holder = wanted.holder;
	others_release_some(&attach->others, attach->target.pid, is_new,
			    may_hold_lock, &wanted);
	return true;
}

/* The thread sleeps: one of the others may have what it waits for. */
static void let_others_go(struct attach *attach)
{
	uint64_t now = ns_of(CLOCK_MONOTONIC);

	if (!attach->sleeps_since)
		attach->sleeps_since = now;
	attach->runs_since = now;
	if (attach->has_many && now - attach->sleeps_since > SLEEP_LONG_NS)
		attach->is_crowded = true;
	if (now - attach->sleeps_since > SLEEP_ALL_NS)
		others_release(&attach->others, attach->target.pid);
	else if (now - attach->sleeps_since > SLEEP_SOME_NS)
		attach_make_way(attach, attach_awaited_futex(
						attach, attach->remote.tid));
}

/* Called while the thread runs. */
static void look(void *argument)
{
	struct attach *attach = argument;
	char name[64], state;
	bool had_slept;

	if (!target_thread(&attach->target, attach->remote.tid, name, &state))
		return;
	if (have_waited(attach))
		return;
	if (state == 'S') {
		let_others_go(attach);
		return;
	}
	/* In the kernel, for example until all processors have passed a barrier: it leaves
	 * the processors to the others. */
	if (state == 'D' && attach->runs_since)
		attach->runs_since = ns_of(CLOCK_MONOTONIC);
	had_slept = attach->sleeps_since != 0;
	attach->sleeps_since = 0;
	if ((attach->is_crowded && had_slept) ||
	    (attach->runs_since &&
	     ns_of(CLOCK_MONOTONIC) - attach->runs_since > COMPETE_NS)) {
		stop_others(attach);
		/* (Of very many, some were let go.) */
		attach->runs_since = attach->is_crowded ?
					     ns_of(CLOCK_MONOTONIC) :
					     0;
	}
}

void attach_compete(struct attach *attach)
{
	attach->remote.look = look;
	attach->remote.argument = attach;
	attach->has_shared = false;
	attach->stopped_before = 0;
}

void attach_share(struct attach *attach)
{
	if (attach->is_crowded && !have_waited(attach))
		stop_all(attach);
	attach->runs_since = ns_of(CLOCK_MONOTONIC);
	attach->sleeps_since = 0;
}
