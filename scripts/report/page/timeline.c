/*
 * Writes the lanes of the timeline (see timeline.h).  The trace is read twice:
 * first to collect the durations of calls, then to write the calls, each when
 * it ends.  A call that is too short joins the run of short calls on its depth,
 * together with the run on the depth below, which then lies inside it.  A run
 * ends when the call around it ends, when a longer call begins, or when nothing
 * happens for some time.  So the number of pieces is at most a few times the
 * number of calls that are long enough, whatever the trace.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <shim/format.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/messages.h"
#include "base/numbers.h"
#include "model/functions.h"
#include "model/locks.h"
#include "model/options.h"
#include "model/shown.h"
#include "page/columns.h"
#include "page/timeline.h"
#include "read/recording.h"
#include "trace/messages.h"
#include "trace/reader.h"
#include "trace/trace.h"

#define MARKS_MAX    20000
#define GAPS_MAX     20000
#define WAITS_MAX    20000
#define MESSAGES_MAX 20000
#define VALUES_MAX   100000
/* steps per factor of 2 at which durations are distinguished */
#define OCTAVE 16
#define STEPS  (64 * OCTAVE)

/* A run of short calls, and the state of the open call on its depth. */
struct timeline_run {
	char *arguments, *result; /* or NULL */
	uint64_t calls;		  /* 0: none */
	double from, to, busy;
};

static uint32_t step_of(double duration)
{
	double step = floor(log2(fmax(duration, 1)) * OCTAVE);

	return step < STEPS ? (uint32_t)step : STEPS - 1;
}

static bool is_call_end(const struct trace_event *event)
{
	return event->kind == TRACE_LEAVE;
}

static void read_file(struct timeline *timeline, uint32_t file,
		      const struct trace_range *range, const char *doing,
		      void (*take)(struct timeline *timeline,
				   const struct trace_event *event,
				   void *context),
		      void *context)
{
	struct trace_range all = *range;
	struct trace_reader *reader;
	struct trace_event event;

	all.doing = doing;
	reader = trace_begin(&timeline->trace, file, &all);
	while (trace_next(reader, &event))
		take(timeline, &event, context);
	trace_end(reader);
}

/* --- durations of calls --- */

static void count_duration(struct timeline *timeline,
			   const struct trace_event *event, void *context)
{
	uint64_t *steps = context;

	timeline->duration_ns = fmax(timeline->duration_ns, event->time_ns);
	if (!is_call_end(event))
		return;
	timeline->calls++;
	steps[step_of(event->duration_ns)]++;
}

/* Hidden calls take part of the time too. */
static void find_duration(struct timeline *timeline,
			  const struct trace_event *event, void *context)
{
	(void)context;
	timeline->duration_ns = fmax(timeline->duration_ns, event->time_ns);
}

static void choose_least(struct timeline *timeline,
			 const struct trace_range *range, bool hides,
			 uint32_t most)
{
	uint64_t steps[STEPS] = { 0 }, longer = 0;
	uint32_t i;

	for (i = 0; hides && i < timeline->trace.file_count; i++)
		read_file(timeline, i, &(struct trace_range){ 0 },
			  "measuring the time", find_duration, NULL);
	for (i = 0; i < timeline->trace.file_count; i++)
		read_file(timeline, i, range, "measuring", count_duration,
			  steps);
	for (i = STEPS; i > 0 && longer + steps[i - 1] <= most; i--)
		longer += steps[i - 1];
	timeline->least_ns = i ? exp2((double)i / OCTAVE) : 0;
	timeline->gap_ns = fmax(timeline->least_ns,
				timeline->duration_ns / most);
}

/* --- pieces --- */

static struct timeline_lane *lane_of(struct timeline *timeline,
				     const struct trace_event *event)
{
	uint64_t key = (uint64_t)event->thread << 32 | event->track;
	uint32_t lane = map_add(&timeline->by_track, key, timeline->lane_count);

	if (lane < timeline->lane_count)
		return &timeline->lanes[lane];
	GROW(timeline->lanes, timeline->lane_count, timeline->lane_room);
	timeline->lanes[timeline->lane_count] = (struct timeline_lane){
		.thread = event->thread,
		.track = event->track,
		.begin_ns = event->time_ns,
	};
	return &timeline->lanes[timeline->lane_count++];
}

