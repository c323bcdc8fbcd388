/*
 * Exports Perfetto's protobuf packet by packet: concatenated messages are one
 * message.  All of it is compressed with gzip, which the readers of the format
 * recognize: a call takes 34 bytes, and about 7 of them are left.  Each function name is written once.  Ranges of the program need not
 * nest, so all ranges with the same text share a track of their own below the
 * thread's track.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/gzip.h"
#include "base/memory.h"
#include "base/messages.h"
#include "base/names.h"
#include "base/numbers.h"
#include "base/text.h"
#include "export/format.h"
#include "export/lanes.h"
#include "trace/gaps.h"
#include "trace/reader.h"
#include "trace/trace.h"
#include "perfetto.pb-c.h"

#define SEQUENCE	1
#define STATE_IS_NEW	1u
#define STATE_IS_NEEDED 2u

struct perfetto {
	struct gzip gzip;
	struct lanes *lanes;
	uint8_t *packed;
	size_t room;
	bool has_begun;
	bool *is_named;
	struct names tracks; /* "kind/lane/text" of ranges and counters */
	struct names processes;
	struct kept_text result; /* result of the call that is left next */
};

static void write_packet(struct perfetto *perfetto,
			 Perfetto__TracePacket *packet)
{
	Perfetto__TracePacket *packets[] = { packet };
	Perfetto__Trace trace = PERFETTO__TRACE__INIT;
	size_t size;

	packet->has_trusted_packet_sequence_id = true;
	packet->trusted_packet_sequence_id = SEQUENCE;
	packet->has_sequence_flags = true;
	packet->sequence_flags = perfetto->has_begun ?
					 STATE_IS_NEEDED :
					 STATE_IS_NEW | STATE_IS_NEEDED;
	perfetto->has_begun = true;
	trace.n_packet = 1;
	trace.packet = packets;
	size = perfetto__trace__get_packed_size(&trace);
	if (size > perfetto->room) {
		perfetto->room = size * 2;
		perfetto->packed = grow(perfetto->packed, perfetto->room, 1);
	}
	perfetto__trace__pack(&trace, perfetto->packed);
	gzip_write(&perfetto->gzip, perfetto->packed, size);
}

/* Strings in protobuf must be UTF-8. */
static char *clean(const char *text)
{
	char *copy = strdup(text);

	if (!copy)
		die("out of memory");
	make_harmless(copy);
	return copy;
}

/* --- tracks --- */

/* Lanes, processes and texts are numbered separately.  Lanes have the smallest
 * numbers, because each event has the number of its lane; 0 is no track. */
static uint64_t lane_uuid(uint32_t lane)
{
	return (uint64_t)lane + 1;
}

static uint64_t process_uuid(uint32_t process)
{
	return 1ull << 33 | process;
}

static uint64_t text_uuid(uint32_t track)
{
	return 1ull << 34 | track;
}

static void describe(struct perfetto *perfetto,
		     Perfetto__TrackDescriptor *track)
{
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;

	packet.track_descriptor = track;
	write_packet(perfetto, &packet);
}

static void describe_process(struct perfetto *perfetto, uint32_t process)
{
	struct lanes *lanes = perfetto->lanes;
	Perfetto__TrackDescriptor track = PERFETTO__TRACK_DESCRIPTOR__INIT;
	Perfetto__ProcessDescriptor about = PERFETTO__PROCESS_DESCRIPTOR__INIT;
	uint32_t count = perfetto->processes.count;
	char *name;

	if (names_add(&perfetto->processes, keep_format("%u", process)) < count)
		return;
	name = clean(lanes_process_name(lanes, process));
	about.has_pid = true;
	about.pid = (int32_t)lanes_pid(lanes, process);
	about.process_name = name;
	track.has_uuid = true;
	track.uuid = process_uuid(process);
	track.process = &about;
	describe(perfetto, &track);
	free(name);
}

static void describe_lane(struct perfetto *perfetto, uint32_t number)
{
	struct lanes *lanes = perfetto->lanes;
	const struct lane *lane = &lanes->all[number];
	Perfetto__TrackDescriptor track = PERFETTO__TRACK_DESCRIPTOR__INIT;
	Perfetto__ThreadDescriptor about = PERFETTO__THREAD_DESCRIPTOR__INIT;
	char *name = clean(lanes_name(lanes, lane));

	describe_process(perfetto, lane->process);
	about.has_pid = about.has_tid = true;
	about.pid = (int32_t)lane->pid;
	about.tid = (int32_t)lane->tid;
	about.thread_name = name;
	track.has_uuid = track.has_parent_uuid = true;
	track.uuid = lane_uuid(number);
	track.parent_uuid = process_uuid(lane->process);
	track.thread = &about;
	describe(perfetto, &track);
	free(name);
}

