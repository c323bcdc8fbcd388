/*
 * Exports OTF2 (Open Trace Format 2) for Vampir, otf2-print and what reads it in
 * Python: a directory.  A lane is a location, a process a location group, a host
 * a node of the system tree.  Calls are enters and leaves of regions, and so are
 * waits and times without a processor; counters are metrics.  Marks and ranges are
 * parameters of the calls around them, which all readers show, and markers, which
 * Vampir draws; they are no regions, because ranges need not nest.  Messages are MPI
 * records (otf2_messages.c).
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <otf2/otf2.h>
#include <shim/format.h>

#include "base/directory.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/messages.h"
#include "base/names.h"
#include "base/numbers.h"
#include "base/text.h"
#include "export/format.h"
#include "export/lanes.h"
#include "export/otf2.h"
#include "export/otf2_archive.h"
#include "export/otf2_messages.h"
#include "model/model.h"
#include "read/recording.h"
#include "trace/gaps.h"
#include "trace/messages.h"
#include "trace/reader.h"
#include "trace/trace.h"

/* An event that may carry the arguments of a call. */
struct waiting {
	bool is_there;
	struct trace_event event;
	uint32_t location;
};

/* --- events --- */

/* The next event of a location: its time never goes back. */
static OTF2_TimeStamp next_time(struct location *location, double time_ns)
{
	uint64_t ns = whole(time_ns);

	if (ns > location->last_ns)
		location->last_ns = ns;
	if (location->events++ == 0)
		location->first_ns = location->last_ns;
	return location->last_ns;
}

static void put_marker(struct otf2 *otf2, uint32_t number, enum marker marker,
		       uint64_t at_ns, uint64_t duration_ns, const char *text)
{
	char *copy = strdup(text);

	if (!copy)
		die("out of memory");
	make_harmless(copy);
	check(otf2, OTF2_MarkerWriter_WriteMarker(
			    otf2->archive.markers, at_ns, duration_ns, marker,
			    OTF2_MARKER_SCOPE_LOCATION, number, copy));
	free(copy);
}

static void put_parameter(struct otf2 *otf2, struct location *location,
			  const struct trace_event *event,
			  enum parameter parameter)
{
	check(otf2, OTF2_EvtWriter_ParameterString(
			    location->writer, NULL,
			    next_time(location, event->time_ns), parameter,
			    otf2_passing_text(&otf2->archive, event->text)));
}

static void put_enter(struct otf2 *otf2, struct location *location,
		      const struct trace_event *event, const char *arguments)
{
	OTF2_RegionRef region = otf2_region_of_function(otf2, event);
	OTF2_CallpathRef parent = location->depth ?
					  location->open[location->depth - 1] :
					  OTF2_UNDEFINED_CALLPATH;

	GROW(location->open, location->depth, location->room);
	location->open[location->depth++] = otf2_callpath_of(otf2, parent,
							     region);
	if (arguments)
		OTF2_AttributeList_AddStringRef(
			otf2->attributes, ARGUMENTS,
			otf2_passing_text(&otf2->archive, arguments));
	check(otf2, OTF2_EvtWriter_Enter(location->writer, otf2->attributes,
					 next_time(location, event->time_ns),
					 region));
	if (!trace_is_collective(otf2->lanes->trace.messages, event))
		return;
	otf2_messages_enter(&otf2->messages, location->writer,
			    next_time(location, event->time_ns));
}

static void put_leave(struct otf2 *otf2, struct location *location,
		      const struct trace_event *event)
{
	if (location->depth)
		location->depth--;
	if (otf2->result.text[0])
		OTF2_AttributeList_AddStringRef(
			otf2->attributes, RESULT,
			otf2_passing_text(&otf2->archive, otf2->result.text));
	otf2->result.text[0] = '\0';
	check(otf2, OTF2_EvtWriter_Leave(location->writer, otf2->attributes,
					 next_time(location, event->time_ns),
					 otf2_region_of_function(otf2, event)));
}

static void put_span(struct otf2 *otf2, struct location *location,
		     double from_ns, double to_ns, const char *text)
{
	OTF2_RegionRef region = otf2_region_of_text(otf2, text);

	check(otf2, OTF2_EvtWriter_Enter(location->writer, NULL,
					 next_time(location, from_ns), region));
	check(otf2, OTF2_EvtWriter_Leave(location->writer, NULL,
					 next_time(location, to_ns), region));
}

static void put_counter(struct otf2 *otf2, struct location *location,
			const struct trace_event *event)
{
	static const OTF2_Type type = OTF2_TYPE_DOUBLE;
	OTF2_MetricValue value = { .floating_point = event->value };
	OTF2_MetricRef metric = otf2_metric_of(otf2, event->text);

	check(otf2, OTF2_EvtWriter_Metric(location->writer, NULL,
					  next_time(location, event->time_ns),
					  metric, 1, &type, &value));
}

