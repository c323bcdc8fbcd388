/*
 * Exports Perfetto's protobuf packet by packet: concatenated messages are one
 * message.  The packets are compressed with gzip, which the readers of the format
 * recognize.
 *
 * Most packets are calls.  They are small and encoded here: each file of the trace is a
 * sequence of packets with a clock of its own, whose times are distances from the packet
 * before, with a track that packets need not name, and with function names that are
 * written once.  All other packets have times of the whole trace.
 *
 * Ranges of the program need not nest, so all ranges with the same text share a track of
 * their own below the thread's track.
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
#include "trace/messages.h"
#include "trace/reader.h"
#include "trace/trace.h"
#include "perfetto.pb-c.h"

#define STATE_IS_NEW	1u
#define STATE_IS_NEEDED 2u
/* Clocks of Perfetto: that of the trace, and the first one that a sequence may define. */
#define CLOCK_OF_TRACE	  6
#define CLOCK_OF_SEQUENCE 64

struct perfetto {
	struct gzip *gzip;
	struct lanes *lanes;
	uint8_t *packed;
	size_t room;
	uint32_t sequence; /* each file has one, from 1 on */
	bool has_begun;	   /* the sequence */
	uint32_t lane;	   /* the packets' one that name no other */
	uint64_t call_ns;  /* the time of the last call */
	/* The fields that all packets of the sequence have, encoded; of no more than
	 * eight bytes. */
	unsigned char common[8];
	size_t common_size;
	uint32_t *named; /* the last sequence that has the function's name */
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
	packet->trusted_packet_sequence_id = perfetto->sequence;
	packet->has_sequence_flags = true;
	packet->sequence_flags = perfetto->has_begun ? STATE_IS_NEEDED :
						       STATE_IS_NEW;
	perfetto->has_begun = true;
	trace.n_packet = 1;
	trace.packet = packets;
	size = perfetto__trace__get_packed_size(&trace);
	if (size > perfetto->room) {
		perfetto->room = size * 2;
		perfetto->packed = grow(perfetto->packed, perfetto->room, 1);
	}
	perfetto__trace__pack(&trace, perfetto->packed);
	gzip_write(perfetto->gzip, perfetto->packed, size);
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
		      double time_ns)
{
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;

	track_event->has_type = track_event->has_track_uuid = true;
	track_event->type = type;
	track_event->track_uuid = uuid;
	packet.has_timestamp = packet.has_timestamp_clock_id = true;
	packet.timestamp = whole(time_ns);
	packet.timestamp_clock_id = CLOCK_OF_TRACE;
	packet.track_event = track_event;
	write_packet(perfetto, &packet);
}

/* --- calls --- */

/* The first bytes of fields: their number and how they are stored. */
#define TAG(number, is_counted) (unsigned char)((number) << 3 | (is_counted)*2)
#define TRACE_PACKET		TAG(1, true)
#define PACKET_TIMESTAMP	TAG(8, false)
#define PACKET_SEQUENCE		TAG(10, false)
#define PACKET_EVENT		TAG(11, true)
#define PACKET_FLAGS		TAG(13, false)
#define EVENT_TYPE		TAG(9, false)
#define EVENT_NAME		TAG(10, false)
#define EVENT_TRACK		TAG(11, false)

static inline unsigned char *put_number(unsigned char *at, unsigned char tag,
					uint64_t number)
{
	*at++ = tag;
	for (; number >= 0x80; number >>= 7)
		*at++ = (unsigned char)(number | 0x80);
	*at++ = (unsigned char)number;
	return at;
}

/* Begins the sequence of packets of a file, whose clock begins with the trace. */
static void begin_sequence(struct perfetto *perfetto, uint32_t lane)
{
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
	Perfetto__TracePacketDefaults defaults =
		PERFETTO__TRACE_PACKET_DEFAULTS__INIT;
	Perfetto__TrackEventDefaults event =
		PERFETTO__TRACK_EVENT_DEFAULTS__INIT;
	Perfetto__ClockSnapshot snapshot = PERFETTO__CLOCK_SNAPSHOT__INIT;
	Perfetto__ClockSnapshot__Clock own =
		PERFETTO__CLOCK_SNAPSHOT__CLOCK__INIT;
	Perfetto__ClockSnapshot__Clock of_trace =
		PERFETTO__CLOCK_SNAPSHOT__CLOCK__INIT;
	Perfetto__ClockSnapshot__Clock *clocks[] = { &of_trace, &own };
	unsigned char *at;

	perfetto->sequence++;
	perfetto->has_begun = false;
	perfetto->lane = lane;
	perfetto->call_ns = 0;
	of_trace.has_clock_id = of_trace.has_timestamp = true;
	of_trace.clock_id = CLOCK_OF_TRACE;
	own.has_clock_id = own.has_timestamp = own.has_is_incremental = true;
	own.clock_id = CLOCK_OF_SEQUENCE;
	own.is_incremental = true;
	snapshot.n_clocks = 2;
	snapshot.clocks = clocks;
	event.has_track_uuid = true;
	event.track_uuid = lane_uuid(lane);
	defaults.has_timestamp_clock_id = true;
	defaults.timestamp_clock_id = CLOCK_OF_SEQUENCE;
	defaults.track_event_defaults = &event;
	packet.clock_snapshot = &snapshot;
	packet.trace_packet_defaults = &defaults;
	write_packet(perfetto, &packet);
	at = put_number(perfetto->common, PACKET_SEQUENCE, perfetto->sequence);
	at = put_number(at, PACKET_FLAGS, STATE_IS_NEEDED);
	perfetto->common_size = (size_t)(at - perfetto->common);
}