static struct timeline_run *run_at(struct timeline_lane *lane, uint32_t depth)
{
	uint32_t before = lane->run_room;

	if (depth >= lane->run_room) {
		lane->run_room = depth * 2 + 16;
		lane->runs = grow(lane->runs, lane->run_room,
				  sizeof(*lane->runs));
		memset(lane->runs + before, 0,
		       (lane->run_room - before) * sizeof(*lane->runs));
	}
	return &lane->runs[depth];
}

/*
 * Writes five numbers, most of them small: the depth minus the previous
 * piece's; its end minus the previous one's; its duration; its kind (0: a run;
 * otherwise 1 + 2 * function, plus 1 if it never ended); for a run, its number
 * of calls and the time in them.
 */
static void put_piece(struct timeline *timeline, struct timeline_lane *lane,
		      uint32_t depth, double from, double to, uint64_t what)
{
	double begin = (double)whole(from), end = (double)whole(to);

	columns_put_signed(&lane->columns, (int64_t)depth - lane->last_depth);
	columns_put_signed(&lane->columns, (int64_t)(end - lane->last_end));
	columns_put(&lane->columns, (uint64_t)fmax(end - begin, 0));
	columns_put(&lane->columns, what);
	lane->last_depth = depth;
	lane->last_end = end;
	lane->pieces++;
	timeline->pieces++;
}

static void end_run(struct timeline *timeline, struct timeline_lane *lane,
		    uint32_t depth)
{
	struct timeline_run *run = run_at(lane, depth);

	if (!run->calls)
		return;
	put_piece(timeline, lane, depth, run->from, run->to, 0);
	columns_put(&lane->columns, run->calls);
	columns_put(&lane->columns, whole(run->busy));
	timeline->merged += run->calls;
	run->calls = 0;
}

static void add_short(struct timeline *timeline, struct timeline_lane *lane,
		      const struct trace_event *event)
{
	struct timeline_run *below = run_at(lane, event->depth + 1);
	struct timeline_run *run = run_at(lane, event->depth);
	double from = event->time_ns - event->duration_ns;
	uint64_t calls = 1 + below->calls;

	below->calls = 0;
	if (run->calls && from - run->to > timeline->gap_ns)
		end_run(timeline, lane, event->depth);
	if (!run->calls) {
		run->from = from;
		run->busy = 0;
	}
	run->calls += calls;
	run->to = event->time_ns;
	run->busy += event->duration_ns;
}

static void forget_values(struct timeline_run *run)
{
	free(run->arguments);
	free(run->result);
	run->arguments = run->result = NULL;
}

/* Keeps a value for the innermost call. */
static void keep_value(struct timeline *timeline,
		       const struct trace_event *event)
{
	struct timeline_lane *lane = lane_of(timeline, event);
	struct timeline_run *run;
	char **value;

	if (event->depth == 0 || !event->text)
		return;
	run = run_at(lane, event->depth - 1);
	value = event->kind == TRACE_RESULT ? &run->result : &run->arguments;
	free(*value);
	*value = strdup(event->text);
}

/* Adds the values of the piece that is written next. */
static void add_values(struct timeline *timeline,
		       const struct timeline_lane *lane,
		       const struct timeline_run *run)
{
	if (!run->arguments && !run->result)
		return;
	if (timeline->values_count == VALUES_MAX) {
		timeline->values_left_out++;
		return;
	}
	GROW(timeline->values, timeline->values_count, timeline->values_room);
	timeline->values[timeline->values_count++] = (struct timeline_values){
		.lane = (uint32_t)(lane - timeline->lanes),
		.piece = lane->pieces,
		.arguments = run->arguments ?
				     keep_text(run->arguments, SIZE_MAX) :
				     NULL,
		.result = run->result ? keep_text(run->result, SIZE_MAX) : NULL,
	};
}