static void switch_recording(struct otf2 *otf2, struct location *location,
			     const struct trace_event *event,
			     OTF2_MeasurementMode mode)
{
	check(otf2, OTF2_EvtWriter_MeasurementOnOff(
			    location->writer, NULL,
			    next_time(location, event->time_ns), mode));
}

static void begin_range(struct otf2 *otf2, struct location *location,
			const struct trace_event *event)
{
	put_parameter(otf2, location, event, PARAMETER_BEGIN);
	GROW(location->ranges, location->range_count, location->range_room);
	location->ranges[location->range_count++] = (struct open_range){
		.text = names_keep(&otf2->texts, event->text),
		.since_ns = whole(event->time_ns),
	};
}

/* Ends the latest open range with this text. */
static void end_range(struct otf2 *otf2, uint32_t number,
		      const struct trace_event *event)
{
	struct location *location = &otf2->locations[number];
	uint32_t text = names_find(&otf2->texts, event->text);
	uint64_t ns = whole(event->time_ns);
	uint32_t i = location->range_count;

	put_parameter(otf2, location, event, PARAMETER_END);
	while (i > 0 && location->ranges[i - 1].text != text)
		i--;
	if (i == 0)
		return;
	put_marker(otf2, number, MARKER_RANGE, location->ranges[i - 1].since_ns,
		   ns - location->ranges[i - 1].since_ns, event->text);
	location->range_count--;
	memmove(&location->ranges[i - 1], &location->ranges[i],
		(location->range_count - (i - 1)) * sizeof(*location->ranges));
}

static void put_message(struct otf2 *otf2, uint32_t number,
			const struct trace_event *event)
{
	struct location *location = &otf2->locations[number];

	if (otf2_messages_take(&otf2->messages, event, number))
		otf2_messages_put(&otf2->messages, location->writer, event,
				  next_time(location, event->time_ns));
}

static void put_other(struct otf2 *otf2, uint32_t number,
		      const struct trace_event *event)
{
	struct location *location = &otf2->locations[number];
	char text[2 * LOCK_TEXT];

	switch (event->kind) {
	case TRACE_GAP:
		put_span(otf2, location, event->time_ns,
			 event->time_ns + event->duration_ns,
			 trace_gap_text(event));
		return;
	case TRACE_WAIT:
		put_span(otf2, location, event->time_ns - event->duration_ns,
			 event->time_ns,
			 lanes_wait_text(otf2->lanes, event, text,
					 sizeof(text)));
		return;
	case TRACE_RANGE_BEGIN: begin_range(otf2, location, event); return;
	case TRACE_RANGE_END: end_range(otf2, number, event); return;
	case TRACE_COUNTER: put_counter(otf2, location, event); return;
	case TRACE_MESSAGE: put_message(otf2, number, event); return;
	case TRACE_PAUSE:
		switch_recording(otf2, location, event, OTF2_MEASUREMENT_OFF);
		return;
	case TRACE_RESUME:
		switch_recording(otf2, location, event, OTF2_MEASUREMENT_ON);
		return;
	case TRACE_MARK:
		put_parameter(otf2, location, event, PARAMETER_MARK);
		put_marker(otf2, number, MARKER_MARK, whole(event->time_ns), 0,
			   event->text);
		return;
	case TRACE_LOST:
		put_marker(otf2, number, MARKER_LOST, whole(event->time_ns), 0,
			   keep_format("%" PRIu64 " calls lost (%s)",
				       event->count,
				       event->cause < SHIM_LOST_CAUSES ?
					       lost_names[event->cause] :
					       "other"));
		return;
	default: return;
	}
}

/* --- locations --- */

static struct location *new_location(struct otf2 *otf2, uint32_t lane)
{
	uint32_t number = otf2->location_count;
	struct location *location;

	GROW(otf2->locations, otf2->location_count, otf2->location_room);
	location = &otf2->locations[otf2->location_count++];
	*location = (struct location){ .lane = lane };
	location->writer = OTF2_Archive_GetEvtWriter(otf2->archive.archive,
						     number);
	if (!location->writer)
		otf2_give_up(&otf2->archive);
	return location;
}

static void open_location(struct otf2 *otf2, uint32_t lane)
{
	otf2->of_lane[lane] = otf2->location_count;
	new_location(otf2, lane);
}

