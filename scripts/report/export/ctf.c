/*
 * Exports Common Trace Format 1.8 for babeltrace2 and Trace Compass: a
 * directory with one metadata file, and a stream of packets for each file of a
 * thread.  Functions are an enumeration, so an event of a call holds a number.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <shim/format.h>

#include "base/directory.h"
#include "base/memory.h"
#include "base/messages.h"
#include "base/numbers.h"
#include "base/text.h"
#include "export/format.h"
#include "export/lanes.h"
#include "model/functions.h"
#include "model/model.h"
#include "read/recording.h"
#include "trace/gaps.h"
#include "trace/reader.h"
#include "trace/trace.h"

#define MAGIC	    0xc1fc1fc1u
#define PACKET_SIZE 65536

enum {
	CTF_ENTER,
	CTF_LEAVE,
	CTF_MARK,
	CTF_RANGE_BEGIN,
	CTF_RANGE_END,
	CTF_COUNTER,
	CTF_ARGUMENTS,
	CTF_RESULT,
	CTF_LOST,
	CTF_PAUSE,
	CTF_RESUME,
	CTF_GAP,
	CTF_WAIT
};

/* One packet, while it is being filled. */
struct packet {
	unsigned char *bytes;
	size_t size, room;
	size_t header; /* size of the header: events begin here */
	uint64_t first_ns, last_ns;
};

struct ctf {
	struct lanes *lanes;
	const char *directory;
	FILE *out;
	const char *path; /* of @out */
	struct packet packet;
	struct lane lane; /* lane of the packet */
	/* name of its thread; NULL: no packet has begun */
	const char *thread_name;
	uint64_t discarded; /* lost events in this stream so far */
};

/* --- packets --- */

static void put_bytes(struct packet *packet, const void *bytes, size_t size)
{
	while (packet->size + size > packet->room) {
		packet->room = packet->room ? packet->room * 2 :
					      2 * PACKET_SIZE;
		packet->bytes = grow(packet->bytes, packet->room, 1);
	}
	memcpy(packet->bytes + packet->size, bytes, size);
	packet->size += size;
}

/* Little-endian, as the metadata states. */
static void put_number(struct packet *packet, uint64_t value, unsigned int size)
{
	unsigned char bytes[8];
	unsigned int i;

	for (i = 0; i < size; i++)
		bytes[i] = (unsigned char)(value >> 8 * i);
	put_bytes(packet, bytes, size);
}

static void put_string(struct packet *packet, const char *text)
{
	char *copy = strdup(text);

	if (!copy)
		die("out of memory");
	make_harmless(copy);
	put_bytes(packet, copy, strlen(copy) + 1);
	free(copy);
}

/* The sizes and times in the header are not known yet. */
static void put_header(struct ctf *ctf, uint64_t bits)
{
	struct packet *packet = &ctf->packet;
	const struct trace_thread *thread =
		&ctf->lanes->trace.threads[ctf->lane.thread];

	packet->size = 0;
	put_number(packet, MAGIC, 4);
	put_number(packet, 0, 4);
	put_number(packet, packet->first_ns, 8);
	put_number(packet, packet->last_ns, 8);
	put_number(packet, bits, 8);
	put_number(packet, bits, 8);
	put_number(packet, ctf->discarded, 8);
	put_number(packet, ctf->lane.pid, 4);
	put_number(packet, thread->tid, 4);
	put_string(packet, ctf->thread_name);
	packet->header = packet->size;
}

static void write_packet(struct ctf *ctf)
{
	struct packet *packet = &ctf->packet;
	size_t size = packet->size;

	if (!ctf->thread_name || size == packet->header)
		return;
	put_header(ctf, (uint64_t)size * 8);
	if (fwrite(packet->bytes, 1, size, ctf->out) != size)
		directory_give_up(ctf->path);
	packet->size = packet->header;
	packet->first_ns = packet->last_ns;
}

static void begin_event(struct ctf *ctf, const struct trace_event *event,
			unsigned int id)
{
	struct packet *packet = &ctf->packet;
	uint64_t ns = whole(event->time_ns);

	if (packet->size >= PACKET_SIZE)
		write_packet(ctf);
	if (ns < packet->last_ns)
		ns = packet->last_ns;
	if (packet->size == packet->header)
		packet->first_ns = ns;
	packet->last_ns = ns;
	put_number(packet, id, 1);
	put_number(packet, ns, 8);
	put_number(packet, event->track, 4);
}

