/*
 * Finds a thread at a safe place.
 *
 * It needs a processor for the calls, and shares it with the others that run.  If these are
 * very many, or if a call takes long, all of them are stopped.  One of
 * them may hold a lock that a call needs.  So if the thread sleeps in a call, those go on
 * that are in code with such locks; if that does not help, all.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/messages.h"
#include "base/seconds.h"
#include "process/steps.h"

#define SEARCH_S  5	    /* for a thread at a safe place */
#define ROUND_NS  2000000   /* between two searches */
#define SEARCH_NS 200000000 /* of which all are stopped in one search */
/* The thread sleeps in a call: the time after which some of the others go on, or all. */
#define SLEEP_SOME_NS 200000
#define SLEEP_ALL_NS  300000000
#define COMPETE_NS    2000000 /* they are stopped, or again, if it runs so long */
#define MANY	      16 /* threads for a processor: each call would take long */
/* For so long they may be stopped: on a busy machine they would not be what it waits for, or
 * one of them may have a spin lock that it wants. */
#define STOPPED_NS	  10000000
#define STOPPED_THREAD_NS 300000 /* more, for each */

/* A thread and its state when the search began, of /proc. */
struct candidate {
	pid_t tid;
	char state;
};

static struct candidate *list_threads(const struct attach *attach,
				      uint32_t *count)
{
	pid_t *threads = target_threads(&attach->target, count);
	struct candidate *list = allocate(*count + 1, sizeof(*list));
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

static bool is_later(const struct others *others, uint64_t ns)
{
	return others->since && ns_of(CLOCK_MONOTONIC) - others->since > ns;
}

/* Stops the threads that run, if they are at least @least for each processor. */
static void stop_running(struct attach *attach, const struct candidate *list,
			 uint32_t count, uint32_t least)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	uint32_t i, running = 0;

	for (i = 0; i < count; i++)
		running += list[i].state == 'R';
	if (running < least * (uint32_t)processors)
		return;
	for (i = 0; i < count; i++)
		if (list[i].state == 'R' &&
		    !(attach->remote.is_stopped &&
		      list[i].tid == attach->remote.tid))
			others_add(&attach->others, list[i].tid);
	others_stop(&attach->others);
	if (attach->others.count > attach->stopped_threads)
		attach->stopped_threads = attach->others.count;
}

static void stop_others(struct attach *attach)
{
	struct candidate *list;
	uint32_t count;

	list = list_threads(attach, &count);
	stop_running(attach, list, count, 1);
	free(list);
}

/* Code of the allocator, of the dynamic linker, or of shim. */
static bool may_hold_lock(uint64_t instruction, void *argument)
{
	struct attach *attach = argument;
	const struct module *module = space_module(&attach->memory.space,
						   instruction);

	return module && (module->start == attach->libc.start ||
			  !strncmp(module->name, "ld-", 3) ||
			  !strncmp(module->name, "libshim", 7));
}

/* The thread sleeps: one of the others may have what it waits for. */
static void let_others_go(struct attach *attach)
{
	uint64_t now = ns_of(CLOCK_MONOTONIC);

	if (!attach->sleeps_since)
		attach->sleeps_since = now;
	if (now - attach->sleeps_since > SLEEP_ALL_NS)
		others_release(&attach->others, attach->target.pid);
	else if (now - attach->sleeps_since > SLEEP_SOME_NS)
		others_release_some(&attach->others, attach->target.pid,
				    may_hold_lock, attach);
	attach->runs_since = now;
}

/* Called while the thread runs. */
static void look(void *argument)
{
	struct attach *attach = argument;
	char name[64], state;

	if (!target_thread(&attach->target, attach->remote.tid, name, &state))
		return;
	attach->has_shared |= others_stopped_ns(&attach->others) >
			      STOPPED_NS + STOPPED_THREAD_NS *
						   attach->stopped_threads;
	if (attach->has_shared) {
		others_release(&attach->others, attach->target.pid);
		return;
	}
	if (state == 'S') {
		let_others_go(attach);
		return;
	}
	/* In the kernel, for example until all processors have passed a barrier: it leaves
	 * the processors to the others. */
	if (state == 'D' && attach->runs_since)
		attach->runs_since = ns_of(CLOCK_MONOTONIC);
	attach->sleeps_since = 0;
	if (attach->runs_since &&
	    ns_of(CLOCK_MONOTONIC) - attach->runs_since > COMPETE_NS) {
		attach->runs_since = 0;
		stop_others(attach);
	}
}

