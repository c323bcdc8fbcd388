/*
 * profrun replay: prints the timeline as nested calls.  A call without events
 * inside is one line; other calls begin with a { and end with a } of their own.
 *
 *         time   duration   thread  call
 *     1.234 ms                 4711  main {
 *     1.240 ms    1.02 us      4711    read_line(file = 0x55...) = 17;
 *     1.260 ms     26 us       4711  } main
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/messages.h"
#include "base/numbers.h"
#include "base/text.h"
#include "model/check_names.h"
#include "model/find_functions.h"
#include "model/functions.h"
#include "model/model.h"
#include "model/options.h"
#include "read/process.h"
#include "read/recording.h"
#include "text/layout.h"
#include "text/replay.h"
#include "text/table.h"
#include "trace/gaps.h"
#include "trace/merge.h"
#include "trace/trace.h"

#define INDENT_MAX 60

/* The open calls of --function in a thread. */
struct inside {
	uint32_t thread, track;
	uint32_t depth; /* depth of the outermost of them */
};

struct replay {
	struct layout layout;
	struct table table;
	struct trace *trace;
	const struct options *options;
	bool *wanted; /* by function; NULL: all */
	struct inside *inside;
	uint32_t inside_count, inside_room;
	bool has_processes;
	uint64_t lines;
	/* an ENTER whose line may still be completed */
	struct trace_event held;
	bool is_held;
	char arguments[512]; /* of it */
	char result[512];    /* result of the call that is left next */
	uint32_t result_thread;
};

/* --- choice of events --- */

static bool is_thread(const struct replay *replay, uint32_t number)
{
	const struct trace_thread *thread = &replay->trace->threads[number];
	const char *wanted = replay->options->thread;
	char *end;
	unsigned long tid;

	if (!wanted)
		return true;
	tid = strtoul(wanted, &end, 10);
	if (end != wanted && !*end && tid == thread->tid)
		return true;
	return !strcmp(thread->name, wanted);
}

static struct function *function_of(const struct replay *replay,
				    const struct trace_event *event)
{
	struct site *site = &replay->trace->recording->sites[event->site];

	return &replay->layout.model->functions[site->function];
}

static struct inside *find_inside(struct replay *replay,
				  const struct trace_event *event)
{
	uint32_t i;

	for (i = 0; i < replay->inside_count; i++)
		if (replay->inside[i].thread == event->thread &&
		    replay->inside[i].track == event->track)
			return &replay->inside[i];
	return NULL;
}

/* Whether the event is a call of --function, or inside one; @top is the depth
 * of that call. */
static bool is_within(struct replay *replay, const struct trace_event *event,
		      uint32_t *top)
{
	struct inside *inside;

	*top = 0;
	if (!replay->wanted)
		return true;
	inside = find_inside(replay, event);
	if (inside) {
		*top = inside->depth;
		if (event->kind == TRACE_LEAVE && event->depth == inside->depth)
			*inside = replay->inside[--replay->inside_count];
		return true;
	}
	if (event->kind != TRACE_ENTER ||
	    !replay->wanted[function_of(replay, event) -
			    replay->layout.model->functions])
		return false;
	GROW(replay->inside, replay->inside_count, replay->inside_room);
	replay->inside[replay->inside_count++] = (struct inside){
		event->thread, event->track, event->depth
	};
	*top = event->depth;
	return true;
}

static bool is_call(const struct trace_event *event)
{
	return event->kind == TRACE_ENTER || event->kind == TRACE_LEAVE;
}

static bool is_wanted(struct replay *replay, const struct trace_event *event)
{
	uint32_t top;

	if (!is_thread(replay, event->thread) ||
	    !is_within(replay, event, &top))
		return false;
	/* Arguments and results come inside their call. */
	if (event->kind == TRACE_ARGUMENTS || event->kind == TRACE_RESULT)
		top++;
	else if (!is_call(event))
		return true;
	return event->depth - top < replay->options->depth;
}

/* --- lines --- */

static const char *color_of(double ns)
{
	return ns >= 1e9 ? "\033[1;31m" :
	       ns >= 1e6 ? "\033[31m" :
	       ns >= 1e3 ? "\033[33m" :
			   "\033[32m";
}

static void put_color(const struct replay *replay, const char *color)
{
	if (replay->layout.color)
		fputs(color, replay->layout.out);
}

/* A mark precedes a duration that is not the duration of the whole call. */
static void put_duration(struct replay *replay, double duration_ns,
			 const char *mark)
{
	char text[SHORT_TEXT], cell[SHORT_TEXT + 2];

	if (duration_ns < 0) {
		table_cell(&replay->table, "");
		return;
	}
	snprintf(cell, sizeof(cell), "%1s%9s", mark,
		 human_ns(text, duration_ns));
	table_color(&replay->table, color_of(duration_ns));
	table_cell(&replay->table, cell);
	table_no_color(&replay->table);
}

