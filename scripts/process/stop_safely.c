/* Finds a thread at a safe place. */
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

static bool is_later(const struct others *others, uint64_t ns)
{
	return others->since && ns_of(CLOCK_MONOTONIC) - others->since > ns;
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
static bool stop_one(struct attach *attach, const struct attach_thread *list,
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

	priority_raise(&attach->priority);
	attach_compete(attach);
	for (;;) {
		uint32_t count;
		struct attach_thread *list = attach_list_threads(attach,
								 &count);

		if (!count || !attach_is_same_program(attach))
			attach_call_failed(attach, REMOTE_GONE);
		attach_read_mappings(attach);
		/* A thread that sleeps loses the least by a stop, and those that run
		 * need none. */
		is_stopped = stop_one(attach, list, count, 'S', &reason);
		attach_count_running(attach, list, count);
		if (!is_stopped) {
			attach_stop_running(attach, list, count);
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
	/* It may have ended while this process had no processor. */
	if (!attach_is_same_program(attach))
		attach_call_failed(attach, REMOTE_GONE);
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
	priority_restore(&attach->priority);
}