/* The track of all ranges, or of the counter, with this text. */
static uint64_t text_track(struct perfetto *perfetto, uint32_t lane,
			   const char *text, bool is_counter)
{
	Perfetto__TrackDescriptor track = PERFETTO__TRACK_DESCRIPTOR__INIT;
	Perfetto__CounterDescriptor about = PERFETTO__COUNTER_DESCRIPTOR__INIT;
	uint32_t process = perfetto->lanes->all[lane].process;
	const char *key = is_counter ? keep_format("c/%u/%s", process, text) :
				       keep_format("r/%u/%s", lane, text);
	uint32_t count = perfetto->tracks.count;
	uint32_t number = names_add(&perfetto->tracks, key);
	char *name;

	if (number < count)
		return text_uuid(number);
	name = clean(text);
	track.has_uuid = track.has_parent_uuid = true;
	track.uuid = text_uuid(number);
	track.parent_uuid = is_counter ? process_uuid(process) :
					 lane_uuid(lane);
	track.name = name;
	track.counter = is_counter ? &about : NULL;
	describe(perfetto, &track);
	free(name);
	return text_uuid(number);
}

/* --- events --- */

static void put_event(struct perfetto *perfetto,
		      Perfetto__TrackEvent *track_event,
		      Perfetto__TrackEvent__Type type, uint64_t uuid,
		      double time_ns, Perfetto__InternedData *names)
{
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;

	track_event->has_type = track_event->has_track_uuid = true;
	track_event->type = type;
	track_event->track_uuid = uuid;
	packet.has_timestamp = true;
	packet.timestamp = whole(time_ns);
	packet.track_event = track_event;
	packet.interned_data = names;
	write_packet(perfetto, &packet);
}

static void put_enter(struct perfetto *perfetto, uint32_t lane,
		      const struct trace_event *event, const char *arguments)
{
	struct lanes *lanes = perfetto->lanes;
	uint32_t function = lanes->recording->sites[event->site].function;
	Perfetto__TrackEvent enter = PERFETTO__TRACK_EVENT__INIT;
	Perfetto__EventName name = PERFETTO__EVENT_NAME__INIT;
	Perfetto__InternedData data = PERFETTO__INTERNED_DATA__INIT;
	Perfetto__EventName *names[] = { &name };
	Perfetto__DebugAnnotation note = PERFETTO__DEBUG_ANNOTATION__INIT;
	Perfetto__DebugAnnotation *notes[] = { &note };
	bool is_new = !perfetto->is_named[function];

	enter.has_name_iid = true;
	enter.name_iid = function + 1;
	if (is_new) {
		perfetto->is_named[function] = true;
		name.has_iid = true;
		name.iid = function + 1;
		name.name = clean(lanes_function_name(lanes, event));
		data.n_event_names = 1;
		data.event_names = names;
	}
	if (arguments) {
		note.name = (char *)"arguments";
		note.string_value = clean(arguments);
		enter.n_debug_annotations = 1;
		enter.debug_annotations = notes;
	}
	put_event(perfetto, &enter,
		  PERFETTO__TRACK_EVENT__TYPE__TYPE_SLICE_BEGIN,
		  lane_uuid(lane), event->time_ns, is_new ? &data : NULL);
	free(is_new ? name.name : NULL);
	free(arguments ? note.string_value : NULL);
}

static void put_leave(struct perfetto *perfetto, uint32_t lane,
		      const struct trace_event *event, const char *result)
{
	Perfetto__TrackEvent leave = PERFETTO__TRACK_EVENT__INIT;
	Perfetto__DebugAnnotation note = PERFETTO__DEBUG_ANNOTATION__INIT;
	Perfetto__DebugAnnotation *notes[] = { &note };

	if (result) {
		note.name = (char *)"result";
		note.string_value = clean(result);
		leave.n_debug_annotations = 1;
		leave.debug_annotations = notes;
	}
	put_event(perfetto, &leave, PERFETTO__TRACK_EVENT__TYPE__TYPE_SLICE_END,
		  lane_uuid(lane), event->time_ns, NULL);
	free(result ? note.string_value : NULL);
}

static void put_named(struct perfetto *perfetto, uint64_t uuid,
		      Perfetto__TrackEvent__Type type, double time_ns,
		      const char *text)
{
	Perfetto__TrackEvent event = PERFETTO__TRACK_EVENT__INIT;
	char *name = clean(text);

	event.name = name;
	put_event(perfetto, &event, type, uuid, time_ns, NULL);
	free(name);
}

static void put_slice(struct perfetto *perfetto, uint32_t lane, double from_ns,
		      double to_ns, const char *text)
{
	put_named(perfetto, lane_uuid(lane),
		  PERFETTO__TRACK_EVENT__TYPE__TYPE_SLICE_BEGIN, from_ns, text);
	put_named(perfetto, lane_uuid(lane),
		  PERFETTO__TRACK_EVENT__TYPE__TYPE_SLICE_END, to_ns, text);
}