/* @duration_ns < 0: no duration. */
static void begin_line(struct replay *replay, const struct trace_event *event,
		       double duration_ns, const char *mark)
{
	const struct trace_thread *thread =
		&replay->trace->threads[event->thread];
	struct table *table = &replay->table;
	char text[SHORT_TEXT];
	uint32_t depth = event->depth < INDENT_MAX ? event->depth : INDENT_MAX;
	uint64_t ns = whole(event->time_ns);

	snprintf(text, sizeof(text), "%" PRIu64 ".%03u", ns / 1000,
		 (unsigned int)(ns % 1000));
	table_color(table, "\033[2m");
	table_cell(table, text);
	table_no_color(table);
	put_duration(replay, duration_ns, mark);
	if (event->track)
		snprintf(text, sizeof(text), "%7u/%-2u", thread->tid,
			 event->track);
	else
		snprintf(text, sizeof(text), "%u", thread->tid);
	table_color(table, "\033[36m");
	table_cell(table, text);
	table_no_color(table);
	table_rest(table, 2 * (size_t)depth);
	if (event->depth > INDENT_MAX)
		fprintf(replay->layout.out, "[%u] ", event->depth);
}

static void end_line(struct replay *replay)
{
	table_end_row(&replay->table);
	replay->lines++;
}

static void put_function(struct replay *replay, const struct trace_event *event)
{
	put_color(replay, "\033[1m");
	put_text(replay->layout.out,
		 shown_name(function_of(replay, event), replay->options));
	put_color(replay, "\033[m");
}

static void put_call(struct replay *replay, const struct trace_event *event)
{
	put_function(replay, event);
	if (replay->arguments[0]) {
		fputc('(', replay->layout.out);
		put_text(replay->layout.out, replay->arguments);
		fputc(')', replay->layout.out);
	}
	replay->arguments[0] = '\0';
}

static void put_result(struct replay *replay, const struct trace_event *leave)
{
	if (replay->result[0] && replay->result_thread == leave->thread) {
		fputs(" = ", replay->layout.out);
		put_text(replay->layout.out, replay->result);
		replay->result[0] = '\0';
	}
	if (leave->is_unwound)
		fputs("  (unwound)", replay->layout.out);
	if (leave->is_open)
		fputs("  (open)", replay->layout.out);
	if (leave->is_guessed)
		fputs("  (ended unseen)", replay->layout.out);
}

/* Prints the held call: it has calls of its own, or another event comes
 * first. */
static void release(struct replay *replay)
{
	if (!replay->is_held)
		return;
	replay->is_held = false;
	begin_line(replay, &replay->held, -1, "");
	put_call(replay, &replay->held);
	fputs(replay->held.is_guessed ? " {  (began unseen)" : " {",
	      replay->layout.out);
	end_line(replay);
}

static bool ends_held(const struct replay *replay,
		      const struct trace_event *event)
{
	return replay->is_held && event->kind == TRACE_LEAVE &&
	       event->thread == replay->held.thread &&
	       event->track == replay->held.track &&
	       event->depth == replay->held.depth;
}

static void print_leave(struct replay *replay, const struct trace_event *event)
{
	const char *mark = event->is_open ? ">" : "";

	if (ends_held(replay, event)) {
		replay->is_held = false;
		begin_line(replay, &replay->held, event->duration_ns, mark);
		put_call(replay, &replay->held);
		put_result(replay, event);
		if (replay->held.is_guessed)
			fputs("  (began unseen)", replay->layout.out);
		fputc(';', replay->layout.out);
	} else {
		release(replay);
		begin_line(replay, event, event->duration_ns, mark);
		fputs("} ", replay->layout.out);
		put_function(replay, event);
		put_result(replay, event);
	}
	end_line(replay);
}

static void keep(char to[512], const char *text)
{
	snprintf(to, 512, "%s", text);
}

static void print_note(struct replay *replay, const struct trace_event *event,
		       const char *what, const char *text)
{
	FILE *out = replay->layout.out;

	release(replay);
	begin_line(replay, event, -1, "");
	put_color(replay, "\033[35m");
	fprintf(out, "-- %s", what);
	put_text(out, text);
	if (event->kind == TRACE_COUNTER)
		fprintf(out, " = %.10g", event->value);
	put_color(replay, "\033[m");
	end_line(replay);
}

