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
#include "model/functions.h"
#include "model/model.h"
#include "model/options.h"
#include "model/window.h"
#include "read/process.h"
#include "read/recording.h"
#include "text/layout.h"
#include "text/replay.h"
#include "text/table.h"
#include "trace/clocks.h"
#include "trace/gaps.h"
#include "trace/merge.h"
#include "trace/messages.h"
#include "trace/trace.h"

#define INDENT_MAX 60

struct replay {
	struct layout layout;
	struct table table;
	struct trace *trace;
	const struct model *model;
	const struct options *options;
	bool has_processes;
	uint64_t lines;
	/* an ENTER whose line may still be completed */
	struct trace_event held;
	bool is_held;
	char arguments[512]; /* of it */
	char result[512];    /* result of the call that is left next */
	uint32_t result_thread;
};

static struct function *function_of(const struct replay *replay,
				    const struct trace_event *event)
{
	struct site *site = &replay->trace->recording->sites[event->site];

	return &replay->layout.model->functions[site->function];
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

static void keep_value_text(char to[512], const char *text)
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

static void print_wait(struct replay *replay, const struct trace_event *event)
{
	const struct trace_thread *thread =
		&replay->trace->threads[event->thread];
	FILE *out = replay->layout.out;
	char text[2 * LOCK_TEXT];

	release(replay);
	begin_line(replay, event, event->duration_ns, "");
	put_color(replay, "\033[35m");
	fputs("-- ", out);
	put_text(out, locks_wait_text(replay->model, thread->process, event,
				      text, sizeof(text)));
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
	case TRACE_ARGUMENTS:
		keep_value_text(replay->arguments, event->text);
		break;
	case TRACE_RESULT:
		keep_value_text(replay->result, event->text);
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
	case TRACE_WAIT: print_wait(replay, event); break;
	case TRACE_MESSAGE:
		print_note(replay, event, "", trace_message_text(event));
		break;
	}
}

static void print_events(struct replay *replay, struct trace_merge *merge)
{
	long limit = replay->options->limit;
	struct trace_event event;

	while (trace_merge_next(merge, &event)) {
		print_event(replay, &event);
		if (limit > 0 && replay->lines >= (uint64_t)limit) {
			replay->is_held = false;
			return;
		}
	}
	release(replay);
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
	struct trace_range range;
	struct trace trace;
	struct replay replay = { .trace = &trace,
				 .model = &model,
				 .options = options };

	if (!trace_open(&trace, recording))
		die("%s: there is no trace in it (profrun -p trace)",
		    recording->path);
	trace_clocks_tell(&trace);
	model_find_functions(&model);
	locks_find(&model);
	trace_find_messages(&trace);
	replay.layout = layout_on(out, options, &model);
	replay.table = table_begin(&replay.layout, columns);
	replay.has_processes = recording->process_count > 1;
	range = window_begin(&trace, &model, options, true);
	range.doing = "printing";
	check_names(&model);
	table_titles(&replay.table, NULL);
	merge = trace_merge_begin(&trace, &range);
	print_events(&replay, merge);
	trace_merge_end(merge);
	trace_close(&trace);
	window_end(&range);
}