/* The distance from the call before, in the sequence's clock. */
static uint64_t take_distance(struct perfetto *perfetto, double time_ns)
{
	uint64_t time = whole(time_ns), distance;

	if (time < perfetto->call_ns)
		time = perfetto->call_ns;
	distance = time - perfetto->call_ns;
	perfetto->call_ns = time;
	return distance;
}

/* A begin or end of a call that has neither a new name nor values: what
 * perfetto__trace__pack() would write in ten times the time.  No packet is as long as
 * 128 bytes, so each size takes a byte. */
static void put_plain_call(struct perfetto *perfetto, uint32_t lane,
			   Perfetto__TrackEvent__Type type, uint64_t name,
			   double time_ns)
{
	unsigned char *packet = gzip_room(perfetto->gzip), *at = packet + 2;
	unsigned char *event;

	at = put_number(at, PACKET_TIMESTAMP, take_distance(perfetto, time_ns));
	memcpy(at, perfetto->common, sizeof(perfetto->common));
	event = at += perfetto->common_size;
	at = put_number(at + 2, EVENT_TYPE, (uint64_t)type);
	if (name)
		at = put_number(at, EVENT_NAME, name);
	if (lane != perfetto->lane)
		at = put_number(at, EVENT_TRACK, lane_uuid(lane));
	event[0] = PACKET_EVENT;
	event[1] = (unsigned char)(at - event - 2);
	packet[0] = TRACE_PACKET;
	packet[1] = (unsigned char)(at - packet - 2);
	gzip_wrote(perfetto->gzip, (size_t)(at - packet));
}

/* A begin or end of a call with its arguments or result, and with the function's name
 * where the sequence does not have it yet. */
static void put_call(struct perfetto *perfetto, uint32_t lane,
		     Perfetto__TrackEvent *event, Perfetto__InternedData *names,
		     double time_ns, const char *kind, const char *values)
{
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
	Perfetto__DebugAnnotation note = PERFETTO__DEBUG_ANNOTATION__INIT;
	Perfetto__DebugAnnotation *notes[] = { &note };

	if (values) {
		note.name = (char *)kind;
		note.string_value = clean(values);
		event->n_debug_annotations = 1;
		event->debug_annotations = notes;
	}
	event->has_type = event->has_track_uuid = true;
	event->track_uuid = lane_uuid(lane);
	packet.has_timestamp = true;
	packet.timestamp = take_distance(perfetto, time_ns);
	packet.track_event = event;
	packet.interned_data = names;
	write_packet(perfetto, &packet);
	free(values ? note.string_value : NULL);
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
	bool is_new = perfetto->named[function] != perfetto->sequence;

	enter.type = PERFETTO__TRACK_EVENT__TYPE__TYPE_SLICE_BEGIN;
	if (!is_new && !arguments) {
		put_plain_call(perfetto, lane, enter.type, function + 1ull,
			       event->time_ns);
		return;
	}
	enter.has_name_iid = true;
	enter.name_iid = function + 1ull;
	if (is_new) {
		perfetto->named[function] = perfetto->sequence;
		name.has_iid = true;
		name.iid = function + 1ull;
		name.name = clean(lanes_function_name(lanes, event));
		data.n_event_names = 1;
		data.event_names = names;
	}
	put_call(perfetto, lane, &enter, is_new ? &data : NULL, event->time_ns,
		 "arguments", arguments);
	free(is_new ? name.name : NULL);
}

static void put_leave(struct perfetto *perfetto, uint32_t lane,
		      const struct trace_event *event, const char *result)
{
	Perfetto__TrackEvent leave = PERFETTO__TRACK_EVENT__INIT;

	leave.type = PERFETTO__TRACK_EVENT__TYPE__TYPE_SLICE_END;
	if (result)
		put_call(perfetto, lane, &leave, NULL, event->time_ns, "result",
			 result);
	else
		put_plain_call(perfetto, lane, leave.type, 0, event->time_ns);
}

