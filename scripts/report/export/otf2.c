/*
 * Exports OTF2 (Open Trace Format 2) for Vampir, otf2-print and what reads it in
 * Python: a directory.  A lane is a location, a process a location group, a host
 * a node of the system tree.  Calls are enters and leaves of regions, and so are
 * waits and times without a processor; counters are metrics.  Marks and ranges are
 * parameters of the calls around them, which all readers show, and markers, which
 * Vampir draws; they are no regions, because ranges need not nest.  Messages are MPI
 * records (otf2_messages.c).  Definitions are written when they are met
 * first, those of locations at the end, when their events are counted.
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
#include "export/otf2_archive.h"
#include "export/otf2_messages.h"
#include "model/functions.h"
#include "model/model.h"
#include "read/process.h"
#include "read/recording.h"
#include "trace/gaps.h"
#include "trace/messages.h"
#include "trace/reader.h"
#include "trace/trace.h"

#define NS_PER_SECOND 1000000000

enum attribute { ARGUMENTS, RESULT };
enum parameter { PARAMETER_MARK, PARAMETER_BEGIN, PARAMETER_END, PARAMETERS };
enum marker { MARKER_MARK, MARKER_RANGE, MARKER_LOST, MARKERS };

struct open_range {
	uint32_t text; /* number in otf2->texts */
	uint64_t since_ns;
};

struct location {
	OTF2_EvtWriter *writer; /* NULL: closed */
	uint32_t lane;
	const char *name;
	uint64_t first_ns, last_ns, events;
	OTF2_CallpathRef *open; /* call paths of the open calls */
	uint32_t depth, room;
	struct open_range *ranges;
	uint32_t range_count, range_room;
};

struct otf2 {
	struct otf2_archive archive;
	struct otf2_messages messages;
	struct lanes *lanes;
	struct location *locations;
	uint32_t location_count, location_room;
	/* by lane: its latest location; a lane of a damaged file may go on after
	 * its location was closed, and gets another one */
	uint32_t *of_lane;
	uint32_t lane_room;
	uint32_t thread;	     /* whose locations are open, or NONE */
	uint32_t first_open;	     /* the first location of this thread */
	OTF2_RegionRef *of_function; /* by function: its region, or NONE */
	struct map of_text;	     /* by number in @texts: its region */
	uint32_t region_count;
	struct map callpaths; /* parent << 32 | region */
	uint32_t callpath_count;
	struct names texts, counters;
	OTF2_AttributeList *attributes;
	struct kept_text result; /* result of the call that is left next */
};

/* An event that may carry the arguments of a call. */
struct waiting {
	bool is_there;
	struct trace_event event;
	uint32_t location;
};

static void check(const struct otf2 *otf2, OTF2_ErrorCode code)
{
	otf2_check(&otf2->archive, code);
}

static OTF2_StringRef text_of(struct otf2 *otf2, const char *text)
{
	return otf2_text(&otf2->archive, text ? text : "");
}

/* --- definitions --- */

static OTF2_RegionRef define_region(struct otf2 *otf2, const char *name,
				    const struct function *function,
				    OTF2_RegionRole role,
				    OTF2_Paradigm paradigm)
{
	OTF2_StringRef shown = text_of(otf2, name);
	bool has_line = function && function->file;

	check(otf2,
	      OTF2_GlobalDefWriter_WriteRegion(
		      otf2->archive.definitions, otf2->region_count, shown,
		      function ? text_of(otf2, function->mangled) : shown,
		      text_of(otf2, function ? object_name(function) : ""),
		      role, paradigm, OTF2_REGION_FLAG_NONE,
		      text_of(otf2, has_line ? function->file : ""),
		      has_line ? (uint32_t)function->line : 0, 0));
	return otf2->region_count++;
}