static uint32_t location_of(struct otf2 *otf2, const struct trace_event *event)
{
	bool is_new;
	uint32_t lane = lanes_number(otf2->lanes, event, &is_new);
	uint32_t count = lane;

	if (is_new)
		GROW(otf2->of_lane, count, otf2->lane_room);
	if (is_new || !otf2->locations[otf2->of_lane[lane]].writer)
		open_location(otf2, lane);
	return otf2->of_lane[lane];
}

static void close_location(struct otf2 *otf2, uint32_t number)
{
	struct location *location = &otf2->locations[number];
	const struct open_range *range;

	while (location->range_count) {
		range = &location->ranges[--location->range_count];
		put_marker(otf2, number, MARKER_RANGE, range->since_ns,
			   location->last_ns > range->since_ns ?
				   location->last_ns - range->since_ns :
				   0,
			   otf2->texts.text[range->text]);
	}
	location->name = lanes_name(otf2->lanes,
				    &otf2->lanes->all[location->lane]);
	check(otf2, OTF2_Archive_CloseEvtWriter(otf2->archive.archive,
						location->writer));
	location->writer = NULL;
	free(location->open);
	free(location->ranges);
	location->open = NULL;
	location->ranges = NULL;
}

/* The calls of a thread are in one piece, and so are those of its coroutines. */
static void end_thread(struct otf2 *otf2)
{
	while (otf2->first_open < otf2->location_count)
		close_location(otf2, otf2->first_open++);
	otf2->thread = NONE;
}

static void flush(struct otf2 *otf2, struct waiting *enter,
		  const char *arguments)
{
	if (enter->is_there)
		put_enter(otf2, &otf2->locations[enter->location],
			  &enter->event, arguments);
	enter->is_there = false;
}

static void put_file(struct otf2 *otf2, struct trace_reader *reader)
{
	struct waiting enter = { .is_there = false };
	struct trace_event event;
	uint32_t number;

	while (trace_next(reader, &event)) {
		flush(otf2, &enter,
		      event.kind == TRACE_ARGUMENTS ? event.text : NULL);
		if (event.thread != otf2->thread)
			end_thread(otf2);
		otf2->thread = event.thread;
		number = location_of(otf2, &event);
		if (event.kind == TRACE_ENTER)
			enter = (struct waiting){ true, event, number };
		else if (event.kind == TRACE_LEAVE)
			put_leave(otf2, &otf2->locations[number], &event);
		else if (event.kind == TRACE_RESULT)
			keep_for_later(&otf2->result, event.text);
		else if (event.kind != TRACE_ARGUMENTS)
			put_other(otf2, number, &event);
	}
	flush(otf2, &enter, NULL);
	end_thread(otf2);
}

/* The location of ranks that have told nothing: they are members of communicators. */
static uint32_t add_unseen(struct otf2 *otf2)
{
	struct location *location;

	if (!otf2_messages_need_unseen(&otf2->messages))
		return NONE;
	location = new_location(otf2, NONE);
	check(otf2, OTF2_Archive_CloseEvtWriter(otf2->archive.archive,
						location->writer));
	location->writer = NULL;
	location->name = "ranks that have told nothing";
	return otf2->location_count - 1;
}

static void otf2_write(const char *path, struct lanes *lanes)
{
	struct otf2 otf2 = { .lanes = lanes, .thread = NONE };
	struct trace_reader *reader;
	uint32_t i;

	otf2_archive_begin(&otf2.archive, directory_begin(path));
	otf2_messages_begin(&otf2.messages, &otf2.archive, &lanes->trace);
	otf2.of_function = allocate(lanes->model->function_count,
				    sizeof(*otf2.of_function));
	for (i = 0; i < lanes->model->function_count; i++)
		otf2.of_function[i] = NONE;
	otf2.attributes = OTF2_AttributeList_New();
	keep_for_later(&otf2.result, "");
	otf2_define_constants(&otf2);
	for (i = 0; i < lanes->trace.file_count; i++) {
		reader = trace_begin(&lanes->trace, i, &lanes->range);
		put_file(&otf2, reader);
		trace_end(reader);
	}
	otf2_define_tree(&otf2, add_unseen(&otf2));
	otf2_archive_end(&otf2.archive, otf2.location_count);
	directory_end();
	otf2_messages_end(&otf2.messages);
	OTF2_AttributeList_Delete(otf2.attributes);
	map_free(&otf2.of_text);
	map_free(&otf2.callpaths);
	names_free(&otf2.texts);
	names_free(&otf2.counters);
	free(otf2.of_function);
	free(otf2.locations);
	free(otf2.of_lane);
	free(otf2.result.text);
}

EXPORT_FORMAT(otf2) = {
	.name = "otf2",
	.extension = "",
	.description =
		"the calls of a trace, for Vampir, otf2-print: a directory",
	.has_no_threads = true,
	.write_trace = otf2_write,
};
