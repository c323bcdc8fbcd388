/*
 * The end of the process: its events, each once for every kind of end that shim sees, and
 * what the recording says of it.
 */
#include "edge/edge.h"

#include "module/control.h"
#include "os/clock.h"
#include "os/sys.h"
#include "runtime/events.h"
#include "runtime/record.h"
#include "runtime/thread.h"

#include <shim/record.h>

#include <shim/banned.h>

/* Whether this is a task of the process that @meta describes, not one that runs with its
 * memory.  Without system calls, only children of vfork and clone are known.  In seccomp's
 * strict mode, which takes the clock, too, the kernel kills a process that exits. */
static bool is_own(const struct shim_meta *meta)
{
	if (!sys_is_forbidden())
		return (int)meta->pid == sys_getpid();
	return !shim_clock_is_closed() && !edge_is_vfork_child() &&
	       thread_current && !(thread_current->state & THREAD_SHARED);
}

/* The meta of this process; NULL in a vfork child, which runs with its parent's memory. */
static struct shim_meta *own_meta(void)
{
	struct shim_meta *meta = record_meta();

	return meta && is_own(meta) ? meta : NULL;
}

/* True once for each @done.  Callbacks make system calls. */
static bool is_first(bool *done)
{
	return !sys_is_forbidden() && own_meta() &&
	       !__atomic_exchange_n(done, true, __ATOMIC_ACQ_REL);
}

void edge_shutdown_begins(void)
{
	static bool done;

	if (is_first(&done))
		RAISE(runtime_shutdown_begin);
}

void edge_shutdown_ends(void)
{
	static bool done;

	edge_shutdown_begins();
	if (!is_first(&done))
		return;
	RAISE(runtime_shutdown_end);
	events_finish();
	control_finish();
}

/* --- the recording --- */

void edge_write_end(enum shim_end end, int status)
{
	struct shim_meta *meta = own_meta();

	/* A detach has ended the recording before. */
	if (!meta || meta->end == SHIM_END_DETACHED)
		return;
	meta->end = end;
	meta->exit_status = (uint32_t)status & 0xff;
	meta->end_clock = clock_read();
	if (!sys_is_forbidden())
		record_note_clocks();
}

void edge_exec_ends(void)
{
	edge_write_end(SHIM_END_EXEC, 0);
}

void edge_exec_goes_on(void)
{
	struct shim_meta *meta = own_meta();

	if (!meta || meta->end != SHIM_END_EXEC)
		return;
	meta->end_clock = 0;
	meta->end = SHIM_END_UNKNOWN;
}