static void put_event(struct ctf *ctf, const struct trace_event *event)
{
	static const struct {
		unsigned char id;
		bool is_there, is_call, has_text;
	} kinds[] = {
		[TRACE_ENTER] = { CTF_ENTER, true, true, false },
		[TRACE_LEAVE] = { CTF_LEAVE, true, true, false },
		[TRACE_MARK] = { CTF_MARK, true, false, true },
		[TRACE_RANGE_BEGIN] = { CTF_RANGE_BEGIN, true, false, true },
		[TRACE_RANGE_END] = { CTF_RANGE_END, true, false, true },
		[TRACE_COUNTER] = { CTF_COUNTER, true, false, true },
		[TRACE_ARGUMENTS] = { CTF_ARGUMENTS, true, false, true },
		[TRACE_RESULT] = { CTF_RESULT, true, false, true },
		[TRACE_PAUSE] = { CTF_PAUSE, true, false, false },
		[TRACE_RESUME] = { CTF_RESUME, true, false, false },
		[TRACE_LOST] = { CTF_LOST, true, false, false },
		[TRACE_GAP] = { CTF_GAP, true, false, false },
		[TRACE_WAIT] = { CTF_WAIT, true, false, false },
	};
	struct packet *packet = &ctf->packet;
	char text[2 * LOCK_TEXT];
	uint64_t bits;

	if (event->kind >= sizeof(kinds) / sizeof(*kinds) ||
	    !kinds[event->kind].is_there)
		return;
	begin_event(ctf, event, kinds[event->kind].id);
	if (kinds[event->kind].is_call)
		put_number(packet,
			   ctf->lanes->recording->sites[event->site].function,
			   4);
	if (kinds[event->kind].has_text)
		put_string(packet, event->text);
	if (event->kind == TRACE_COUNTER) {
		memcpy(&bits, &event->value, sizeof(bits));
		put_number(packet, bits, 8);
	}
	if (event->kind == TRACE_GAP) {
		put_string(packet, trace_gap_text(event));
		put_number(packet, whole(event->duration_ns), 8);
	}
	if (event->kind == TRACE_WAIT) {
		put_string(packet, lanes_wait_text(ctf->lanes, event, text,
						   sizeof(text)));
		put_number(packet, whole(event->duration_ns), 8);
	}
	if (event->kind != TRACE_LOST)
		return;
	put_string(packet, event->cause < SHIM_LOST_CAUSES ?
				   lost_names[event->cause] :
				   "other");
	put_number(packet, event->count, 8);
	write_packet(ctf);
	ctf->discarded += event->count;
}

/* A packet belongs to one thread and holds its name. */
static void begin_packet(struct ctf *ctf, const struct lane *lane)
{
	const char *name = ctf->lanes->trace.threads[lane->thread].name;

	ctf->lane = *lane;
	ctf->thread_name = name ? name : "";
	put_header(ctf, 0);
}

static void put_file(struct ctf *ctf, struct trace_reader *reader)
{
	struct lanes *lanes = ctf->lanes;
	struct trace_event event;
	const struct lane *lane;
	uint32_t number;
	bool is_new;

	while (trace_next(reader, &event)) {
		number = lanes_number(lanes, &event, &is_new);
		lane = &lanes->all[number];
		if (!ctf->thread_name || ctf->lane.thread != lane->thread ||
		    event.kind == TRACE_NAME) {
			write_packet(ctf);
			begin_packet(ctf, lane);
		}
		put_event(ctf, &event);
	}
	write_packet(ctf);
}

static void open_file(struct ctf *ctf, const char *name)
{
	ctf->path = keep_format("%s/%s", ctf->directory, name);
	ctf->out = fopen(ctf->path, "we");
	if (!ctf->out)
		directory_give_up(ctf->path);
}

static void close_file(struct ctf *ctf)
{
	if (fclose(ctf->out) != 0)
		directory_give_up(ctf->path);
}

static void put_stream(struct ctf *ctf, uint32_t file)
{
	struct trace_reader *reader;

	open_file(ctf, keep_format("stream_%u", file));
	ctf->thread_name = NULL;
	ctf->discarded = 0;
	ctf->packet.size = ctf->packet.header = 0;
	ctf->packet.first_ns = ctf->packet.last_ns = 0;
	reader = trace_begin(&ctf->lanes->trace, file, &ctf->lanes->range);
	put_file(ctf, reader);
	trace_end(reader);
	close_file(ctf);
}

/* --- the metadata --- */

static const char types[] =
	"/* CTF 1.8 */\n"
	"typealias integer { size = 8; align = 8; } := byte;\n"
	"typealias integer { size = 32; align = 8; } := word;\n"
	"typealias integer { size = 64; align = 8; } := number;\n"
	"typealias floating_point { exp_dig = 11; mant_dig = 53; align = 8; } := real;\n"
	"trace {\n"
	"	major = 1; minor = 8; byte_order = le;\n"
	"	packet.header := struct { word magic; word stream_id; };\n"
	"};\n";

