/*
 * Exports the JSON of chrome://tracing and similar viewers: a pair of events
 * for each call.  Arguments come just after the begin event of a call and a
 * result just before its end event; they become part of these events.  The
 * output is thread by thread: readers sort it.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/messages.h"
#include "base/numbers.h"
#include "export/format.h"
#include "export/lanes.h"
#include "trace/gaps.h"
#include "trace/messages.h"
#include "trace/reader.h"
#include "trace/trace.h"

struct chrome {
	struct json json;
	struct lanes *lanes;
	bool is_open;		 /* an event waits for its arguments */
	struct kept_text result; /* result of the call that is left next */
};

/* A call has no arguments if another event comes first. */
static void end_open(struct chrome *chrome)
{
	if (chrome->is_open)
		json_close_object(&chrome->json);
	chrome->is_open = false;
}

static void open_event(struct chrome *chrome, const char *phase,
		       const struct lane *lane)
{
	struct json *json = &chrome->json;

	end_open(chrome);
	json_line(json, 0);
	json_object(json);
	json_key_text(json, "ph", phase);
	json_key_count(json, "pid", lane->pid);
	json_key_count(json, "tid", lane->tid);
}

static void begin_event(struct chrome *chrome, const char *phase,
			const struct lane *lane, double time_ns)
{
	open_event(chrome, phase, lane);
	json_key(&chrome->json, "ts"); /* in us */
	json_thousandths(&chrome->json, whole(time_ns));
}

static void end_event(struct chrome *chrome)
{
	json_close_object(&chrome->json);
}

static void add_name(struct chrome *chrome, const char *name)
{
	json_key_text(&chrome->json, "name", name);
}

static void add_text(struct chrome *chrome, const char *key, const char *text)
{
	json_key_object(&chrome->json, "args");
	json_key_text(&chrome->json, key, text);
	json_close_object(&chrome->json);
}

static void name_lane(struct chrome *chrome, const char *what,
		      const struct lane *lane, const char *name)
{
	open_event(chrome, "M", lane);
	add_name(chrome, what);
	add_text(chrome, "name", name);
	end_event(chrome);
}

static void put_counter(struct chrome *chrome, const struct lane *lane,
			const struct trace_event *event)
{
	begin_event(chrome, "C", lane, event->time_ns);
	add_name(chrome, event->text);
	json_key_object(&chrome->json, "args");
	json_key_number(&chrome->json, "value", event->value, 17);
	json_close_object(&chrome->json);
	end_event(chrome);
}

/* Ranges need not nest, so they are asynchronous events; the number of the text
 * is their id. */
static void put_range(struct chrome *chrome, const char *phase,
		      const struct lane *lane, const struct trace_event *event)
{
	begin_event(chrome, phase, lane, event->time_ns);
	add_name(chrome, event->text);
	json_key_text(&chrome->json, "cat", "range");
	json_key_text(&chrome->json, "id", event->text);
	end_event(chrome);
}

static void put_instant(struct chrome *chrome, const struct lane *lane,
			const struct trace_event *event, const char *name)
{
	begin_event(chrome, "i", lane, event->time_ns);
	add_name(chrome, name);
	json_key_text(&chrome->json, "s", "t");
	if (event->kind == TRACE_LOST) {
		json_key_object(&chrome->json, "args");
		json_key_count(&chrome->json, "calls", event->count);
		json_close_object(&chrome->json);
	}
	end_event(chrome);
}

/* A gap lies within the innermost call, so it nests. */
static void put_gap(struct chrome *chrome, const struct lane *lane,
		    const struct trace_event *event)
{
	uint64_t ns = whole(event->time_ns + event->duration_ns) -
		      whole(event->time_ns);

	begin_event(chrome, "X", lane, event->time_ns);
	json_key(&chrome->json, "dur");
	json_thousandths(&chrome->json, ns);
	add_name(chrome, trace_gap_text(event));
	json_key_text(&chrome->json, "cat", event->text ? "message" : "gap");
	end_event(chrome);
}

/* The same for a wait, which is known when it has ended. */
static void put_wait(struct chrome *chrome, const struct lane *lane,
		     const struct trace_event *event)
{
	double begin_ns = event->time_ns - event->duration_ns;
	char text[2 * LOCK_TEXT];

	begin_event(chrome, "X", lane, begin_ns);
	json_key(&chrome->json, "dur");
	json_thousandths(&chrome->json,
			 whole(event->time_ns) - whole(begin_ns));
	add_name(chrome,
		 lanes_wait_text(chrome->lanes, event, text, sizeof(text)));
	json_key_text(&chrome->json, "cat", "lock");
	end_event(chrome);
}

