/*
 * Functions that a program calls: marks, messages, the switch of tracing, and heap snapshots.  Each
 * raises an event, which a profiler answers.
 */
#include "runtime/contract.h"
#include "runtime/events.h"

#define SHIM_MARKS_ARE_HERE
#include <shim/heap.h>
#include <shim/mark.h>
#include <shim/message.h>
#include <shim/trace.h>

#include <shim/banned.h>

enum shim_result shim_mark_emit(enum shim_mark_kind kind, const char *text,
				uint64_t bits)
{
	ENTRY_ASYNC();
	if (!text || (unsigned)kind > SHIM_COUNTER)
		return SHIM_E_INVALIDARG;
	RAISE(marked, kind, text, bits);
	return SHIM_OK;
}

enum shim_result shim_message_emit(const struct shim_message *message)
{
	ENTRY_ASYNC();
	if (message && (message->kind < SHIM_MESSAGE_MEMBER ||
			message->kind > SHIM_MESSAGE_TRANSFER))
		return SHIM_E_INVALIDARG;
	if (events_counts.messaged == 0)
		return SHIM_S_FALSE;
	if (message)
		RAISE(messaged, message);
	return SHIM_OK;
}

enum shim_result shim_trace_switch(int is_on)
{
	ENTRY_ASYNC();
	RAISE(trace_switched, is_on != 0);
	return SHIM_OK;
}

enum shim_result shim_heap_snapshot_now(uint32_t *number)
{
	uint32_t taken = 0;

	ENTRY_ASYNC();
	if (events_counts.heap_snapshot_requested == 0)
		return SHIM_S_FALSE;
	RAISE(heap_snapshot_requested, &taken);
	if (number)
		*number = taken;
	return taken ? SHIM_OK : SHIM_E_FAIL;
}
