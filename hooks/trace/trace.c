/*
 * The trace profiler: `-p trace`.  It records every enter and leave with its time.
 *
 * The calls are those of the call-path engine (../path), which also detects their ends.
 * The engine's hooks write the records.  Without calltree, the tree is in private
 * memory and does not count.
 */
#include "trace/trace.h"

#include "options/start.h"
#include "path/needs.h"

#include <shim/mark.h>
#include <shim/message.h>
#include <shim/signals.h>

#include <shim/banned.h>

static const enum shim_trace_kind kinds[] = {
	[SHIM_MARK] = SHIM_TRACE_MARK,
	[SHIM_RANGE_BEGIN] = SHIM_TRACE_RANGE_BEGIN,
	[SHIM_RANGE_END] = SHIM_TRACE_RANGE_END,
};

static void on_marked(struct shim_profiler *profiler, uint32_t kind,
		      const char *text, uint64_t bits)
{
	size_t size = 0;

	(void)profiler;
	while (size < SHIM_TRACE_TEXT && text[size])
		size++;
	if (kind == SHIM_COUNTER)
		trace_counter(text, bits);
	else
		trace_text(kinds[kind], text, size);
}

static void on_messaged(struct shim_profiler *profiler,
			const struct shim_message *message)
{
	(void)profiler;
	trace_message(message);
}

static void on_trace_switched(struct shim_profiler *profiler, int is_on)
{
	(void)profiler;
	trace_switch(!is_on);
}

static void on_signalled(struct shim_profiler *profiler, int signal)
{
	(void)profiler;
	if (signal == trace_options.signal)
		trace_toggle();
}

static void on_contention(struct shim_profiler *profiler,
			  struct shim_lock *lock)
{
	(void)profiler;
	trace_wait_begins(lock);
}

static void on_wait_ended(struct shim_profiler *profiler,
			  struct shim_lock *lock)
{
	(void)profiler;
	trace_wait_ends(lock);
}

static bool start_trace(void)
{
	struct shim_profiler_handle *handle;

	if (!tree_need_writer(&trace_writer))
		return false;
	handle = shim_profiler_create(NULL);
	trace_prepare(handle);
	trace_values_prepare(trace_is_wanted(TRACE_ARGUMENTS),
			     trace_is_wanted(TRACE_RESULTS));
	path_add_client(trace_asks_arguments ? &trace_asking_client :
					       &trace_client);
	shim_profiler_on_marked(handle, on_marked);
	shim_profiler_on_messaged(handle, on_messaged);
	shim_profiler_on_trace_switched(handle, on_trace_switched);
	/* There are no such events if no profiler enables them, as locks does. */
	shim_profiler_on_lock_contention(handle, on_contention);
	shim_profiler_on_lock_acquired(handle, on_wait_ended);
	shim_profiler_on_lock_failed(handle, on_wait_ended);
	if (!trace_options.signal)
		return true;
	shim_profiler_on_signalled(handle, on_signalled);
	if (shim_profiler_enable_signal(handle, trace_options.signal) ==
	    SHIM_OK)
		return true;
	shim_record_log("trace: signal= is ignored: the signal belongs to the "
			"program or to another profiler");
	return false;
}

static bool record_trace(bool is_on)
{
	if (is_on)
		tree_return();
	trace_switch(!is_on);
	if (!is_on)
		tree_leave();
	if (!is_on && tree_users() > 0)
		shim_record_log("trace: the calls go on, without a timeline, "
				"because another profiler needs their paths");
	return true;
}

BUILTIN(trace, trace_take_option, start_trace, .begin = tree_begin,
	.record = record_trace, .is_too_late = tree_writer_is_too_late);
