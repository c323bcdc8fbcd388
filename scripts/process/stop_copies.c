/*
 * PTRACE_SEIZE and PTRACE_INTERRUPT, which send no signal, stop a thread only while its
 * registers and its stack are copied.  All other work is done after the thread continues.
 *
 * A thread stops when it next gets a processor.  On a busy machine this takes long, so
 * several threads wait for it together; but not more than that, because threads that stop at
 * the same time also wait for each other's copies.
 *
 * Where very many threads run, one that goes on takes a processor from those that are yet to
 * stop: each round takes seconds.  And a copy waits for a lock of the process's mappings, which
 * a thread may hold that has no processor: for as long.  So all of them are stopped first,
 * which needs milliseconds, and then copied.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/seconds.h"
#include "process/ended_call.h"
#include "process/priority.h"
#include "process/stop_copies.h"
#include "process/target.h"

/* The bytes to copy of a stack whose mapping is unknown. */
#define STACK_COPY_BLIND (64u << 10)
#define COPY_STEP	 4096u

/* No more threads are asked to stop while there are copies of this size. */
#define COPIED_MAX (64u << 20)

/* So many threads are asked to stop at first, and then again when none stops within this
 * time. */
#define TOGETHER       32u
#define TOGETHER_AFTER 1000000

/* The longest wait in which no thread stops.  A thread that takes longer sleeps in the
 * kernel, or gets no processor. */
#define PATIENCE_NS 5000000000u

/* Threads that are stopped together are copied when none has stopped for GATHER_NS, at the
 * latest after HOLD_NS. */
#define GATHER_NS 20000000
#define HOLD_NS	  100000000

struct stopping {
	struct process_memory *memory;
	struct stopped *threads;
	uint32_t count;
	bool holds;	      /* copies when all have stopped */
	uint32_t waiting;     /* the number of threads that have yet to stop */
	uint64_t free_ns;     /* no thread was stopped at this time */
	uint64_t progress_ns; /* when a thread stopped last */
	size_t copied;	      /* bytes in copies */
};

/* --- time --- */

/* The time that this process has waited for a processor; 0: the kernel does not count
 * it. */
static uint64_t delay_ns(void)
{
	static int fd = -2;
	char text[128];
	uint64_t delay;
	ssize_t size;

	if (fd == -2)
		fd = open("/proc/self/schedstat", O_RDONLY | O_CLOEXEC);
	size = fd < 0 ? 0 : pread(fd, text, sizeof(text) - 1, 0);
	text[size > 0 ? size : 0] = '\0';
	return sscanf(text, "%*u %" SCNu64, &delay) == 1 ? delay : 0;
}

/* --- one thread --- */

static void copy_stack(const struct process_memory *memory,
		       struct stopped *stopped, unsigned char *bytes)
{
	uint64_t start = stopped->registers.rsp & ~(uint64_t)7;
	const struct mapping *mapping = space_mapping(&memory->space, start);
	uint64_t size = mapping ? mapping->end - start : STACK_COPY_BLIND;
	struct iovec from[STACK_COPY_MAX / COPY_STEP / 4 + 1];
	struct iovec to = { bytes, 0 };
	uint64_t at = start, end;
	ssize_t got = 0;
	size_t i;

	/* The red zone belongs to the innermost frame. */
	start -= 128;
	at = start;
	size += 128;
	if (size > STACK_COPY_MAX)
		size = STACK_COPY_MAX;
	end = start + size;
	stopped->stack = start;
	stopped->stack_size = 0;
	while (at < end) {
		to.iov_base = bytes + (at - start);
		to.iov_len = end - at;
		for (i = 0; at < end && i < sizeof(from) / sizeof(*from); i++) {
			uint64_t next = (at | (COPY_STEP - 1)) + 1;

			if (next > end)
				next = end;
			from[i] = (struct iovec){ (void *)(uintptr_t)at,
						  next - at };
			at = next;
		}
		got = process_vm_readv(memory->target->pid, &to, 1, from, i, 0);
		if (got <= 0)
			break;
		stopped->stack_size += (size_t)got;
		if (stopped->stack + stopped->stack_size < at)
			break;
	}
}

/* Lets the thread continue, with the signal that stopped it meanwhile. */
static void resume_thread(pid_t tid, int status)
{
	int number = status >> 16 ? 0 : WSTOPSIG(status);

	ptrace(PTRACE_DETACH, tid, 0, (void *)(intptr_t)number);
}

/* Seizes a thread.  A thread that was stuck the last time is already seized.  False
 * with errno on failure. */
static bool seize(pid_t tid)
{
	int error;

	if (ptrace(PTRACE_SEIZE, tid, 0, 0) == 0)
		return true;
	error = errno;
	if (error == EPERM && ptrace(PTRACE_INTERRUPT, tid, 0, 0) == 0)
		return true;
	errno = error;
	return false;
}