static void put_wait(struct perfetto *perfetto, uint32_t lane,
		     const struct trace_event *event)
{
	char text[2 * LOCK_TEXT];

	put_slice(perfetto, lane, event->time_ns - event->duration_ns,
		  event->time_ns,
		  lanes_wait_text(perfetto->lanes, event, text, sizeof(text)));
}

static void put_counter(struct perfetto *perfetto, uint32_t lane,
			const struct trace_event *event)
{
	Perfetto__TrackEvent counter = PERFETTO__TRACK_EVENT__INIT;

	counter.has_double_counter_value = true;
	counter.double_counter_value = event->value;
	put_event(perfetto, &counter, PERFETTO__TRACK_EVENT__TYPE__TYPE_COUNTER,
		  text_track(perfetto, lane, event->text, true), event->time_ns,
		  NULL);
}

static void put_other(struct perfetto *perfetto, uint32_t lane,
		      const struct trace_event *event)
{
	const Perfetto__TrackEvent__Type instant =
		PERFETTO__TRACK_EVENT__TYPE__TYPE_INSTANT;
	const char *text = event->text;

	switch (event->kind) {
	case TRACE_NAME: describe_lane(perfetto, lane); return;
	case TRACE_GAP:
		put_slice(perfetto, lane, event->time_ns,
			  event->time_ns + event->duration_ns,
			  trace_gap_text(event));
		return;
	case TRACE_WAIT: put_wait(perfetto, lane, event); return;
	case TRACE_RANGE_BEGIN:
	case TRACE_RANGE_END:
		put_named(
			perfetto, text_track(perfetto, lane, text, false),
			event->kind == TRACE_RANGE_BEGIN ?
				PERFETTO__TRACK_EVENT__TYPE__TYPE_SLICE_BEGIN :
				PERFETTO__TRACK_EVENT__TYPE__TYPE_SLICE_END,
			event->time_ns, text);
		return;
	case TRACE_COUNTER: put_counter(perfetto, lane, event); return;
	case TRACE_PAUSE: text = "recording stopped"; break;
	case TRACE_RESUME: text = "recording went on"; break;
	case TRACE_LOST:
		text = keep_format("%" PRIu64 " calls lost", event->count);
		break;
	case TRACE_MARK: break;
	default: return;
	}
	put_named(perfetto, lane_uuid(lane), instant, event->time_ns, text);
}

/* An event that may carry the arguments or result of a call. */
struct waiting {
	bool is_there;
	struct trace_event event;
	uint32_t lane;
};

static void flush(struct perfetto *perfetto, struct waiting *enter,
		  const char *arguments)
{
	if (enter->is_there)
		put_enter(perfetto, enter->lane, &enter->event, arguments);
	enter->is_there = false;
}

static void put_file(struct perfetto *perfetto, struct trace_reader *reader)
{
	struct waiting enter = { .is_there = false };
	struct trace_event event;
	bool is_new;
	uint32_t lane;

	while (trace_next(reader, &event)) {
		lane = lanes_number(perfetto->lanes, &event, &is_new);
		flush(perfetto, &enter,
		      event.kind == TRACE_ARGUMENTS ? event.text : NULL);
		if (is_new)
			describe_lane(perfetto, lane);
		if (event.kind == TRACE_ENTER) {
			enter = (struct waiting){ true, event, lane };
		} else if (event.kind == TRACE_LEAVE) {
			put_leave(perfetto, lane, &event,
				  perfetto->result.text[0] ?
					  perfetto->result.text :
					  NULL);
			perfetto->result.text[0] = '\0';
		} else if (event.kind == TRACE_RESULT) {
			keep_for_later(&perfetto->result, event.text);
		} else if (event.kind != TRACE_ARGUMENTS) {
			put_other(perfetto, lane, &event);
		}
	}
	flush(perfetto, &enter, NULL);
}

static void perfetto_print(FILE *out, struct lanes *lanes)
{
	struct perfetto perfetto = { .lanes = lanes };
	struct trace_reader *reader;
	uint32_t i;

	perfetto.is_named = allocate(lanes->model->function_count,
				     sizeof(*perfetto.is_named));
	keep_for_later(&perfetto.result, "");
	gzip_begin(&perfetto.gzip, out);
	for (i = 0; i < lanes->trace.file_count; i++) {
		reader = trace_begin(&lanes->trace, i, &lanes->range);
		put_file(&perfetto, reader);
		trace_end(reader);
	}
	gzip_end(&perfetto.gzip);
	names_free(&perfetto.tracks);
	names_free(&perfetto.processes);
	free(perfetto.is_named);
	free(perfetto.packed);
	free(perfetto.result.text);
}

EXPORT_FORMAT(perfetto) = {
	.name = "perfetto",
	.extension = "perfetto-trace",
	.description = "the calls of a trace, for https://ui.perfetto.dev",
	.is_binary = true,
	.has_no_threads = true,
	.print_trace = perfetto_print,
};