static const char stream[] =
	"typealias integer {\n"
	"	size = 64; align = 8; map = clock.monotonic.value;\n"
	"} := time;\n"
	"stream {\n"
	"	id = 0;\n"
	"	packet.context := struct {\n"
	"		time timestamp_begin; time timestamp_end;\n"
	"		number content_size; number packet_size;\n"
	"		number events_discarded;\n"
	"		word pid; word tid; string thread;\n"
	"	};\n"
	"	event.header := struct { byte id; time timestamp; };\n"
	"	event.context := struct { word coroutine; };\n"
	"};\n";

static const struct {
	const char *name, *fields;
} events[] = {
	[CTF_ENTER] = { "enter", "enum function function;" },
	[CTF_LEAVE] = { "leave", "enum function function;" },
	[CTF_MARK] = { "mark", "string text;" },
	[CTF_RANGE_BEGIN] = { "range_begin", "string text;" },
	[CTF_RANGE_END] = { "range_end", "string text;" },
	[CTF_COUNTER] = { "counter", "string text; real value;" },
	[CTF_ARGUMENTS] = { "arguments", "string text;" },
	[CTF_RESULT] = { "result", "string text;" },
	[CTF_LOST] = { "lost", "string cause; number calls;" },
	[CTF_PAUSE] = { "pause", "" },
	[CTF_RESUME] = { "resume", "" },
	[CTF_GAP] = { "gap", "string text; number duration_ns;" },
	[CTF_WAIT] = { "wait", "string text; number duration_ns;" },
};

/* Prints a string in the metadata's quotes. */
static void put_quoted(FILE *out, const char *text)
{
	char *copy = strdup(text), *at;

	if (!copy)
		die("out of memory");
	make_harmless(copy);
	fputc('"', out);
	for (at = copy; *at; at++) {
		if (*at == '"' || *at == '\\')
			fputc('\\', out);
		fputc(*at, out);
	}
	fputc('"', out);
	free(copy);
}

static void put_functions(struct ctf *ctf)
{
	const struct model *model = ctf->lanes->model;
	uint32_t i;

	fputs("enum function : word {\n", ctf->out);
	for (i = 0; i < model->function_count; i++) {
		fputc('\t', ctf->out);
		put_quoted(ctf->out, shown_name(&model->functions[i],
						ctf->lanes->options));
		fprintf(ctf->out, " = %u%s\n", i,
			i + 1 < model->function_count ? "," : "");
	}
	if (!model->function_count)
		fputs("\t\"none\" = 0\n", ctf->out);
	fputs("};\n", ctf->out);
}

/* The wall-clock time at which the trace's clock was 0: seconds and
 * nanoseconds. */
static void put_clock(struct ctf *ctf)
{
	const struct recording *recording = ctf->lanes->recording;
	const struct shim_meta *meta = &recording->processes[0].meta;
	uint64_t start = ctf->lanes->trace.start_mono_ns;
	uint64_t offset = 0;

	if (meta->start_real_ns && start <= meta->first_mono_ns)
		offset = meta->start_real_ns - (meta->first_mono_ns - start);
	fprintf(ctf->out,
		"clock {\n\tname = \"monotonic\";\n"
		"\tfreq = 1000000000;\n\toffset_s = %" PRIu64 ";\n"
		"\toffset = %" PRIu64 ";\n};\n",
		offset / 1000000000, offset % 1000000000);
}

static void put_metadata(struct ctf *ctf)
{
	size_t i;

	open_file(ctf, "metadata");
	fputs(types, ctf->out);
	put_clock(ctf);
	fputs(stream, ctf->out);
	put_functions(ctf);
	for (i = 0; i < sizeof(events) / sizeof(*events); i++)
		fprintf(ctf->out,
			"event {\n\tid = %zu; stream_id = 0; name = "
			"\"%s\";\n\tfields := struct { %s };\n};\n",
			i, events[i].name, events[i].fields);
	close_file(ctf);
}

static void ctf_write(const char *path, struct lanes *lanes)
{
	struct ctf ctf = { .lanes = lanes, .directory = directory_begin(path) };
	uint32_t i;

	put_metadata(&ctf);
	for (i = 0; i < lanes->trace.file_count; i++) {
		put_stream(&ctf, i);
	}
	directory_end();
	free(ctf.packet.bytes);
}

EXPORT_FORMAT(ctf) = {
	.name = "ctf",
	.extension = "",
	.description = "the calls of a trace, for babeltrace2: a directory",
	.has_no_threads = true,
	.write_trace = ctf_write,
};
