/* If profrun is killed, the kernel lets all of them go on. */
#include <elf.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include "base/memory.h"
#include "base/seconds.h"
#include "process/ended_call.h"
#include "process/others.h"
#include "process/stop_wait.h"

#define STOP_NS	 1000000u /* for those on a processor to stop */
#define PAUSE_NS 50000

struct other {
	pid_t tid;
	bool is_seized, is_stopped;
	bool was_examined; /* by others_release_some() */
	int status;	   /* of that stop */
};

void others_add(struct others *others, pid_t tid)
{
	uint32_t i;

	for (i = 0; i < others->count; i++)
		if (others->list[i].tid == tid)
			return;
	GROW(others->list, others->count, others->room);
	others->list[others->count++] = (struct other){ .tid = tid };
}

static void drop(struct others *others, uint32_t i)
{
	others->list[i] = others->list[--others->count];
}

/* Asks those to stop that were added since the last time; keeps those that it could ask. */
static void interrupt_new(struct others *others)
{
	uint32_t i = 0;

	while (i < others->count) {
		struct other *other = &others->list[i];

		if (other->is_seized) {
			i++;
		} else if (ptrace(PTRACE_SEIZE, other->tid, 0, 0) < 0) {
			drop(others, i);
		} else {
			other->is_seized = true;
			ptrace(PTRACE_INTERRUPT, other->tid, 0, 0);
			i++;
		}
	}
}

/* Returns the number of those that have not stopped yet. */
static uint32_t look(struct others *others)
{
	uint32_t i = 0, running = 0;

	while (i < others->count) {
		struct other *other = &others->list[i];
		pid_t got = other->is_stopped ?
				    0 :
				    waitpid(other->tid, &other->status,
					    __WALL | WNOHANG);

		if (got < 0 || (got > 0 && !WIFSTOPPED(other->status))) {
			drop(others, i);
			continue;
		}
		other->is_stopped |= got > 0;
		running += !other->is_stopped;
		i++;
	}
	return running;
}

void others_stop(struct others *others)
{
	static const struct timespec pause = { 0, PAUSE_NS };
	uint64_t begin = ns_of(CLOCK_MONOTONIC);

	if (!others->since)
		others->since = begin;
	interrupt_new(others);
	while (look(others) > 0 && ns_of(CLOCK_MONOTONIC) - begin < STOP_NS)
		nanosleep(&pause, NULL);
}

static bool has_signal(const struct other *other)
{
	return other->status >> 16 == 0;
}

static struct other *find(const struct others *others, pid_t tid)
{
	uint32_t i;

	for (i = 0; i < others->count; i++)
		if (others->list[i].tid == tid)
			return &others->list[i];
	return NULL;
}

bool others_have(const struct others *others, pid_t tid)
{
	return find(others, tid) != NULL;
}

void others_remove(struct others *others, pid_t tid)
{
	struct other *other = find(others, tid);

	if (other)
		drop(others, (uint32_t)(other - others->list));
}

bool others_await(struct others *others, pid_t tid)
{
	struct other *other = find(others, tid);

	if (!other->is_stopped)
		switch (stop_wait(tid, &other->status)) {
		case STOP_DONE: other->is_stopped = true; break;
		case STOP_STUCK: break;
		default: others_remove(others, tid); return false;
		}
	return other->is_stopped && !has_signal(other);
}

/* Lets the thread begin a system call again that the stop has ended. */
static void repeat_call(pid_t pid, pid_t tid)
{
	struct user_regs_struct now;
	struct iovec registers = { &now, sizeof(now) };
	uint64_t mask;

	if (ptrace(PTRACE_GETREGSET, tid, (void *)(intptr_t)NT_PRSTATUS,
		   &registers) == 0 &&
	    ptrace(PTRACE_GETSIGMASK, tid, (void *)sizeof(mask), &mask) == 0 &&
	    ended_call_repeat(pid, tid, mask, &now))
		ptrace(PTRACE_SETREGSET, tid, (void *)(intptr_t)NT_PRSTATUS,
		       &registers);
}

static void let_go(const struct other *other, pid_t pid)
{
	int number = has_signal(other) ? WSTOPSIG(other->status) : 0;

	/* With a signal, the call has to end. */
	if (!number)
		repeat_call(pid, other->tid);
	ptrace(PTRACE_DETACH, other->tid, 0, (void *)(intptr_t)number);
}

void others_release_some(struct others *others, pid_t pid, bool again,
			 others_choice *choice, void *argument)
{
	struct user_regs_struct now;
	struct iovec registers = { &now, sizeof(now) };
	uint32_t i = 0;

	look(others);
	while (i < others->count) {
		struct other *other = &others->list[i];
		bool is_new = other->is_stopped &&
			      (again || !other->was_examined);

		other->was_examined |= is_new;
		if (is_new &&
		    ptrace(PTRACE_GETREGSET, other->tid,
			   (void *)(intptr_t)NT_PRSTATUS, &registers) == 0 &&
		    choice(other->tid, &now, argument)) {
			let_go(other, pid);
			drop(others, i);
		} else {
			i++;
		}
	}
}

uint64_t others_stopped_ns(const struct others *others)
{
	return others->stopped_ns +
	       (others->since ? ns_of(CLOCK_MONOTONIC) - others->since : 0);
}

void others_release(struct others *others, pid_t pid)
{
	uint32_t i = 0;

	look(others);
	while (i < others->count)
		if (others->list[i].is_stopped) {
			let_go(&others->list[i], pid);
			drop(others, i);
		} else {
			i++;
		}
	others->stopped_ns = others_stopped_ns(others);
	others->since = 0;
}

void others_finish(struct others *others, pid_t pid)
{
	others_release(others, pid);
	while (others->count > 0) {
		struct other *other = &others->list[0];

		/* At the end of profrun, the kernel lets a thread go that still sleeps. */
		if (stop_wait(other->tid, &other->status) == STOP_DONE)
			let_go(other, pid);
		drop(others, 0);
	}
	others->since = 0;
}
