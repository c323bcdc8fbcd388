/*
 * Notes the system calls that threads are in when sampling begins.  The kernel overwrites a
 * call's number with EINTR.  Mostly the code before the call has the number; libc's
 * syscall(2), which takes it from the caller, has not.  shim's own syscall(2) keeps it, but
 * not for a thread that waits since before the attach.
 *
 * Of a thread that waits for a processor, as it does in a call that a stop has interrupted,
 * the kernel tells nothing: it is asked again, for a few milliseconds.
 *
 * A noted call is known by its arguments and its place on the stack, so a later call of the
 * thread is not taken for it.
 */
#include "sampling/open_call.h"

#include "os/sys.h"
#include "os/tasks.h"

#include <shim/attach.h>

#include <shim/banned.h>

#define CALLS_MAX 1024
#define ASKS_MAX  5 /* a millisecond between two */

struct shim_attach_call profrun_attach_call;

/* Written one at a time; a signal handler may read them meanwhile. */
static struct shim_attach_call calls[CALLS_MAX];
static uint32_t count, is_noting;

/* Those that have to be asked again. */
static uint32_t running[CALLS_MAX], running_count;

static bool note_task(uint32_t tid, void *unused)
{
	struct shim_attach_call *call = &calls[count];
	uint64_t words[TASKS_CALL_WORDS];
	enum task_call state;

	(void)unused;
	if ((int)tid == sys_gettid())
		return true;
	state = tasks_call(tid, words);
	if (state == TASK_CALL_RUNS && running_count < CALLS_MAX)
		running[running_count++] = tid;
	if (state != TASK_CALL_KNOWN)
		return true;
	call->number = words[0];
	for (unsigned i = 0; i < 6; i++)
		call->arguments[i] = words[1 + i];
	call->stack_pointer = words[7];
	call->next = words[8];
	call->tid = tid;
	__atomic_store_n(&count, count + 1, __ATOMIC_RELEASE);
	return count < CALLS_MAX;
}

static void ask_again(void)
{
	uint32_t asked = running_count;

	running_count = 0;
	sys_sleep_ms(1);
	for (uint32_t i = 0; i < asked && count < CALLS_MAX; i++)
		note_task(running[i], NULL);
}

void open_calls_note(void)
{
	if (__atomic_exchange_n(&is_noting, 1, __ATOMIC_ACQ_REL) != 0)
		return;
	__atomic_store_n(&count, 0, __ATOMIC_RELEASE);
	running_count = 0;
	tasks_each(note_task, NULL);
	for (unsigned asks = 1; running_count > 0 && asks < ASKS_MAX; asks++)
		ask_again();
	__atomic_store_n(&is_noting, 0, __ATOMIC_RELEASE);
}

static bool is_same(const struct shim_attach_call *noted,
		    const struct thread *self, const ucontext_t *context,
		    const struct arch_call *call)
{
	if (noted->tid != self->tid ||
	    noted->stack_pointer != ARCH_CONTEXT_SP(context) ||
	    noted->next != ARCH_CONTEXT_IP(context))
		return false;
	for (unsigned i = 0; i < 6; i++)
		if (noted->arguments[i] != (uint64_t)call->arguments[i])
			return false;
	return true;
}

long open_call_number(const struct thread *self, const ucontext_t *context,
		      const struct arch_call *call)
{
	uint32_t noted = __atomic_load_n(&count, __ATOMIC_ACQUIRE);

	if (is_same(&profrun_attach_call, self, context, call))
		return (long)profrun_attach_call.number;
	for (uint32_t i = 0; i < noted; i++)
		if (is_same(&calls[i], self, context, call))
			return (long)calls[i].number;
	return -1;
}