static void print_lost(struct replay *replay, const struct trace_event *event)
{
	char text[100], count[SHORT_TEXT];

	snprintf(text, sizeof(text), "%s calls: %s",
		 human_count(count, event->count), lost_names[event->cause]);
	print_note(replay, event, "lost ", text);
}

static void print_gap(struct replay *replay, const struct trace_event *event)
{
	FILE *out = replay->layout.out;

	release(replay);
	begin_line(replay, event, event->duration_ns, "");
	put_color(replay, "\033[35m");
	fprintf(out, "-- %s", trace_gap_text(event));
	put_color(replay, "\033[m");
	end_line(replay);
}

static void print_thread(struct replay *replay, const struct trace_event *event,
			 const char *what)
{
	const struct trace_thread *thread =
		&replay->trace->threads[event->thread];
	const struct process *process =
		&replay->trace->recording->processes[thread->process];
	char text[100];

	snprintf(text, sizeof(text), "%s of process %u", thread->name,
		 process->pid);
	print_note(replay, event, what,
		   replay->has_processes ? text : thread->name);
}

static void print_event(struct replay *replay, const struct trace_event *event)
{
	switch (event->kind) {
	case TRACE_ENTER:
		release(replay);
		replay->held = *event;
		replay->is_held = true;
		break;
	case TRACE_LEAVE: print_leave(replay, event); break;
	case TRACE_ARGUMENTS: keep(replay->arguments, event->text); break;
	case TRACE_RESULT:
		keep(replay->result, event->text);
		replay->result_thread = event->thread;
		break;
	case TRACE_THREAD: print_thread(replay, event, "thread "); break;
	case TRACE_THREAD_END:
		print_thread(replay, event, "end of thread ");
		break;
	case TRACE_NAME:
		print_thread(replay, event, "this thread is now ");
		break;
	case TRACE_MARK: print_note(replay, event, "mark ", event->text); break;
	case TRACE_RANGE_BEGIN:
		print_note(replay, event, "range begins: ", event->text);
		break;
	case TRACE_RANGE_END:
		print_note(replay, event, "range ends: ", event->text);
		break;
	case TRACE_COUNTER:
		print_note(replay, event, "counter ", event->text);
		break;
	case TRACE_PAUSE: print_note(replay, event, "off", ""); break;
	case TRACE_RESUME: print_note(replay, event, "on", ""); break;
	case TRACE_LOST: print_lost(replay, event); break;
	case TRACE_GAP: print_gap(replay, event); break;
	}
}

static void mark_functions(struct replay *replay)
{
	if (replay->options->function)
		replay->wanted = find_functions(replay->layout.model,
						replay->options->function);
}

static void print_events(struct replay *replay, struct trace_merge *merge)
{
	long limit = replay->options->limit;
	struct trace_event event;

	while (trace_merge_next(merge, &event)) {
		if (!is_wanted(replay, &event))
			continue;
		print_event(replay, &event);
		if (limit > 0 && replay->lines >= (uint64_t)limit) {
			replay->is_held = false;
			return;
		}
	}
	release(replay);
}

/* If nothing was printed, every thread has been seen by now. */
static void check_thread(const struct replay *replay)
{
	uint32_t i;

	for (i = 0; i < replay->trace->thread_count; i++)
		if (is_thread(replay, i))
			return;
	if (replay->options->thread)
		die("no thread %s was recorded", replay->options->thread);
}

void replay_print(FILE *out, struct recording *recording,
		  const struct options *options)
{
	static const struct column columns[] = { { "time us", 14 },
						 { "duration", 10 },
						 { "thread", 7 },
						 { "call", 0 } };
	struct model model = { .recording = recording };
	struct trace_merge *merge;
	struct trace trace;
	struct replay replay = { .trace = &trace, .options = options };

	if (!trace_open(&trace, recording))
		die("%s: there is no trace in it (profrun -p trace)",
		    recording->path);
	model_find_functions(&model);
	replay.layout = layout_on(out, options, &model);
	replay.table = table_begin(&replay.layout, columns);
	replay.has_processes = recording->process_count > 1;
	for (uint32_t i = 0; i < model.function_count; i++)
		/* any function may be in the trace */
		model.functions[i].sums.calls = 1;
	check_names(&model);
	mark_functions(&replay);
	table_titles(&replay.table, NULL);
	merge = trace_merge_begin(
		&trace, &(struct trace_range){
				.from_ns = options->from_ns,
				.to_ns = options->to_ns,
				.min_duration_ns = options->min_duration_ns,
			});
	print_events(&replay, merge);
	check_thread(&replay);
	trace_merge_end(merge);
	trace_close(&trace);
	free(replay.wanted);
	free(replay.inside);
}