static void add_call(struct timeline *timeline, const struct trace_event *event)
{
	struct timeline_lane *lane = lane_of(timeline, event);
	const struct site *site = &timeline->recording.sites[event->site];

	lane->calls++;
	lane->end_ns = fmax(lane->end_ns, event->time_ns);
	/* The run may have grown: first add the one below it. */
	run_at(lane, event->depth + 1);
	if (event->duration_ns < timeline->least_ns) {
		forget_values(run_at(lane, event->depth));
		add_short(timeline, lane, event);
		return;
	}
	end_run(timeline, lane, event->depth + 1);
	end_run(timeline, lane, event->depth);
	add_values(timeline, lane, run_at(lane, event->depth));
	forget_values(run_at(lane, event->depth));
	put_piece(timeline, lane, event->depth,
		  event->time_ns - event->duration_ns, event->time_ns,
		  2 * (uint64_t)site->function + event->is_open + 1);
}

static void add_mark(struct timeline *timeline, const struct trace_event *event)
{
	if (timeline->mark_count == MARKS_MAX) {
		timeline->marks_left_out++;
		return;
	}
	GROW(timeline->marks, timeline->mark_count, timeline->mark_room);
	timeline->marks[timeline->mark_count++] = (struct timeline_mark){
		.thread = event->thread,
		.kind = event->kind,
		.time_ns = event->time_ns,
		.value = event->kind == TRACE_LOST ? (double)event->count :
						     event->value,
		.text = event->text ? keep_text(event->text, SIZE_MAX) : NULL,
	};
}

static int compare_gaps(const void *left, const void *right)
{
	const struct timeline_gap *a = left, *b = right;

	return a->duration_ns < b->duration_ns ? 1 :
	       a->duration_ns > b->duration_ns ? -1 :
						 0;
}

/* Keeps the longest gaps. */
static void keep_gaps(struct timeline *timeline, uint32_t most)
{
	if (timeline->gap_count <= most)
		return;
	qsort(timeline->gaps, timeline->gap_count, sizeof(*timeline->gaps),
	      compare_gaps);
	timeline->gaps_left_out += timeline->gap_count - most;
	timeline->gap_count = most;
}

static void add_gap(struct timeline *timeline, const struct trace_event *event)
{
	if (timeline->gap_count == 2 * GAPS_MAX)
		keep_gaps(timeline, GAPS_MAX);
	GROW(timeline->gaps, timeline->gap_count, timeline->gap_room);
	timeline->gaps[timeline->gap_count++] = (struct timeline_gap){
		.thread = event->thread,
		.waits = event->cause == SHIM_SWITCH_WAITS,
		.time_ns = event->time_ns,
		.duration_ns = event->duration_ns,
	};
}

static int compare_waits(const void *left, const void *right)
{
	const struct trace_event *a = left, *b = right;

	return a->duration_ns < b->duration_ns ? 1 :
	       a->duration_ns > b->duration_ns ? -1 :
						 0;
}

/* Keeps the longest waits. */
static void keep_waits(struct timeline *timeline, uint32_t most)
{
	if (timeline->wait_count <= most)
		return;
	qsort(timeline->waits, timeline->wait_count, sizeof(*timeline->waits),
	      compare_waits);
	timeline->waits_left_out += timeline->wait_count - most;
	timeline->wait_count = most;
}

static void add_wait(struct timeline *timeline, const struct trace_event *event)
{
	if (timeline->wait_count == 2 * WAITS_MAX)
		keep_waits(timeline, WAITS_MAX);
	GROW(timeline->waits, timeline->wait_count, timeline->wait_room);
	timeline->waits[timeline->wait_count++] = *event;
}

/* A wait for another process is one, too; its text is kept by the trace. */
static void add_gap_or_wait(struct timeline *timeline,
			    const struct trace_event *event)
{
	struct trace_event wait = *event;

	if (!event->text) {
		add_gap(timeline, event);
		return;
	}
	wait.time_ns += wait.duration_ns;
	add_wait(timeline, &wait);
}

