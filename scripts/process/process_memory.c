/*
 * Reads a running process.  PTRACE_SEIZE and PTRACE_INTERRUPT, which send no signal,
 * stop a thread only while its registers and its stack are copied.  All other work is
 * done after the thread continues.
 */
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include "base/memory.h"
#include "base/seconds.h"
#include "process/ended_call.h"
#include "process/process_memory.h"

/* The bytes to copy of a stack whose mapping is unknown. */
#define STACK_COPY_BLIND (64u << 10)
#define COPY_STEP	 4096u

static bool read_process(struct space *space, uint64_t address, void *bytes,
			 size_t size)
{
	const struct process_memory *memory = (void *)space;
	struct iovec to = { bytes, size };
	struct iovec from = { (void *)(uintptr_t)address, size };

	return process_vm_readv(memory->target->pid, &to, 1, &from, 1, 0) ==
	       (ssize_t)size;
}

/* --- mappings --- */

/* The kernel writes a newline as \012. */
static void restore_newlines(char *path)
{
	char *at = path;

	while ((at = strstr(at, "\\012")) != NULL) {
		*at++ = '\n';
		memmove(at, at + 3, strlen(at + 3) + 1);
	}
}

static void add_line(struct process_memory *memory, char *line,
		     const char *root, uint64_t *known_hash)
{
	uint64_t start, end, offset, inode;
	char rights[5], *path;
	int at = 0;
	size_t i;

	line[strcspn(line, "\n")] = '\0';
	if (sscanf(line,
		   "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %" SCNu64 " %n",
		   &start, &end, rights, &offset, &inode, &at) != 5 ||
	    at == 0)
		return;
	path = line + at;
	/* Mappings have the numbers of their modules, which may be data files. */
	if (path[0] == '/')
		for (i = 0; line[i]; i++)
			*known_hash = (*known_hash ^ (unsigned char)line[i]) *
				      0x100000001b3ull;
	restore_newlines(path);
	space_add(&memory->space, start, end, offset, rights[1] == 'w',
		  path[0] ? path : NULL, root);
}

bool process_memory_read(struct process_memory *memory, bool *changed)
{
	struct space *space = &memory->space, before = *space;
	char path[64], root[32], *line = NULL;
	uint64_t known_hash = 0xcbf29ce484222325ull;
	size_t size = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)memory->target->pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	*space = (struct space){ .read = read_process };
	target_root(memory->target->pid, root);
	while (getline(&line, &size, file) > 0)
		add_line(memory, line, root, &known_hash);
	free(line);
	fclose(file);
	*changed = known_hash != memory->known;
	memory->known = known_hash;
	if (*changed) {
		space_clear(&before);
		free(before.mappings);
		free(before.modules);
		free(before.page);
		return space->mapping_count > 0;
	}
	/* The modules are the same, so their data is kept. */
	free(space->modules);
	space->modules = before.modules;
	space->module_count = before.module_count;
	space->module_room = before.module_room;
	space->pages = before.pages;
	space->page = before.page;
	space->page_count = before.page_count;
	space->page_room = before.page_room;
	free(before.mappings);
	return space->mapping_count > 0;
}

/* --- threads --- */

static void copy_stack(struct process_memory *memory, struct stopped *stopped)
{
	uint64_t start = stopped->registers.rsp & ~(uint64_t)7;
	const struct mapping *mapping = space_mapping(&memory->space, start);
	uint64_t size = mapping ? mapping->end - start : STACK_COPY_BLIND;
	struct iovec from[STACK_COPY_MAX / COPY_STEP / 4 + 1];
	struct iovec to = { stopped->bytes, 0 };
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
		to.iov_base = stopped->bytes + (at - start);
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

/* Copies a seized thread. */
static enum stop_result copy_stopped(struct process_memory *memory, pid_t tid,
				     struct stopped *stopped)
{
	struct iovec registers = { &stopped->registers,
				   sizeof(stopped->registers) };
	enum stop_result result;
	int status;

	if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) < 0)
		return STOP_GONE;
	result = stop_wait(tid, &status);
	if (result != STOP_DONE)
		return result;
	if (ptrace(PTRACE_GETREGSET, tid, (void *)(intptr_t)NT_PRSTATUS,
		   &registers) < 0)
		result = STOP_GONE;
	else
		copy_stack(memory, stopped);
	/* With a signal, the call has to end. */
	if (result == STOP_DONE && status >> 16)
		repeat_call(memory, tid, stopped);
	resume_thread(tid, status);
	return result;
}

enum stop_result process_memory_stop(struct process_memory *memory, pid_t tid,
				     struct stopped *stopped)
{
	int before = getpriority(PRIO_PROCESS, 0);
	enum stop_result result;
	uint64_t begin;

	if (!seize(tid))
		return errno == ESRCH ? STOP_GONE : STOP_REFUSED;
	/* Raises the priority, if allowed, because the thread waits for this
	 * process. */
	setpriority(PRIO_PROCESS, 0, -20);
	begin = ns_of(CLOCK_MONOTONIC);
	result = copy_stopped(memory, tid, stopped);
	stopped->stopped_ns = ns_of(CLOCK_MONOTONIC) - begin;
	setpriority(PRIO_PROCESS, 0, before);
	return result;
}