/* Lets the thread begin a call again that the stop has ended. */
static void repeat_call(const struct process_memory *memory, pid_t tid,
			const struct stopped *stopped)
{
	struct user_regs_struct now = stopped->registers;
	struct iovec registers = { &now, sizeof(now) };
	uint64_t mask;

	if ((memory->is_repeated && !ended_call_is_unlimited(&now)) ||
	    ptrace(PTRACE_GETSIGMASK, tid, (void *)sizeof(mask), &mask) < 0 ||
	    !ended_call_repeat(memory->target->pid, tid, mask, &now))
		return;
	ptrace(PTRACE_SETREGSET, tid, (void *)(intptr_t)NT_PRSTATUS,
	       &registers);
}

/* The thread has stopped, with @status. */
static void note_stop(struct stopping *stopping, struct stopped *thread,
		      int status)
{
	thread->is_held = true;
	thread->status = status;
	thread->since_ns = thread->asked_ns > stopping->free_ns ?
				   thread->asked_ns :
				   stopping->free_ns;
	stopping->progress_ns = ns_of(CLOCK_MONOTONIC);
}

static void copy(struct stopping *stopping, struct stopped *thread)
{
	static unsigned char *bytes;
	struct iovec registers = { &thread->registers,
				   sizeof(thread->registers) };

	if (!bytes)
		bytes = allocate(1, STACK_COPY_MAX);
	thread->result = STOP_GONE;
	if (ptrace(PTRACE_GETREGSET, thread->tid, (void *)(intptr_t)NT_PRSTATUS,
		   &registers) == 0) {
		thread->result = STOP_DONE;
		copy_stack(stopping->memory, thread, bytes);
		/* With a signal, the call has to end. */
		if (thread->status >> 16)
			repeat_call(stopping->memory, thread->tid, thread);
	}
	resume_thread(thread->tid, thread->status);
	thread->is_held = false;
	stopping->progress_ns = ns_of(CLOCK_MONOTONIC);
	thread->stopped_ns = stopping->progress_ns - thread->since_ns;
	thread->bytes = allocate(thread->stack_size, 1);
	if (thread->stack_size)
		memcpy(thread->bytes, bytes, thread->stack_size);
	stopping->copied += thread->stack_size;
}

/* Copies the thread if it has stopped, now or later. */
static void look_at(struct stopping *stopping, struct stopped *thread)
{
	int status;
	pid_t got = waitpid(thread->tid, &status, __WALL | WNOHANG);

	if (got == 0)
		return;
	if (got > 0 && WIFSTOPPED(status))
		note_stop(stopping, thread, status);
	else
		thread->result = STOP_GONE;
	if (thread->is_held && !stopping->holds)
		copy(stopping, thread);
	thread->is_over = true;
	stopping->waiting -= thread->asked_ns > 0;
}

/* Why the thread could not be asked.  The kernel also refuses threads that have ended. */
static enum stop_result why_not(const struct stopping *stopping,
				const struct stopped *thread)
{
	char name[64], state;

	return thread->error == ESRCH ||
			       !target_thread(stopping->memory->target,
					      thread->tid, name, &state) ?
		       STOP_GONE :
		       STOP_REFUSED;
}

static void ask_to_stop(struct stopping *stopping, struct stopped *thread)
{
	if (thread->is_over)
		return;
	thread->asked_ns = ns_of(CLOCK_MONOTONIC);
	stopping->waiting++;
	if (seize(thread->tid) &&
	    ptrace(PTRACE_INTERRUPT, thread->tid, 0, 0) == 0)
		return;
	thread->error = errno;
	thread->result = why_not(stopping, thread);
	thread->is_over = true;
	stopping->waiting--;
}

/* --- all threads --- */

static int compare_tids(const void *left, const void *right)
{
	const struct stopped *a = left, *b = right;

	return (a->tid > b->tid) - (a->tid < b->tid);
}

/* Copies the threads that have stopped, now or later. */
static void take_stopped(struct stopping *stopping)
{
	struct stopped key = { .tid = 0 }, *thread;
	siginfo_t info;
	uint64_t now;
	int status;

	for (;;) {
		now = ns_of(CLOCK_MONOTONIC);
		info.si_pid = 0;
		if (waitid(P_ALL, 0, &info,
			   WSTOPPED | WNOHANG | WNOWAIT | __WALL) < 0 ||
		    info.si_pid == 0)
			break;
		key.tid = info.si_pid;
		thread = bsearch(&key, stopping->threads, stopping->count,
				 sizeof(key), compare_tids);
		if (thread && !thread->is_over)
			look_at(stopping, thread);
		else if (waitpid(key.tid, &status, __WALL | WUNTRACED) > 0)
			/* It was stuck in an earlier round. */
			resume_thread(key.tid, status);
	}
	stopping->free_ns = now;
}

