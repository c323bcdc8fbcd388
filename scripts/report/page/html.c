/*
 * Writes one page that contains a whole recording: the text of page/, which the
 * build puts together, with the numbers in the middle.  Text is in one JSON
 * object, each string once.  Numbers are in columns (columns.h): one piece for
 * each model, with one part for each view (the tree of a thread, or of all
 * threads).
 */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <shim/format.h>

#include "base/json.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/messages.h"
#include "base/names.h"
#include "base/numbers.h"
#include "base/text.h"
#include "export/json_exceptions.h"
#include "export/json_locks.h"
#include "export/json_report.h"
#include "model/locks.h"
#include "model/model.h"
#include "model/options.h"
#include "model/snapshots.h"
#include "page/columns.h"
#include "page/html.h"
#include "page/html_numbers.h"
#include "page/listings.h"
#include "page/timeline.h"
#include "read/process.h"
#include "text/report.h"
#include "trace/trace.h"

/* The two parts of the page that the build made: before and after the
 * numbers. */
extern const char html_begin[], html_end[];

/* Writes JSON that cannot contain HTML. */
static void put_script(FILE *out, const char *text, size_t size)
{
	size_t i;

	for (i = 0; i < size; i++)
		if (text[i] == '<')
			fputs("\\u003c", out);
		else
			putc(text[i], out);
}

static void put_view(struct json *json, const struct model *model,
		     const struct view *view)
{
	const struct recording *recording = model->recording;
	const struct process *process;
	const struct thread *thread;

	json_object(json);
	json_key_count(json, "paths", view->paths);
	json_key_count(json, "size", view->size);
	if (view->thread == NONE) {
		json_key_null(json, "thread");
	} else {
		thread = &model->threads[view->thread];
		process = &recording->processes[thread->process];
		json_key_object(json, "thread");
		json_key_count(json, "tid", thread->tid);
		json_key_text(json, "process", process->name);
		json_key_text(json, "part",
			      recording->part_count > 1 ?
				      recording->parts[process->part].name :
				      NULL);
		json_key_text(json, "name", thread->name);
		json_close_object(json);
	}
	json_close_object(json);
}

static void put_source(struct json *json, const struct source *source)
{
	const struct model *model = source->model;
	uint32_t i;

	json_object(json);
	json_key_text(json, "kind", counted_name(model));
	json_key_flag(json, "by_thread", model->by_thread);
	json_key_flag(json, "against", source->is_against);
	json_key_count(json, "functions", source->function_count);
	json_key_count(json, "functions_size", source->functions_size);
	json_key_text(
		json, "program",
		process_string(&model->recording->processes[0], "program"));
	json_key_text(json, "recording", base_name(model->recording->path));
	json_key_flag(json, "times", model->has_times);
	json_key_flag(json, "errors", model->has_errors);
	json_key_flag(json, "estimates", model->budget != NULL);
	json_key_flag(json, "ranges", model->has_ranges);
	json_key_flag(json, "waited", model->has_waited);
	json_key_flag(json, "guessed", model->is_sampled && model->guessed);
	json_key_flag(json, "memory", model->has_memory);
	json_key_flag(json, "waits", model->locks != NULL);
	json_key_flag(json, "searched", model->memory_heaps_searched > 0);
	json_key_count(json, "left_out", source->left_out);
	json_key_count(json, "least", whole(source->least));
	json_key_number(json, "bucket_ns", model->bucket_ns, 17);
	json_key_array(json, "views");
	for (i = 0; i < source->view_count; i++)
		put_view(json, model, &source->views[i]);
	json_close_array(json);
	json_close_object(json);
}

/* Writes the facts that the report prints before its table. */
static void put_facts(struct json *json, struct model *model,
		      const struct options *options)
{
	char *text = NULL;
	size_t size = 0;
	FILE *head = open_memstream(&text, &size);

	if (!head)
		die("out of memory");
	head_print(head, model, options);
	fclose(head);
	json_key_text(json, "facts", text);
	free(text);
}

/* The size of the heap over time, of the process with the highest peak. */
static void put_memory(struct json *json, const struct model *model)
{
	struct point points[SHIM_POINTS];
	uint32_t count = 0, i;

	if (model->memory_peak_process)
		count = snapshots_points(model->memory_peak_process, points);
	json_line(json, 0);
	json_key_array(json, "memory_points");
	for (i = 0; i < count; i++) {
		json_array(json);
		json_count(json, whole(points[i].ns));
		json_count(json, points[i].bytes);
		json_close_array(json);
	}
	json_close_array(json);
	json_key_count(json, "memory_peak", model->memory_peak);
	json_key_count(json, "memory_peak_ns", whole(model->memory_peak_ns));
}

