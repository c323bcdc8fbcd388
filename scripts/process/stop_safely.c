/*
 * Finds a thread at a safe place.
 *
 * A thread that runs needs a processor to make calls, and shares it with the others that
 * run.  If these are as many as there are processors, all of them are stopped first.  One of
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
#define AGAIN_NS      5000000 /* after it, they are stopped again */
#define SPIN_NS	      300000000 /* of processor time: it may wait for a spin lock */

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

/* Stops the threads that run, unless there is a processor for each and one more. */
static void stop_running(struct attach *attach, const struct candidate *list,
			 uint32_t count)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	uint32_t i, running = 0;

	for (i = 0; i < count; i++)
		running += list[i].state == 'R';
	if ((long)running < processors)
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

void attach_stop_others(struct attach *attach)
{
	struct candidate *list;
	uint32_t count;

	list = list_threads(attach, &count);
	stop_running(attach, list, count);
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

/* The processor time that the thread has had. */
static uint64_t time_of(const struct attach *attach)
{
	unsigned long long ns = 0;
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat",
		 (int)attach->target.pid, (int)attach->remote.tid);
	file = fopen(path, "re");
	if (file && fscanf(file, "%llu", &ns) != 1)
		ns = 0;
	if (file)
		fclose(file);
	return ns;
}

/* The thread sleeps: one of the others may have what it waits for. */
static void let_others_go(struct attach *attach)
{
	uint64_t now = ns_of(CLOCK_MONOTONIC);

	if (!attach->sleeps_since) {
		attach->sleeps_since = now;
	} else if (now - attach->sleeps_since > SLEEP_ALL_NS) {
		others_release(&attach->others, attach->target.pid);
		attach->freed_at = now;
	} else if (now - attach->sleeps_since > SLEEP_SOME_NS &&
		   attach->freed_at < attach->sleeps_since) {
		others_release_some(&attach->others, attach->target.pid,
				    may_hold_lock, attach);
		attach->freed_at = now;
	}
}

/* Called while the thread runs. */
static void look(void *argument)
{
	struct attach *attach = argument;
	char name[64], state;

	if (attach->stopped_threads == 0 || attach->has_spun ||
	    !target_thread(&attach->target, attach->remote.tid, name, &state))
		return;
	if (state == 'S') {
		let_others_go(attach);
		return;
	}
	attach->sleeps_since = 0;
	if (attach->freed_at &&
	    ns_of(CLOCK_MONOTONIC) - attach->freed_at > AGAIN_NS) {
		attach->freed_at = 0;
		attach_stop_others(attach);
	}
	if (time_of(attach) - attach->time_before > SPIN_NS) {
		attach->has_spun = true;
		others_release(&attach->others, attach->target.pid);
	}
}

/* Stops the thread, unless it is already. */
static enum remote_result stop_thread(struct attach *attach, pid_t tid)
{
	if (!others_have(&attach->others, tid))
		return remote_stop(&attach->remote, tid);
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
	unsafe = safe_reason(&attach->safe, &attach->remote);
	if (!unsafe) {
		others_remove(&attach->others, tid);
		attach->time_before = time_of(attach);
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
		attach->since = ns_of(CLOCK_MONOTONIC);
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
	attach->sleeps_since = attach->freed_at = 0;
	attach->has_spun = false;
	for (;;) {
		uint32_t count;
		struct candidate *list = list_threads(attach, &count);

		if (!count || !attach_is_same_program(attach))
			attach_call_failed(attach, REMOTE_GONE);
		attach_read_mappings(attach);
		stop_running(attach, list, count);
		/* A thread that sleeps loses the least by a stop. */
		is_stopped = stop_one(attach, list, count, 'S', &reason) ||
			     stop_one(attach, list, count, 'R', &reason);
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
	remote_release(&attach->remote);
	attach->stopped_ns = ns_of(CLOCK_MONOTONIC) - attach->since;
	others_finish(&attach->others, attach->target.pid);
	if (attach->others.stopped_ns > attach->stopped_ns)
		attach->stopped_ns = attach->others.stopped_ns;
}
