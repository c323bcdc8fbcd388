/*
 * Starts traps in a program that already runs.  Its threads and handlers may have
 * blocked SIGTRAP in the kernel's masks, which shim could not filter.  The kernel ends
 * a program that hits a trap with SIGTRAP blocked.
 */
#include "coverage/sigtrap.h"

#include "image/image.h"
#include "os/sys.h"
#include "os/tasks.h"
#include "os/text.h"
#include "runtime/hidden_signals.h"
#include "runtime/log.h"
#include "sampling/sample.h"

#include <errno.h>

#include <shim/banned.h>

#define SIGNALS	 64
#define TRAP_BIT (1ull << (SIGTRAP - 1))

/* The number of checks: a thread may block all signals for a moment, in code of shim or
 * of the program; and on a busy machine it may have to wait for a processor just then. */
#define TRIES	 500
#define PAUSE_MS 2

/* Removes SIGTRAP from a handler's mask, as edge/signals.c does when the program sets a
 * handler. */
static void unblock_in_handler(int signal)
{
	struct sys_action action;

	if (signal == SIGKILL || signal == SIGSTOP || signal == SIGTRAP ||
	    sys_signal_action(signal, NULL, &action) < 0 ||
	    action.handler == (void *)SIG_DFL ||
	    action.handler == (void *)SIG_IGN || !(action.mask & TRAP_BIT) ||
	    image_is_ours((uintptr_t)action.handler))
		return;
	hidden_mask_handler(signal, hidden_masks_handler(signal) | TRAP_BIT);
	action.mask &= ~TRAP_BIT;
	sys_signal_action(signal, &action, NULL);
}

struct search {
	uint32_t tid; /* of a thread that blocks SIGTRAP */
};

static bool has_unblocked(uint32_t tid, void *argument)
{
	struct search *search = argument;
	uint64_t blocked;

	if (thread_is_own(tid) || tasks_blocked(tid, &blocked) < 0 ||
	    !(blocked & TRAP_BIT))
		return true;
	search->tid = tid;
	return false;
}

static int find_blocking_thread(uint32_t *tid)
{
	struct search search = { 0 };
	int r = 1;

	for (unsigned i = 0; i < TRIES && r == 1; i++) {
		if (i > 0)
			sys_sleep_ms(PAUSE_MS);
		r = tasks_each(has_unblocked, &search);
	}
	*tid = search.tid;
	return r == 1 ? -EBUSY : r;
}

static void log_failure(uint32_t tid, int error)
{
	char memory[32];
	struct text text;

	text_init(&text, memory, sizeof(memory));
	text_add_number(&text, tid);
	if (error == -EBUSY)
		log_line("the thread %s blocks SIGTRAP: no line is recorded",
			 memory);
	else
		log_error("the signal masks of threads are unknown: no line is "
			  "recorded%s",
			  "", error);
}

static bool unblock_all(void)
{
	uint32_t tid;
	int r;

	for (int signal = 1; signal <= SIGNALS; signal++)
		unblock_in_handler(signal);
	r = find_blocking_thread(&tid);
	if (r == 0)
		return true;
	log_failure(tid, r);
	return false;
}

bool sigtrap_start_late(void)
{
	if (sigtrap_is_on())
		return true;
	if (!sigtrap_start())
		return false;
	if (unblock_all())
		return true;
	sigtrap_stop();
	return false;
}

bool sigtrap_start_again(void)
{
	return sigtrap_install_again() && unblock_all();
}