static void put_lane(struct json *json, const struct timeline *timeline,
		     const struct timeline_lane *lane)
{
	const struct trace_thread *thread =
		&timeline->trace.threads[lane->thread];

	json_object(json);
	json_key_count(json, "thread", lane->thread);
	json_key_count(json, "tid", thread->tid);
	json_key_count(json, "track", lane->track);
	json_key_text(json, "process",
		      timeline->recording.processes[thread->process].name);
	json_key_count(json, "calls", lane->calls);
	json_key_count(json, "pieces", lane->pieces);
	json_key_count(json, "begin_ns", whole(lane->begin_ns));
	json_key_count(json, "end_ns", whole(lane->end_ns));
	json_key_text(json, "name", thread->name);
	json_close_object(json);
}

static void put_mark(struct json *json, const struct timeline_mark *mark)
{
	static const char *const kinds[] = {
		[TRACE_MARK] = "mark",	   [TRACE_RANGE_BEGIN] = "begin",
		[TRACE_RANGE_END] = "end", [TRACE_COUNTER] = "counter",
		[TRACE_PAUSE] = "pause",   [TRACE_RESUME] = "resume",
		[TRACE_LOST] = "lost",
	};

	json_array(json);
	json_count(json, mark->thread);
	json_text(json, kinds[mark->kind]);
	json_count(json, whole(mark->time_ns));
	json_number(json, mark->value, 17);
	json_text(json, mark->text);
	json_close_array(json);
}

static void put_gap(struct json *json, const struct timeline_gap *gap)
{
	json_array(json);
	json_count(json, gap->thread);
	json_count(json, gap->waits);
	json_count(json, whole(gap->time_ns));
	json_count(json, whole(gap->duration_ns));
	json_close_array(json);
}

/* Who was late, how, and in which thread. */
static void put_late(struct json *json, const struct trace_event *wait)
{
	json_text(json, trace_gap_text(wait) + strlen("waits for "));
	json_null(json);
	json_count(json, 0);
	json_count(json, 0);
	json_count(json, wait->holder);
}

/* Thread, track, depth, end, duration, kind, lock, holder, and whether the wait was in
 * vain (1) or did not end (2); of a wait for another process, its thread follows. */
static void put_wait(struct json *json, const struct timeline *timeline,
		     const struct trace_event *wait)
{
	const struct trace_thread *thread =
		&timeline->trace.threads[wait->thread];
	char name[LOCK_TEXT];

	json_array(json);
	json_count(json, wait->thread);
	json_count(json, wait->track);
	json_count(json, wait->depth);
	json_count(json, whole(wait->time_ns));
	json_count(json, whole(wait->duration_ns));
	if (wait->kind == TRACE_GAP) {
		put_late(json, wait);
		json_close_array(json);
		return;
	}
	json_text(json, locks_kind(wait->cause));
	json_text(json, locks_name(&timeline->model, thread->process,
				   wait->address, name, sizeof(name)));
	json_count(json, wait->holder);
	json_count(json, wait->is_open ? 2 : wait->is_failed);
	json_close_array(json);
}

/* Thread and time of sending and receiving, bytes and tag. */
static void put_message(struct json *json,
			const struct timeline_message *message)
{
	json_array(json);
	json_count(json, message->from_thread);
	json_count(json, whole(message->from_ns));
	json_count(json, message->to_thread);
	json_count(json, whole(message->to_ns));
	json_count(json, message->bytes);
	json_number(json, message->tag, 17);
	json_close_array(json);
}

static void put_messages(struct json *json, const struct timeline *timeline)
{
	uint32_t i;

	json_line(json, 0);
	json_key_count(json, "messages_left_out", timeline->messages_left_out);
	json_key_array(json, "messages");
	for (i = 0; i < timeline->message_count; i++) {
		json_line(json, 0);
		put_message(json, &timeline->messages[i]);
	}
	json_close_array(json);
}

static void put_values(struct json *json, const struct timeline_values *values)
{
	json_array(json);
	json_count(json, values->lane);
	json_count(json, values->piece);
	json_text(json, values->arguments);
	json_text(json, values->result);
	json_close_array(json);
}

