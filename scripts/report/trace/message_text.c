/* Names of ranks and of operations, and a message as a text. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <shim/format.h>
#include <shim/message.h>

#include "base/memory.h"
#include "read/process.h"
#include "read/recording.h"
#include "trace/messages.h"
#include "trace/trace.h"

const char *trace_rank_name(const struct trace *trace, uint32_t thread)
{
	const struct process *process =
		&trace->recording->processes[trace->threads[thread].process];
	const char *rank = process_string(process, "rank");

	return rank ? keep_format("rank %s", rank) :
		      keep_format("process %u", process->pid);
}

const char *trace_collective_name(int32_t kind)
{
	static const char *const names[SHIM_COLLECTIVES] = {
		[SHIM_COLLECTIVE_BARRIER] = "barrier",
		[SHIM_COLLECTIVE_BCAST] = "broadcast",
		[SHIM_COLLECTIVE_GATHER] = "gather",
		[SHIM_COLLECTIVE_SCATTER] = "scatter",
		[SHIM_COLLECTIVE_ALLGATHER] = "allgather",
		[SHIM_COLLECTIVE_ALLTOALL] = "alltoall",
		[SHIM_COLLECTIVE_REDUCE] = "reduce",
		[SHIM_COLLECTIVE_ALLREDUCE] = "allreduce",
		[SHIM_COLLECTIVE_REDUCE_SCATTER] = "reduce-scatter",
		[SHIM_COLLECTIVE_SCAN] = "scan",
		[SHIM_COLLECTIVE_EXSCAN] = "exscan",
	};

	return kind >= 0 && kind < SHIM_COLLECTIVES ? names[kind] :
						      "collective operation";
}

const char *trace_transfer_name(int32_t kind)
{
	static const char *const names[] = {
		[SHIM_TRANSFER_COLLECTIVE] = "operations with a request",
		[SHIM_TRANSFER_WINDOW] = "windows",
		[SHIM_TRANSFER_FILE] = "files",
	};

	return kind >= 0 && kind < SHIM_TRANSFERS ? names[kind] : "transfers";
}

static void describe_transfer(const struct shim_trace_message *message,
			      char *text, size_t size)
{
	const char *what = "file";
	char window[40];

	if (message->tag == SHIM_TRANSFER_COLLECTIVE) {
		snprintf(text, size,
			 "%s of %u begins: %" PRIu64 " bytes given, %" PRIu64
			 " taken",
			 trace_collective_name((int32_t)message->order),
			 message->size, message->sent, message->received);
		return;
	}
	if (message->tag == SHIM_TRANSFER_WINDOW) {
		snprintf(window, sizeof(window), "window of %d", message->peer);
		what = window;
	}
	snprintf(text, size, "%s: %" PRIu64 " bytes given, %" PRIu64 " taken",
		 what, message->sent, message->received);
}

const char *trace_message_text(const struct trace_event *event)
{
	const struct shim_trace_message *message = event->message;
	static char text[200];

	switch (message->kind) {
	case SHIM_MESSAGE_SEND:
		snprintf(text, sizeof(text),
			 "send %" PRIu64 " bytes to %d of %u, tag %d",
			 message->sent, message->peer, message->size,
			 message->tag);
		break;
	case SHIM_MESSAGE_RECEIVE:
		snprintf(text, sizeof(text),
			 "received %" PRIu64 " bytes from %d of %u, tag %d",
			 message->received, message->peer, message->size,
			 message->tag);
		break;
	case SHIM_MESSAGE_COLLECTIVE:
		snprintf(text, sizeof(text),
			 "%s of %u: %" PRIu64 " bytes given, %" PRIu64 " taken",
			 trace_collective_name(message->tag), message->size,
			 message->sent, message->received);
		break;
	case SHIM_MESSAGE_TRANSFER:
		describe_transfer(message, text, sizeof(text));
		break;
	default:
		snprintf(text, sizeof(text), "is %u of %u", message->rank,
			 message->size);
	}
	return text;
}
