/*
 * Memory, threads, signals and log lines for profilers: the functions of <shim/record.h>
 * that do not touch the recording's files.
 */
#include "os/sys.h"
#include "runtime/log.h"
#include "runtime/record.h"

#include <shim/builtin.h>
#include <shim/record.h>

#include <shim/banned.h>

void shim_record_log(const char *line)
{
	if (line)
		log_line("%s", line);
}

void *shim_memory_map(size_t size)
{
	void *memory;

	return sys_map(size, &memory) < 0 ? NULL : memory;
}

/* The kernel may refuse, because the program has locked the memory or has forbidden the
 * call.  Then it overwrites only words that are not zero, which allocates no page. */
void shim_memory_discard(void *memory, size_t size)
{
	uint64_t *word = memory;

	if (!memory || sys_empty(memory, size) == 0)
		return;
	for (size_t i = 0; i < size / sizeof(*word); i++)
		if (((volatile uint64_t *)word)[i] != 0)
			((volatile uint64_t *)word)[i] = 0;
}

void shim_memory_unmap(void *memory, size_t size)
{
	sys_unmap(memory, size);
}

bool shim_memory_read(void *to, const void *from, size_t size)
{
	return sys_peek(from, to, size) == 0;
}

uint32_t shim_thread_id(void)
{
	int tid = sys_gettid();

	return tid > 0 ? (uint32_t)tid : 0;
}

bool shim_thread_is_alive(uint32_t tid)
{
	const struct shim_meta *meta = record_meta();

	/* A vfork child that records is a process with its own id. */
	return sys_is_alive(meta ? (int)meta->pid : sys_getpid(), (int)tid) ||
	       sys_is_alive((int)tid, (int)tid);
}

void shim_thread_name(char name[16])
{
	if (name && sys_thread_name(name) < 0)
		name[0] = '\0';
}

uint64_t shim_signals_block(void)
{
	uint64_t before = 0;

	/* A token with all bits set means failure: no mask of the kernel has
	 * SIGKILL. */
	return sys_block_signals(&before) < 0 ? ~0ull : before;
}

void shim_signals_restore(uint64_t token)
{
	if (token != ~0ull)
		sys_restore_signals(token);
}