static void put_timeline(struct json *json, const struct timeline *timeline)
{
	uint32_t i;

	json_line(json, 0);
	if (!timeline) {
		json_key_null(json, "timeline");
		return;
	}
	json_key_object(json, "timeline");
	json_key_count(json, "calls", timeline->calls);
	json_key_count(json, "merged", timeline->merged);
	json_key_count(json, "least_ns", whole(ceil(timeline->least_ns)));
	json_key_count(json, "duration_ns", whole(timeline->duration_ns));
	json_key_count(json, "marks_left_out", timeline->marks_left_out);
	json_key_array(json, "lanes");
	for (i = 0; i < timeline->lane_count; i++) {
		json_line(json, 0);
		put_lane(json, timeline, &timeline->lanes[i]);
	}
	json_close_array(json);
	json_line(json, 0);
	json_key_array(json, "marks");
	for (i = 0; i < timeline->mark_count; i++) {
		json_line(json, 0);
		put_mark(json, &timeline->marks[i]);
	}
	json_close_array(json);
	json_line(json, 0);
	json_key_count(json, "gaps_left_out", timeline->gaps_left_out);
	json_key_array(json, "gaps");
	for (i = 0; i < timeline->gap_count; i++) {
		json_line(json, 0);
		put_gap(json, &timeline->gaps[i]);
	}
	json_close_array(json);
	json_line(json, 0);
	json_key_count(json, "waits_left_out", timeline->waits_left_out);
	json_key_array(json, "waits");
	for (i = 0; i < timeline->wait_count; i++) {
		json_line(json, 0);
		put_wait(json, timeline, &timeline->waits[i]);
	}
	json_close_array(json);
	json_line(json, 0);
	put_messages(json, timeline);
	json_key_count(json, "values_left_out", timeline->values_left_out);
	json_key_array(json, "values");
	for (i = 0; i < timeline->values_count; i++) {
		json_line(json, 0);
		put_values(json, &timeline->values[i]);
	}
	json_close_array(json);
	json_close_object(json);
}

static void print_numbers(FILE *out, const char *name, size_t number,
			  struct columns *columns)
{
	fprintf(out, "<script type=\"text/plain\" id=\"%s%zu\">", name, number);
	columns_print(out, columns);
	fputs("</script>\n", out);
	columns_free(columns);
}

static void print_timeline(FILE *out, struct html *html)
{
	uint32_t i;

	print_numbers(out, "calls", 0, &html->timeline_functions);
	for (i = 0; i < html->timeline->lane_count; i++)
		print_numbers(out, "calls", i + 1,
			      &html->timeline->lanes[i].columns);
}

static void put_strings(struct json *json, const struct html *html)
{
	uint32_t i;

	json_line(json, 0);
	json_key_array(json, "strings");
	for (i = 0; i < html->strings.count; i++) {
		json_line(json, 0);
		json_text(json, html->strings.text[i]);
	}
	json_close_array(json);
}

static void put_text_of(struct json *json, const struct html *html)
{
	struct model *model = html->sources[0].model;
	const struct process *first = &model->recording->processes[0];
	size_t i;

	json_object(json);
	json_key_count(json, "version", 1);
	json_key_text(json, "shim", SHIM_VERSION);
	json_key_text(json, "recording", base_name(model->recording->path));
	json_key_text(json, "program", process_string(first, "program"));
	json_key_text(json, "command", process_string(first, "command"));
	put_facts(json, model, html->options);
	json_key_count(json, "lost", model->lost);
	json_key_text(json, "starts_with",
		      html->options->memory ? "allocated" :
		      html->options->locks  ? "waits" :
					      NULL);
	if (model->has_memory)
		put_memory(json, model);
	if (model->locks)
		locks_json(json, model, html->options);
	if (model->exceptions)
		exceptions_json(json, model, html->options);
	json_line(json, 0);
	json_key_array(json, "sources");
	for (i = 0; i < html->source_count; i++) {
		json_line(json, 0);
		put_source(json, &html->sources[i]);
	}
	json_close_array(json);
	put_timeline(json, html->timeline);
	if (html->annotation)
		listings_json(json, html);
	put_strings(json, html);
	json_put_warnings(json);
	json_close_object(json);
}

static void print_text(FILE *out, const struct html *html)
{
	char *text = NULL;
	size_t size = 0;
	FILE *memory = open_memstream(&text, &size);
	struct json json = json_begin(memory);

	if (!memory)
		die("out of memory");
	put_text_of(&json, html);
	json_end(&json);
	fclose(memory);
	put_script(out, text, size);
	free(text);
}

void html_print(FILE *out, const struct html_contents *contents,
		const struct options *options)
{
	size_t i, count = contents->model_count;
	struct html html = {
		.options = options,
		.sources = allocate(count + 1, sizeof(struct source)),
		.source_count = count + (contents->against != NULL),
		.timeline = contents->timeline,
		.annotation = contents->annotation,
	};

	for (i = 0; i < html.source_count; i++) {
		html.sources[i].model = i < count ? contents->models[i] :
						    contents->against;
		html.sources[i].is_against = i == count;
		html_fill_source(&html, &html.sources[i]);
	}
	if (html.timeline)
		html_name_timeline(&html);
	fputs(html_begin, out);
	fputs("<script type=\"application/json\" id=\"text\">", out);
	print_text(out, &html);
	fputs("</script>\n", out);
	for (i = 0; i < html.source_count; i++) {
		print_numbers(out, "numbers", i, &html.sources[i].columns);
		free(html.sources[i].views);
		free(html.sources[i].places);
		free(html.sources[i].weights);
	}
	if (html.timeline)
		print_timeline(out, &html);
	fputs(html_end, out);
	names_free(&html.strings);
	free(html.sources);
}