/* --- other events --- */

static void put_named(struct perfetto *perfetto, uint64_t uuid,
		      Perfetto__TrackEvent__Type type, double time_ns,
		      const char *text)
{
	Perfetto__TrackEvent event = PERFETTO__TRACK_EVENT__INIT;
	char *name = clean(text);

	event.name = name;
	put_event(perfetto, &event, type, uuid, time_ns);
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
		  text_track(perfetto, lane, event->text, true),
		  event->time_ns);
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

/* Writes an enter, which waits until the next event shows its arguments or that it has
 * none. */
static void flush(struct perfetto *perfetto, const struct trace_event **enter,
		  uint32_t lane, const char *arguments)
{
	if (*enter)
		put_enter(perfetto, lane, *enter, arguments);
	*enter = NULL;
}

static void put_file(struct perfetto *perfetto, struct trace_reader *reader)
{
	struct trace_event events[2], *event = &events[0];
	const struct trace_event *enter = NULL;
	uint32_t lane, enter_lane = 0;
	bool is_new, has_begun = false;

	while (trace_next(reader, event)) {
		lane = lanes_number(perfetto->lanes, event, &is_new);
		if (!has_begun)
			begin_sequence(perfetto, lane);
		has_begun = true;
		flush(perfetto, &enter, enter_lane,
		      event->kind == TRACE_ARGUMENTS ? event->text : NULL);
		if (is_new)
			describe_lane(perfetto, lane);
		if (event->kind == TRACE_ENTER) {
			enter = event;
			enter_lane = lane;
			event = event == events ? &events[1] : &events[0];
		} else if (event->kind == TRACE_LEAVE) {
			put_leave(perfetto, lane, event,
				  perfetto->result.text[0] ?
					  perfetto->result.text :
					  NULL);
			perfetto->result.text[0] = '\0';
		} else if (event->kind == TRACE_RESULT) {
			keep_for_later(&perfetto->result, event->text);
		} else if (event->kind != TRACE_ARGUMENTS) {
			put_other(perfetto, lane, event);
		}
	}
	flush(perfetto, &enter, enter_lane, NULL);
}

/* One end of a line from the call that sends to the call that receives. */
static void put_flow_end(struct perfetto *perfetto, const struct lane *lane,
			 double time_ns, const char *text, uint64_t number,
			 bool is_last)
{
	Perfetto__TrackEvent event = PERFETTO__TRACK_EVENT__INIT;
	char *name = clean(text);

	event.name = name;
	event.n_flow_ids = !is_last;
	event.n_terminating_flow_ids = is_last;
	event.flow_ids = event.terminating_flow_ids = &number;
	put_event(perfetto, &event, PERFETTO__TRACK_EVENT__TYPE__TYPE_INSTANT,
		  lane_uuid((uint32_t)(lane - perfetto->lanes->all)), time_ns);
	free(name);
}

static void put_flow(struct perfetto *perfetto, const struct message *message,
		     uint64_t number)
{
	const struct message_end *from = &message->from, *to = &message->to;
	const struct lane *sender = lanes_find(perfetto->lanes, from->thread,
					       from->begin_ns);
	const struct lane *receiver = lanes_find(perfetto->lanes, to->thread,
						 to->end_ns);
	char text[100];

	if (!sender || !receiver)
		return;
	snprintf(text, sizeof(text), "send %" PRIu64 " bytes, tag %d",
		 from->sent, message->tag);
	put_flow_end(perfetto, sender, from->begin_ns, text, number, false);
	snprintf(text, sizeof(text), "received %" PRIu64 " bytes, tag %d",
		 to->received, message->tag);
	put_flow_end(perfetto, receiver, to->end_ns, text, number, true);
}

static void put_flows(struct perfetto *perfetto)
{
	const struct messages *messages = perfetto->lanes->trace.messages;
	uint32_t i;

	for (i = 0; messages && i < messages->count; i++)
		put_flow(perfetto, &messages->all[i], i + 1);
}

static void perfetto_print(FILE *out, struct lanes *lanes)
{
	struct perfetto perfetto = { .lanes = lanes };
	struct trace_reader *reader;
	uint32_t i;

	perfetto.named = allocate(lanes->model->function_count,
				  sizeof(*perfetto.named));
	keep_for_later(&perfetto.result, "");
	perfetto.gzip = gzip_begin(out);
	for (i = 0; i < lanes->trace.file_count; i++) {
		reader = trace_begin(&lanes->trace, i, &lanes->range);
		put_file(&perfetto, reader);
		trace_end(reader);
	}
	put_flows(&perfetto);
	gzip_end(perfetto.gzip);
	names_free(&perfetto.tracks);
	names_free(&perfetto.processes);
	free(perfetto.named);
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
