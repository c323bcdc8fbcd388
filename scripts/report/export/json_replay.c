/*
 * Writes the events of a trace as JSON, one line each.  Arguments come after the ENTER of
 * their call, a result before its LEAVE.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <shim/message.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/messages.h"
#include "export/json_replay.h"
#include "model/check_names.h"
#include "model/functions.h"
#include "model/model.h"
#include "model/options.h"
#include "model/window.h"
#include "read/process.h"
#include "read/recording.h"
#include "trace/clocks.h"
#include "trace/gaps.h"
#include "trace/merge.h"
#include "trace/messages.h"
#include "trace/trace.h"

static const char *const kinds[] = {
	[TRACE_ENTER] = "enter",
	[TRACE_LEAVE] = "leave",
	[TRACE_ARGUMENTS] = "arguments",
	[TRACE_RESULT] = "result",
	[TRACE_THREAD] = "thread_begin",
	[TRACE_THREAD_END] = "thread_end",
	[TRACE_NAME] = "thread_name",
	[TRACE_MARK] = "mark",
	[TRACE_RANGE_BEGIN] = "range_begin",
	[TRACE_RANGE_END] = "range_end",
	[TRACE_COUNTER] = "counter",
	[TRACE_PAUSE] = "off",
	[TRACE_RESUME] = "on",
	[TRACE_LOST] = "lost",
	[TRACE_GAP] = "gap",
	[TRACE_WAIT] = "wait",
	[TRACE_MESSAGE] = "message",
};

struct replay {
	struct json json;
	const struct trace *trace;
	const struct model *model;
};

static void put_call(struct replay *replay, const struct trace_event *event)
{
	const struct site *site = &replay->trace->recording->sites[event->site];
	struct json *json = &replay->json;

	json_key_text(json, "function",
		      replay->model->functions[site->function].name);
	if (event->is_guessed)
		json_key_flag(json, "unseen", true);
	if (event->kind == TRACE_ENTER)
		return;
	json_key_number(json, "duration_ns", event->duration_ns, 17);
	if (event->is_unwound)
		json_key_flag(json, "unwound", true);
	if (event->is_open)
		json_key_flag(json, "open", true);
}

static void put_message(struct json *json,
			const struct shim_trace_message *message)
{
	static const char *const whats[] = {
		[SHIM_MESSAGE_MEMBER] = "member",
		[SHIM_MESSAGE_SEND] = "send",
		[SHIM_MESSAGE_RECEIVE] = "receive",
		[SHIM_MESSAGE_COLLECTIVE] = "collective",
		[SHIM_MESSAGE_TRANSFER] = "transfer",
	};
	bool is_known = message->kind >= SHIM_MESSAGE_MEMBER &&
			message->kind <= SHIM_MESSAGE_TRANSFER;

	json_key_text(json, "what", is_known ? whats[message->kind] : "other");
	json_key_text(json, "communicator",
		      keep_format("%" PRIx64, message->communicator));
	json_key_count(json, "size", message->size);
	json_key_count(json, "rank", message->rank);
	if (message->kind == SHIM_MESSAGE_COLLECTIVE)
		json_key_text(json, "operation",
			      trace_collective_name(message->tag));
	else if (message->kind == SHIM_MESSAGE_TRANSFER)
		json_key_text(json, "operation",
			      trace_transfer_name(message->tag));
	else if (message->kind != SHIM_MESSAGE_MEMBER)
		json_key_number(json, "tag", message->tag, 17);
	json_key_number(json, "peer", message->peer, 17);
	json_key_count(json, "sent", message->sent);
	json_key_count(json, "received", message->received);
}

static void put_rest(struct replay *replay, const struct trace_event *event)
{
	const struct trace_thread *thread =
		&replay->trace->threads[event->thread];
	struct json *json = &replay->json;

	switch (event->kind) {
	case TRACE_ENTER:
	case TRACE_LEAVE: put_call(replay, event); break;
	case TRACE_THREAD:
	case TRACE_THREAD_END:
	case TRACE_NAME: json_key_text(json, "name", thread->name); break;
	case TRACE_COUNTER:
		json_key_text(json, "text", event->text);
		json_key_number(json, "value", event->value, 17);
		break;
	case TRACE_LOST:
		json_key_count(json, "calls", event->count);
		json_key_text(json, "cause", lost_names[event->cause]);
		break;
	case TRACE_GAP:
		json_key_text(json, "text", trace_gap_text(event));
		json_key_number(json, "duration_ns", event->duration_ns, 17);
		break;
	case TRACE_WAIT:
		json_key_number(json, "duration_ns", event->duration_ns, 17);
		break;
	case TRACE_MESSAGE: put_message(json, event->message); break;
	case TRACE_PAUSE:
	case TRACE_RESUME: break;
	default: json_key_text(json, "text", event->text); break;
	}
}

static void put_event(struct replay *replay, const struct trace_event *event)
{
	const struct trace_thread *thread =
		&replay->trace->threads[event->thread];
	const struct process *process =
		&replay->trace->recording->processes[thread->process];
	struct json *json = &replay->json;

	json_line(json, 1);
	json_object(json);
	json_key_number(json, "time_ns", event->time_ns, 17);
	json_key_text(json, "kind", kinds[event->kind]);
	json_key_count(json, "pid", process->pid);
	json_key_count(json, "tid", thread->tid);
	if (event->track)
		json_key_count(json, "coroutine", event->track);
	json_key_count(json, "depth", event->depth);
	put_rest(replay, event);
	json_close_object(json);
}

void json_replay_print(FILE *out, struct recording *recording,
		       const struct options *options)
{
	uint64_t left = options->limit > 0 ? (uint64_t)options->limit :
					     UINT64_MAX;
	struct model model = { .recording = recording };
	struct trace_merge *merge;
	struct trace_event event;
	struct trace_range range;
	struct trace trace;
	struct replay replay = { .trace = &trace, .model = &model };

	if (!trace_open(&trace, recording))
		die("%s: there is no trace in it (profrun -p trace)",
		    recording->path);
	trace_clocks_tell(&trace);
	model_find_functions(&model);
	trace_find_messages(&trace);
	range = window_begin(&trace, &model, options, true);
	range.doing = "printing";
	check_names(&model);
	replay.json = json_begin(out);
	json_object(&replay.json);
	json_key_text(&replay.json, "recording", recording->path);
	json_key_array(&replay.json, "events");
	merge = trace_merge_begin(&trace, &range);
	for (; left > 0 && trace_merge_next(merge, &event); left--)
		put_event(&replay, &event);
	json_close_array(&replay.json);
	json_close_object(&replay.json);
	json_end(&replay.json);
	trace_merge_end(merge);
	trace_close(&trace);
	window_end(&range);
}
