/*
 * The events at the end of the process.  shim raises each event once, for every kind of
 * end that it sees.
 */
#include "edge/edge.h"

#include "module/control.h"
#include "os/sys.h"
#include "runtime/events.h"
#include "runtime/record.h"

#include <shim/format.h>

#include <shim/banned.h>

/* True once for each @done.  False in a vfork child, which shares its parent's memory. */
static bool is_first(bool *done)
{
	struct shim_meta *meta = record_meta();

	return meta && !sys_is_forbidden() && (int)meta->pid == sys_getpid() &&
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
