/*
 * PTRACE_SEIZE and PTRACE_INTERRUPT, which send no signal, stop a thread only while its
 * registers and its stack are copied.  All other work is done after the thread continues.
 *
 * A thread stops when it next gets a processor.  On a busy machine this takes long, so
 * several threads wait for it together; but not more than that, because threads that stop at
 * the same time also wait for each other's copies.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/seconds.h"
#include "process/ended_call.h"
#include "process/stop_copies.h"

/* The bytes to copy of a stack whose mapping is unknown. */
#define STACK_COPY_BLIND (64u << 10)
#define COPY_STEP	 4096u

/* No more threads are asked to stop while there are copies of this size. */
#define HELD_MAX (64u << 20)

/* So many threads are asked to stop at first, and then again when none stops within this
 * time. */
#define TOGETHER       32u
#define TOGETHER_AFTER 1000000

/* The longest wait in which no thread stops.  A thread that takes longer sleeps in the
 * kernel. */
#define PATIENCE_NS 5000000000u

struct stopping {
	struct process_memory *memory;
	struct stopped *threads;
	uint32_t count;
	uint32_t waiting;     /* the number of threads that have yet to stop */
	uint64_t free_ns;     /* no thread was stopped at this time */
	uint64_t progress_ns; /* when a thread stopped last */
	size_t held;	      /* bytes in copies */
};

/* --- priority --- */

struct priority {
	struct sched_param parameters;
	int policy, nice;
};

/* Stopped threads wait for this process, so it has to get a processor at once. */
static void raise_priority(struct priority *before)
{
	const struct sched_param least = {
		.sched_priority = sched_get_priority_min(SCHED_FIFO)
	};

	before->policy = sched_getscheduler(0);
	before->nice = getpriority(PRIO_PROCESS, 0);
	sched_getparam(0, &before->parameters);
	if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &least) < 0)
		setpriority(PRIO_PROCESS, 0, -20);
}

static void restore_priority(const struct priority *before)
{
	sched_setscheduler(0, before->policy, &before->parameters);
	setpriority(PRIO_PROCESS, 0, before->nice);
}

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

static void copy(struct stopping *stopping, struct stopped *thread, int status)
{
	static unsigned char *bytes;
	struct iovec registers = { &thread->registers,
				   sizeof(thread->registers) };
	uint64_t since = thread->asked_ns > stopping->free_ns ?
				 thread->asked_ns :
				 stopping->free_ns;

	if (!bytes)
		bytes = allocate(1, STACK_COPY_MAX);
	thread->result = STOP_GONE;
	if (ptrace(PTRACE_GETREGSET, thread->tid, (void *)(intptr_t)NT_PRSTATUS,
		   &registers) == 0) {
		thread->result = STOP_DONE;
		copy_stack(stopping->memory, thread, bytes);
		/* With a signal, the call has to end. */
		if (status >> 16)
			repeat_call(stopping->memory, thread->tid, thread);
	}
	resume_thread(thread->tid, status);
	stopping->progress_ns = ns_of(CLOCK_MONOTONIC);
	thread->stopped_ns = stopping->progress_ns - since;
	thread->bytes = allocate(thread->stack_size, 1);
	if (thread->stack_size)
		memcpy(thread->bytes, bytes, thread->stack_size);
	stopping->held += thread->stack_size;
}

/* Copies the thread if it has stopped. */
static void look_at(struct stopping *stopping, struct stopped *thread)
{
	int status;
	pid_t got = waitpid(thread->tid, &status, __WALL | WNOHANG);

	if (got == 0)
		return;
	if (got > 0 && WIFSTOPPED(status))
		copy(stopping, thread, status);
	else
		thread->result = STOP_GONE;
	thread->is_over = true;
	stopping->waiting -= thread->asked_ns > 0;
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
	thread->result = errno == ESRCH ? STOP_GONE : STOP_REFUSED;
	thread->is_over = true;
	stopping->waiting--;
}

/* --- all threads --- */

static int compare_tids(const void *left, const void *right)
{
	const struct stopped *a = left, *b = right;

	return (a->tid > b->tid) - (a->tid < b->tid);
}

/* Copies the threads that have stopped. */
static void copy_stopped(struct stopping *stopping)
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

/* Returns the number of threads that were asked. */
static uint32_t stop_and_copy(struct stopping *stopping,
			      const sigset_t *signals)
{
	uint32_t asked = 0, together = TOGETHER;
	uint64_t progress_ns;
	bool goes_on = true;

	stopping->progress_ns = ns_of(CLOCK_MONOTONIC);
	while (goes_on) {
		while (asked < stopping->count &&
		       stopping->waiting < together &&
		       stopping->held < HELD_MAX) {
			ask_to_stop(stopping, &stopping->threads[asked++]);
			copy_stopped(stopping);
		}
		if (!stopping->waiting)
			return asked;
		progress_ns = stopping->progress_ns;
		wait_for_a_stop(stopping, signals,
				asked < stopping->count ? TOGETHER_AFTER :
							  100000000);
		copy_stopped(stopping);
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
	raise_priority(&priority);
	asked = stop_and_copy(&stopping, &signals);
	restore_priority(&priority);
	sigprocmask(SIG_SETMASK, &before, NULL);
	for (i = 0; i < asked; i++)
		if (!threads[i].is_over)
			threads[i].result = STOP_STUCK;
	return asked;
}