void attach_share(struct attach *attach)
{
	attach->runs_since = ns_of(CLOCK_MONOTONIC);
	attach->sleeps_since = 0;
}

/* Stops the thread, unless it is already. */
static enum remote_result stop_thread(struct attach *attach, pid_t tid)
{
	if (!others_have(&attach->others, tid))
		return remote_stop(&attach->remote, tid);
	if (!others_await(&attach->others, tid))
		return REMOTE_STUCK;
	return remote_take(&attach->remote, tid) ? REMOTE_DONE : REMOTE_GONE;
}

/* Stops a thread of the list in state @state, if it is at a safe place. */
static bool stop_if_safe(struct attach *attach, pid_t tid, const char **reason)
{
	enum remote_result result = stop_thread(attach, tid);
	const char *unsafe;
	char name[64], state;

	if (result == REMOTE_REFUSED) {
		int error = errno;

		/* The kernel also refuses threads that have ended. */
		if (target_thread(&attach->target, tid, name, &state))
			target_refused(&attach->target, error);
	}
	if (result != REMOTE_DONE)
		return false;
	/* Until now it slept, or ran. */
	attach->since = ns_of(CLOCK_MONOTONIC);
	unsafe = safe_reason(&attach->safe, &attach->remote);
	if (!unsafe) {
		others_remove(&attach->others, tid);
		return true;
	}
	*reason = unsafe;
	if (others_have(&attach->others, tid))
		remote_give_back(&attach->remote);
	else
		remote_release(&attach->remote);
	return false;
}

/* Stops one of the threads in @state that is at a safe place.  If none is, stores a
 * reason. */
static bool stop_one(struct attach *attach, const struct candidate *list,
		     uint32_t count, char state, const char **reason)
{
	uint32_t i;

	for (i = 0; i < count && !is_later(&attach->others, SEARCH_NS); i++) {
		if (list[i].state == 'D')
			*reason = "waiting in the kernel";
		if (list[i].state != state)
			continue;
		if (stop_if_safe(attach, list[i].tid, reason))
			return true;
	}
	return false;
}

void attach_stop(struct attach *attach)
{
	static const struct timespec pause = { 0, ROUND_NS };
	uint64_t until = ns_of(CLOCK_MONOTONIC) + SEARCH_S * 1000000000ull;
	const char *reason = "there";
	bool is_stopped;

	attach->remote.look = look;
	attach->remote.argument = attach;
	attach->has_shared = false;
	for (;;) {
		uint32_t count;
		struct candidate *list = list_threads(attach, &count);

		if (!count || !attach_is_same_program(attach))
			attach_call_failed(attach, REMOTE_GONE);
		attach_read_mappings(attach);
		/* A thread that sleeps loses the least by a stop, and those that run
		 * need none. */
		is_stopped = stop_one(attach, list, count, 'S', &reason);
		if (is_stopped) {
			stop_running(attach, list, count, MANY);
		} else {
			stop_running(attach, list, count, 1);
			is_stopped = stop_one(attach, list, count, 'R',
					      &reason);
		}
		free(list);
		if (is_stopped)
			return;
		others_finish(&attach->others, attach->target.pid);
		if (ns_of(CLOCK_MONOTONIC) >= until)
			break;
		nanosleep(&pause, NULL);
	}
	die("process %d (%s): in %d s, no thread came to a place where shim can "
	    "be loaded: the last one was %s (try again)",
	    (int)attach->target.pid, attach->target.name, SEARCH_S, reason);
}

void attach_release(struct attach *attach)
{
	others_release(&attach->others, attach->target.pid);
	remote_release(&attach->remote);
	others_finish(&attach->queue, attach->target.pid);
	attach->stopped_ns = ns_of(CLOCK_MONOTONIC) - attach->since;
	others_finish(&attach->others, attach->target.pid);
}
