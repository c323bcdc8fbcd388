/*
 * libc's lock of the functions that it calls at each fork.
 *
 * A fork holds it, and shim takes it to register its functions.  Where many threads fork all
 * the time, they queue for it, and a thread that joins the queue waits for a fork of
 * each of them.  So those that wait in the queue are stopped until the fork that holds the
 * lock has ended; then the lock is free.  Where very many threads run, all are stopped.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/messages.h"
#include "base/seconds.h"
#include "process/remote_symbols.h"
#include "process/steps.h"

#define LOOK_NS	 50000
#define QUEUE_NS 5000000 /* between two looks for threads that have joined it */

/* lock cmpxchg %edx, word(%rip) */
static const unsigned char take_lock[] = { 0xf0, 0x0f, 0xb1, 0x15 };
#define CODE_SIZE 96 /* of the function's beginning */

uint64_t attach_fork_lock(const struct attach *attach)
{
	unsigned char code[CODE_SIZE], *found;
	uint64_t at = remote_symbol(&attach->remote, attach->libc.start,
				    "__register_atfork");
	int32_t distance;

	if (!at || !remote_read(&attach->remote, at, code, sizeof(code)))
		return 0;
	found = memmem(code, sizeof(code) - sizeof(distance), take_lock,
		       sizeof(take_lock));
	if (!found)
		return 0;
	found += sizeof(take_lock);
	memcpy(&distance, found, sizeof(distance));
	at += (uint64_t)(found - code) + sizeof(distance);
	return at + (uint64_t)(int64_t)distance;
}

static bool is_taken(const struct attach *attach)
{
	uint32_t word = 0;

	return attach->fork_lock &&
	       remote_read(&attach->remote, attach->fork_lock, &word,
			   sizeof(word)) &&
	       word != 0;
}

static void stop_queue(struct attach *attach)
{
	uint32_t count, i;
	pid_t *threads = target_threads(&attach->target, &count);

	for (i = 0; threads && i < count; i++)
		if (threads[i] != attach->remote.tid &&
		    !others_have(&attach->queue, threads[i]) &&
		    attach_awaited_futex(attach, threads[i]) ==
			    attach->fork_lock)
			others_add(&attach->queue, threads[i]);
	free(threads);
	others_stop(&attach->queue);
}

void attach_await_forks(struct attach *attach)
{
	static const struct timespec pause = { 0, LOOK_NS };
	uint64_t now = ns_of(CLOCK_MONOTONIC), until = now + attach->wait_ns;
	uint64_t next = now;

	while (is_taken(attach)) {
		bool have_way = attach->is_crowded &&
				attach_make_way(attach, attach->fork_lock);

		/* One of the others that are stopped may hold it. */
		if (!have_way)
			others_release(&attach->others, attach->target.pid);
		now = ns_of(CLOCK_MONOTONIC);
		if (now > until) {
			attach_finish(attach);
			die("process %d (%s): one of its forks has not ended "
			    "in %.0f s, and shim needs a lock that it holds: "
			    "nothing is recorded (--wait TIME for more)",
			    (int)attach->target.pid, attach->target.name,
			    (double)attach->wait_ns * 1e-9);
		}
		if (!have_way && now >= next) {
			stop_queue(attach);
			next = ns_of(CLOCK_MONOTONIC) + QUEUE_NS;
		}
		nanosleep(&pause, NULL);
	}
}