static OTF2_RegionRef region_of_function(struct otf2 *otf2,
					 const struct trace_event *event)
{
	struct lanes *lanes = otf2->lanes;
	uint32_t number = lanes->recording->sites[event->site].function;
	struct function *function = &lanes->model->functions[number];

	if (otf2->of_function[number] == NONE) {
		function_line(function);
		otf2->of_function[number] = define_region(
			otf2, lanes_function_name(lanes, event), function,
			OTF2_REGION_ROLE_FUNCTION, OTF2_PARADIGM_COMPILER);
	}
	return otf2->of_function[number];
}

/* Of a time that the thread spends in no function of its own. */
static OTF2_RegionRef region_of_text(struct otf2 *otf2, const char *text)
{
	uint32_t number = names_add(&otf2->texts, text);
	OTF2_RegionRef region = map_get(&otf2->of_text, number);

	if (region == NONE) {
		region = define_region(otf2, text, NULL,
				       OTF2_REGION_ROLE_ARTIFICIAL,
				       OTF2_PARADIGM_MEASUREMENT_SYSTEM);
		map_add(&otf2->of_text, number, region);
	}
	return region;
}

static OTF2_CallpathRef callpath_of(struct otf2 *otf2, OTF2_CallpathRef parent,
				    OTF2_RegionRef region)
{
	uint32_t number = map_add(&otf2->callpaths,
				  (uint64_t)parent << 32 | region,
				  otf2->callpath_count);

	if (number < otf2->callpath_count)
		return number;
	check(otf2, OTF2_GlobalDefWriter_WriteCallpath(
			    otf2->archive.definitions, number, parent, region));
	return otf2->callpath_count++;
}

static OTF2_MetricRef metric_of(struct otf2 *otf2, const char *name)
{
	OTF2_GlobalDefWriter *definitions = otf2->archive.definitions;
	uint32_t count = otf2->counters.count;
	OTF2_MetricMemberRef number = names_add(&otf2->counters, name);

	if (number < count)
		return number;
	check(otf2, OTF2_GlobalDefWriter_WriteMetricMember(
			    definitions, number, text_of(otf2, name),
			    text_of(otf2, ""), OTF2_METRIC_TYPE_USER,
			    OTF2_METRIC_ABSOLUTE_NEXT, OTF2_TYPE_DOUBLE,
			    OTF2_BASE_DECIMAL, 0, text_of(otf2, "#")));
	check(otf2, OTF2_GlobalDefWriter_WriteMetricClass(
			    definitions, number, 1, &number,
			    OTF2_METRIC_ASYNCHRONOUS, OTF2_RECORDER_KIND_CPU));
	return number;
}

static void define_attributes(struct otf2 *otf2)
{
	static const char *const names[] = {
		[ARGUMENTS] = "arguments", [RESULT] = "result"
	};
	uint32_t i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++)
		check(otf2, OTF2_GlobalDefWriter_WriteAttribute(
				    otf2->archive.definitions, i,
				    text_of(otf2, names[i]), text_of(otf2, ""),
				    OTF2_TYPE_STRING));
}

static void define_parameters(struct otf2 *otf2)
{
	static const char *const names[PARAMETERS] = {
		[PARAMETER_MARK] = "mark",
		[PARAMETER_BEGIN] = "range begins",
		[PARAMETER_END] = "range ends",
	};
	uint32_t i;

	for (i = 0; i < PARAMETERS; i++)
		check(otf2, OTF2_GlobalDefWriter_WriteParameter(
				    otf2->archive.definitions, i,
				    text_of(otf2, names[i]),
				    OTF2_PARAMETER_TYPE_STRING));
}

static void define_markers(struct otf2 *otf2)
{
	static const struct {
		const char *name;
		OTF2_MarkerSeverity severity;
	} markers[MARKERS] = {
		[MARKER_MARK] = { "mark", OTF2_SEVERITY_LOW },
		[MARKER_RANGE] = { "range", OTF2_SEVERITY_LOW },
		[MARKER_LOST] = { "lost calls", OTF2_SEVERITY_HIGH },
	};
	uint32_t i;

	for (i = 0; i < MARKERS; i++)
		check(otf2, OTF2_MarkerWriter_WriteDefMarker(
				    otf2->archive.markers, i, "shim",
				    markers[i].name, markers[i].severity));
}

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
	OTF2_RegionRef region = region_of_function(otf2, event);
	OTF2_CallpathRef parent = location->depth ?
					  location->open[location->depth - 1] :
					  OTF2_UNDEFINED_CALLPATH;

	GROW(location->open, location->depth, location->room);
	location->open[location->depth++] = callpath_of(otf2, parent, region);
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
					 region_of_function(otf2, event)));
}