/* Waits until a thread stops or ends, but not longer than @most_ns. */
static void wait_for_a_stop(struct stopping *stopping, const sigset_t *signals,
			    long most_ns)
{
	const struct timespec most = { 0, most_ns };
	uint64_t before = delay_ns(), now, delay;

	sigtimedwait(signals, NULL, &most);
	now = ns_of(CLOCK_MONOTONIC);
	delay = delay_ns() - before;
	/* It waited until something stopped, and then for a processor. */
	if (before && now - delay > stopping->free_ns)
		stopping->free_ns = now - delay;
}

/* Threads that end do not stop. */
static void find_ended(struct stopping *stopping, uint32_t asked)
{
	uint32_t i;

	for (i = 0; i < asked; i++)
		if (!stopping->threads[i].is_over)
			look_at(stopping, &stopping->threads[i]);
}

/* Lets a thread go on that is to be asked again. */
static void put_off(struct stopped *thread)
{
	resume_thread(thread->tid, thread->status);
	*thread = (struct stopped){ .tid = thread->tid,
				    .is_running = thread->is_running };
}

/* Copies those that are held.  Returns the number of the first threads that are not put off
 * for want of memory.  Of the others, those that have yet to stop are not waited for. */
static uint32_t copy_held(struct stopping *stopping, uint32_t asked)
{
	uint32_t i, done = asked;

	stopping->holds = false;
	for (i = 0; i < asked; i++) {
		struct stopped *thread = &stopping->threads[i];

		if (!thread->is_held) {
			if (i > done && !thread->is_over) {
				thread->asked_ns = 0;
				stopping->waiting--;
			}
			continue;
		}
		if (stopping->copied < COPIED_MAX) {
			copy(stopping, thread);
			continue;
		}
		put_off(thread);
		if (done == asked)
			done = i;
	}
	return done;
}

/* Stops all, and copies those that stop soon.  Returns the number of threads that are asked,
 * and not put off. */
static uint32_t hold_and_copy(struct stopping *stopping,
			      const sigset_t *signals)
{
	uint64_t begin = ns_of(CLOCK_MONOTONIC), now;
	uint32_t i;

	for (i = 0; i < stopping->count; i++)
		ask_to_stop(stopping, &stopping->threads[i]);
	take_stopped(stopping);
	for (now = begin; stopping->waiting && now < begin + HOLD_NS &&
			  now < stopping->progress_ns + GATHER_NS;
	     now = ns_of(CLOCK_MONOTONIC)) {
		wait_for_a_stop(stopping, signals, GATHER_NS);
		take_stopped(stopping);
	}
	return copy_held(stopping, stopping->count);
}

/* Whether so many run that none is to go on before all have stopped. */
static bool run_many(const struct stopping *stopping)
{
	uint32_t i, running = 0;

	for (i = 0; i < stopping->count; i++)
		running += stopping->threads[i].is_running;
	return stop_are_more(running, STOP_MANY);
}

/* Returns the number of threads that were asked. */
static uint32_t stop_and_copy(struct stopping *stopping,
			      const sigset_t *signals)
{
	uint32_t asked = 0, together = TOGETHER;
	uint64_t progress_ns;
	bool goes_on = true;

	stopping->progress_ns = ns_of(CLOCK_MONOTONIC);
	stopping->holds = run_many(stopping);
	if (stopping->holds)
		asked = hold_and_copy(stopping, signals);
	while (goes_on) {
		while (asked < stopping->count &&
		       stopping->waiting < together &&
		       stopping->copied < COPIED_MAX) {
			ask_to_stop(stopping, &stopping->threads[asked++]);
			take_stopped(stopping);
		}
		if (!stopping->waiting)
			return asked;
		progress_ns = stopping->progress_ns;
		wait_for_a_stop(stopping, signals,
				asked < stopping->count ? TOGETHER_AFTER :
							  100000000);
		take_stopped(stopping);
		if (stopping->progress_ns != progress_ns)
			continue;
		find_ended(stopping, asked);
		together += TOGETHER;
		goes_on = progress_ns + PATIENCE_NS > ns_of(CLOCK_MONOTONIC);
	}
	return asked;
}

uint32_t stop_copies(struct process_memory *memory, struct stopped *threads,
		     uint32_t count)
{
	struct stopping stopping = { .memory = memory,
				     .threads = threads,
				     .count = count };
	struct priority priority;
	sigset_t signals, before;
	uint32_t asked, i;

	/* (A signal that is ignored does not wake.) */
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigprocmask(SIG_BLOCK, &signals, &before);
	priority_raise(&priority);
	asked = stop_and_copy(&stopping, &signals);
	priority_restore(&priority);
	sigprocmask(SIG_SETMASK, &before, NULL);
	for (i = 0; i < asked; i++)
		if (!threads[i].is_over)
			threads[i].result = STOP_STUCK;
	return asked;
}