static void put_leave(struct chrome *chrome, const struct lane *lane,
		      const struct trace_event *event)
{
	begin_event(chrome, "E", lane, event->time_ns);
	/* Chrome needs no name here; speedscope does not end a call without a
	 * name. */
	add_name(chrome, lanes_function_name(chrome->lanes, event));
	if (chrome->result.text[0])
		add_text(chrome, "result", chrome->result.text);
	chrome->result.text[0] = '\0';
	end_event(chrome);
}

static void name_places(struct chrome *chrome, const struct lane *lane)
{
	name_lane(chrome, "process_name", lane,
		  lanes_process_name(chrome->lanes, lane->process));
	name_lane(chrome, "thread_name", lane, lanes_name(chrome->lanes, lane));
}

static void put_event(struct chrome *chrome, const struct trace_event *event)
{
	struct lanes *lanes = chrome->lanes;
	bool is_new;
	uint32_t number = lanes_number(lanes, event, &is_new);
	const struct lane *lane = &lanes->all[number];

	if (is_new)
		name_places(chrome, lane);
	switch (event->kind) {
	case TRACE_ENTER:
		begin_event(chrome, "B", lane, event->time_ns);
		add_name(chrome, lanes_function_name(lanes, event));
		chrome->is_open = true;
		break;
	case TRACE_ARGUMENTS:
		if (chrome->is_open)
			add_text(chrome, "arguments", event->text);
		break;
	case TRACE_RESULT: keep_for_later(&chrome->result, event->text); break;
	case TRACE_LEAVE: put_leave(chrome, lane, event); break;
	case TRACE_NAME: name_places(chrome, lane); break;
	case TRACE_MARK: put_instant(chrome, lane, event, event->text); break;
	case TRACE_RANGE_BEGIN: put_range(chrome, "b", lane, event); break;
	case TRACE_RANGE_END: put_range(chrome, "e", lane, event); break;
	case TRACE_COUNTER: put_counter(chrome, lane, event); break;
	case TRACE_PAUSE:
		put_instant(chrome, lane, event, "recording stopped");
		break;
	case TRACE_RESUME:
		put_instant(chrome, lane, event, "recording went on");
		break;
	case TRACE_LOST: put_instant(chrome, lane, event, "calls lost"); break;
	case TRACE_GAP: put_gap(chrome, lane, event); break;
	case TRACE_WAIT: put_wait(chrome, lane, event); break;
	case TRACE_THREAD:
	case TRACE_MESSAGE:
	case TRACE_THREAD_END: break;
	}
}

/* A line from the call that sends to the call that receives. */
static void put_flow_end(struct chrome *chrome, const struct lane *lane,
			 const char *phase, uint32_t number, double time_ns)
{
	begin_event(chrome, phase, lane, time_ns);
	add_name(chrome, "message");
	json_key_text(&chrome->json, "cat", "message");
	json_key_count(&chrome->json, "id", number + 1);
}

static void put_flow(struct chrome *chrome, const struct message *message,
		     uint32_t number)
{
	const struct message_end *from = &message->from, *to = &message->to;
	const struct lane *sender = lanes_find(chrome->lanes, from->thread,
					       from->begin_ns);
	const struct lane *receiver = lanes_find(chrome->lanes, to->thread,
						 to->end_ns);
	struct json *json = &chrome->json;

	if (!sender || !receiver)
		return;
	put_flow_end(chrome, sender, "s", number, from->begin_ns);
	json_key_object(json, "args");
	json_key_count(json, "bytes", from->sent);
	json_key_number(json, "tag", message->tag, 17);
	json_close_object(json);
	end_event(chrome);
	put_flow_end(chrome, receiver, "f", number, to->end_ns);
	json_key_text(json, "bp", "e");
	end_event(chrome);
}

static void put_flows(struct chrome *chrome)
{
	const struct messages *messages = chrome->lanes->trace.messages;
	uint32_t i;

	for (i = 0; messages && i < messages->count; i++)
		put_flow(chrome, &messages->all[i], i);
}

static void chrome_print(FILE *out, struct lanes *lanes)
{
	struct chrome chrome = { .json = json_begin(out), .lanes = lanes };
	struct json *json = &chrome.json;
	struct trace_reader *reader;
	struct trace_event event;
	uint32_t i;

	keep_for_later(&chrome.result, "");
	json_object(json);
	json_key_text(json, "displayTimeUnit", "ns");
	json_key_array(json, "traceEvents");
	for (i = 0; i < lanes->trace.file_count; i++) {
		reader = trace_begin(&lanes->trace, i, &lanes->range);
		while (trace_next(reader, &event))
			put_event(&chrome, &event);
		trace_end(reader);
	}
	put_flows(&chrome);
	end_open(&chrome);
	json_line(json, 0);
	json_close_array(json);
	json_close_object(json);
	json_end(json);
	free(chrome.result.text);
}

EXPORT_FORMAT(chrome) = {
	.name = "chrome",
	.extension = "json",
	.description = "the calls of a trace, for chrome://tracing",
	.has_no_threads = true,
	.print_trace = chrome_print,
};