static void put_span(struct otf2 *otf2, struct location *location,
		     double from_ns, double to_ns, const char *text)
{
	OTF2_RegionRef region = region_of_text(otf2, text);

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
	OTF2_MetricRef metric = metric_of(otf2, event->text);

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
		.text = names_add(&otf2->texts, event->text),
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

/* --- what is known at the end --- */

/* The wall-clock time at which the trace's clock was 0. */
static uint64_t real_time(const struct lanes *lanes)
{
	const struct shim_meta *meta = &lanes->recording->processes[0].meta;
	uint64_t start = lanes->trace.start_mono_ns;

	if (!meta->start_real_ns || start > meta->first_mono_ns)
		return OTF2_UNDEFINED_TIMESTAMP;
	return meta->start_real_ns - (meta->first_mono_ns - start);
}

static void define_clock(struct otf2 *otf2)
{
	uint64_t first = UINT64_MAX, last = 0, real = real_time(otf2->lanes);
	uint32_t i;

	for (i = 0; i < otf2->location_count; i++) {
		const struct location *location = &otf2->locations[i];

		if (location->events && location->first_ns < first)
			first = location->first_ns;
		if (location->last_ns > last)
			last = location->last_ns;
	}
	if (first > last)
		first = last;
	check(otf2,
	      OTF2_GlobalDefWriter_WriteClockProperties(
		      otf2->archive.definitions, NS_PER_SECOND, first,
		      last - first + 1,
		      real == OTF2_UNDEFINED_TIMESTAMP ? real : real + first));
}

static void define_node(struct otf2 *otf2, OTF2_SystemTreeNodeRef node,
			const char *name, const char *class,
			OTF2_SystemTreeNodeRef parent,
			OTF2_SystemTreeDomain domain)
{
	OTF2_GlobalDefWriter *definitions = otf2->archive.definitions;

	check(otf2, OTF2_GlobalDefWriter_WriteSystemTreeNode(
			    definitions, node, text_of(otf2, name),
			    text_of(otf2, class), parent));
	check(otf2, OTF2_GlobalDefWriter_WriteSystemTreeNodeDomain(
			    definitions, node, domain));
}

/* The node of the host of @process: 0 is the root above the hosts. */
static OTF2_SystemTreeNodeRef host_of(struct otf2 *otf2, struct names *hosts,
				      const struct process *process)
{
	const char *name = process_string(process, "host");
	uint32_t count = hosts->count;
	uint32_t host = names_add(hosts, name ? name : "unknown host");

	if (host == count)
		define_node(otf2, host + 1, hosts->text[host], "node", 0,
			    OTF2_SYSTEM_TREE_DOMAIN_SHARED_MEMORY);
	return host + 1;
}

static void add_property(struct otf2 *otf2, OTF2_LocationGroupRef group,
			 const char *name, const char *value)
{
	OTF2_AttributeValue text = { .stringRef = text_of(otf2, value) };

	check(otf2, OTF2_GlobalDefWriter_WriteLocationGroupProperty(
			    otf2->archive.definitions, group,
			    text_of(otf2, name), OTF2_TYPE_STRING, text));
}

static void define_group(struct otf2 *otf2, uint32_t number,
			 OTF2_LocationGroupRef group, struct names *hosts)
{
	const struct process *process =
		&otf2->lanes->recording->processes[number];
	const char *rank = process_string(process, "rank");
	const char *command = process_string(process, "command");
	OTF2_SystemTreeNodeRef host = host_of(otf2, hosts, process);

	check(otf2,
	      OTF2_GlobalDefWriter_WriteLocationGroup(
		      otf2->archive.definitions, group,
		      text_of(otf2, lanes_process_name(otf2->lanes, number)),
		      OTF2_LOCATION_GROUP_TYPE_PROCESS, host,
		      OTF2_UNDEFINED_LOCATION_GROUP));
	add_property(otf2, group, "pid", keep_format("%u", process->pid));
	if (rank)
		add_property(otf2, group, "rank", rank);
	if (command)
		add_property(otf2, group, "command", command);
}

/* The location of ranks that have told nothing: they are members of communicators. */
static uint32_t add_nobody(struct otf2 *otf2)
{
	struct location *location;

	if (!otf2_messages_need_nobody(&otf2->messages))
		return NONE;
	location = new_location(otf2, NONE);
	check(otf2, OTF2_Archive_CloseEvtWriter(otf2->archive.archive,
						location->writer));
	location->writer = NULL;
	location->name = "ranks that have told nothing";
	return otf2->location_count - 1;
}

static void define_nobody(struct otf2 *otf2, OTF2_LocationGroupRef group)
{
	check(otf2, OTF2_GlobalDefWriter_WriteLocationGroup(
			    otf2->archive.definitions, group,
			    text_of(otf2, "no recording"),
			    OTF2_LOCATION_GROUP_TYPE_PROCESS, 0,
			    OTF2_UNDEFINED_LOCATION_GROUP));
}

struct ranked {
	uint64_t rank; /* UINT64_MAX: unknown */
	uint32_t process;
};

static int by_rank(const void *left, const void *right)
{
	const struct ranked *a = left, *b = right;

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return a->process < b->process ? -1 : a->process > b->process;
}

/* The processes with lanes become location groups, by rank. */
static void define_locations(struct otf2 *otf2)
{
	const struct lanes *lanes = otf2->lanes;
	uint32_t all = lanes->recording->process_count, count = 0, i;
	struct ranked *ranked = allocate(all, sizeof(*ranked));
	uint32_t *groups = allocate(all, sizeof(*groups));
	uint32_t nobody = add_nobody(otf2), *order;
	struct names hosts = { 0 };

	for (i = 0; i < lanes->lane_count; i++)
		groups[lanes->all[i].process] = 1;
	for (i = 0; i < all; i++) {
		const char *rank = process_string(
			&lanes->recording->processes[i], "rank");

		if (groups[i])
			ranked[count++] = (struct ranked){
				rank ? strtoull(rank, NULL, 10) : UINT64_MAX, i
			};
	}
	qsort(ranked, count, sizeof(*ranked), by_rank);
	define_node(otf2, 0, "machine", "machine",
		    OTF2_UNDEFINED_SYSTEM_TREE_NODE,
		    OTF2_SYSTEM_TREE_DOMAIN_MACHINE);
	for (i = 0; i < count; i++) {
		groups[ranked[i].process] = i;
		define_group(otf2, ranked[i].process, i, &hosts);
	}
	if (nobody != NONE)
		define_nobody(otf2, count);
	for (i = 0; i < otf2->location_count; i++) {
		uint32_t lane = otf2->locations[i].lane;

		check(otf2,
		      OTF2_GlobalDefWriter_WriteLocation(
			      otf2->archive.definitions, i,
			      text_of(otf2, otf2->locations[i].name),
			      OTF2_LOCATION_TYPE_CPU_THREAD,
			      otf2->locations[i].events,
			      lane == NONE ? count :
					     groups[lanes->all[lane].process]));
	}
	order = allocate(count, sizeof(*order));
	for (i = 0; i < count; i++)
		order[i] = ranked[i].process;
	otf2_messages_define(&otf2->messages, order, count, nobody);
	free(order);
	names_free(&hosts);
	free(groups);
	free(ranked);
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
	define_attributes(&otf2);
	define_parameters(&otf2);
	define_markers(&otf2);
	for (i = 0; i < lanes->trace.file_count; i++) {
		reader = trace_begin(&lanes->trace, i, &lanes->range);
		put_file(&otf2, reader);
		trace_end(reader);
	}
	define_locations(&otf2);
	define_clock(&otf2);
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