static void add_event(struct timeline *timeline,
		      const struct trace_event *event, void *context)
{
	(void)context;
	switch (event->kind) {
	case TRACE_ENTER:
		forget_values(run_at(lane_of(timeline, event), event->depth));
		break;
	case TRACE_ARGUMENTS:
	case TRACE_RESULT: keep_value(timeline, event); break;
	case TRACE_LEAVE: add_call(timeline, event); break;
	case TRACE_MARK:
	case TRACE_RANGE_BEGIN:
	case TRACE_RANGE_END:
	case TRACE_COUNTER:
	case TRACE_PAUSE:
	case TRACE_RESUME:
	case TRACE_LOST: add_mark(timeline, event); break;
	case TRACE_GAP: add_gap_or_wait(timeline, event); break;
	case TRACE_WAIT: add_wait(timeline, event); break;
	default: break;
	}
}

static int compare_messages(const void *left, const void *right)
{
	const struct timeline_message *a = left, *b = right;
	double x = a->to_ns - a->from_ns, y = b->to_ns - b->from_ns;

	if (x != y)
		return x > y ? -1 : 1;
	return a->from_ns < b->from_ns ? -1 : a->from_ns > b->from_ns;
}

static void add_messages(struct timeline *timeline)
{
	const struct messages *messages = timeline->trace.messages;
	uint32_t i;

	if (!messages || !messages->count)
		return;
	timeline->messages = allocate(messages->count,
				      sizeof(*timeline->messages));
	for (i = 0; i < messages->count; i++) {
		const struct message *message = &messages->all[i];

		timeline->messages[i] = (struct timeline_message){
			.from_thread = message->from.thread,
			.to_thread = message->to.thread,
			.from_ns = message->from.begin_ns,
			.to_ns = message->to.end_ns,
			.bytes = message->from.sent,
			.tag = message->tag,
		};
	}
	qsort(timeline->messages, messages->count, sizeof(*timeline->messages),
	      compare_messages);
	timeline->message_count = messages->count;
	if (timeline->message_count > MESSAGES_MAX)
		timeline->message_count = MESSAGES_MAX;
	timeline->messages_left_out = messages->count - timeline->message_count;
}

static void end_lane(struct timeline *timeline, struct timeline_lane *lane)
{
	uint32_t depth;

	for (depth = 0; depth < lane->run_room; depth++) {
		end_run(timeline, lane, depth);
		forget_values(&lane->runs[depth]);
	}
	free(lane->runs);
	lane->runs = NULL;
}

bool timeline_read(struct timeline *timeline, const char *path,
		   const struct options *options)
{
	const struct selection *selection = &options->selection;
	struct trace_range range = { 0 };
	uint32_t i;

	*timeline = (struct timeline){ 0 };
	recording_open(&timeline->recording, path, options->pid);
	if (!trace_open(&timeline->trace, &timeline->recording)) {
		trace_close(&timeline->trace);
		return false;
	}
	timeline->model.recording = &timeline->recording;
	model_find_functions(&timeline->model);
	locks_find(&timeline->model);
	trace_find_messages(&timeline->trace);
	add_messages(timeline);
	range.hidden = shown_find_hidden(&timeline->model, selection);
	range.within = shown_find_focus(&timeline->model, selection);
	range.merges_recursion = selection->merges_recursion;
	choose_least(timeline, &range, selection_is_given(selection),
		     options->max_calls);
	for (i = 0; i < timeline->trace.file_count; i++)
		read_file(timeline, i, &range, "drawing", add_event, NULL);
	free((bool *)range.hidden);
	free((bool *)range.within);
	for (i = 0; i < timeline->lane_count; i++)
		end_lane(timeline, &timeline->lanes[i]);
	keep_gaps(timeline, GAPS_MAX);
	keep_waits(timeline, WAITS_MAX);
	progress_end();
	return true;
}
