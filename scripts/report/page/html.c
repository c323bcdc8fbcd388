/*
 * One page that holds all of a recording: what is in page/, which the build
 * puts together, with the numbers between.  Text is in one JSON object, each
 * string once; numbers are in columns (columns.h), one piece for each model
 * and in it one for each view: the tree of a thread, or of all.
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <shim/format.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/messages.h"
#include "base/names.h"
#include "base/numbers.h"
#include "base/text.h"
#include "export/json_exceptions.h"
#include "export/json_locks.h"
#include "model/model.h"
#include "model/options.h"
#include "page/columns.h"
#include "page/html.h"
#include "page/html_numbers.h"
#include "page/timeline.h"
#include "read/process.h"
#include "text/report.h"
#include "trace/trace.h"

/* What the build made of page/: all before the numbers, all after them. */
extern const char html_begin[], html_end[];

/* As JSON that no HTML can be in. */
static void put_script(FILE *out, const char *text, size_t size)
{
	size_t i;

	for (i = 0; i < size; i++)
		if (text[i] == '<')
			fputs("\\u003c", out);
		else
			putc(text[i], out);
}

static void put_view(FILE *out, const struct model *model,
		     const struct view *view)
{
	const struct thread *thread = NULL;

	fprintf(out, "{\"paths\":%u,\"size\":%zu,\"thread\":", view->paths,
		view->size);
	if (view->thread != NONE)
		thread = &model->threads[view->thread];
	if (!thread) {
		fputs("null}", out);
		return;
	}
	fprintf(out, "{\"tid\":%u,\"process\":", thread->tid);
	put_json(out, model->recording->processes[thread->process].name);
	fputs(",\"name\":", out);
	put_json(out, thread->name);
	fputs("}}", out);
}

static const char *flag(bool value)
{
	return value ? "true" : "false";
}

static void put_source(FILE *out, const struct source *source)
{
	const struct model *model = source->model;
	uint32_t i;

	fprintf(out,
		"{\"kind\":\"%s\",\"by_thread\":%s,\"against\":%s,"
		"\"functions\":%u,\"functions_size\":%zu",
		counted_name(model), flag(model->by_thread),
		flag(source->is_against), source->function_count,
		source->functions_size);
	fputs(",\"program\":", out);
	put_json(out,
		 process_string(&model->recording->processes[0], "program"));
	fputs(",\"recording\":", out);
	put_json(out, base_name(model->recording->path));
	fprintf(out, ",\"times\":%s,\"errors\":%s,\"ranges\":%s,\"memory\":%s",
		flag(model->has_times), flag(model->has_errors),
		flag(model->has_ranges), flag(model->has_memory));
	fprintf(out, ",\"waits\":%s,\"searched\":%s",
		flag(model->locks != NULL),
		flag(model->memory_heaps_searched > 0));
	fprintf(out,
		",\"left_out\":%" PRIu64 ",\"least\":%" PRIu64
		",\"bucket_ns\":%.17g,\"views\":[",
		source->left_out, whole(source->least), model->bucket_ns);
	for (i = 0; i < source->view_count; i++) {
		fputs(i ? "," : "", out);
		put_view(out, model, &source->views[i]);
	}
	fputs("]}", out);
}

/* What the report says before its table. */
static void put_facts(FILE *out, struct model *model,
		      const struct options *options)
{
	char *text = NULL;
	size_t size = 0;
	FILE *head = open_memstream(&text, &size);

	if (!head)
		die("out of memory");
	head_print(head, model, options);
	fclose(head);
	put_json(out, text);
	free(text);
}

static void put_lane(FILE *out, const struct timeline *timeline,
		     const struct timeline_lane *lane)
{
	const struct trace_thread *thread =
		&timeline->trace.threads[lane->thread];

	fprintf(out, "{\"thread\":%u,\"tid\":%u,\"track\":%u,\"process\":",
		lane->thread, thread->tid, lane->track);
	put_json(out, timeline->recording.processes[thread->process].name);
	fprintf(out,
		",\"calls\":%" PRIu64 ",\"pieces\":%u,\"begin_ns\":%" PRIu64
		",\"end_ns\":%" PRIu64 ",\"name\":",
		lane->calls, lane->pieces, whole(lane->begin_ns),
		whole(lane->end_ns));
	put_json(out, thread->name);
	fputc('}', out);
}

static void put_mark(FILE *out, const struct timeline_mark *mark)
{
	static const char *const kinds[] = {
		[TRACE_MARK] = "mark",	   [TRACE_RANGE_BEGIN] = "begin",
		[TRACE_RANGE_END] = "end", [TRACE_COUNTER] = "counter",
		[TRACE_PAUSE] = "pause",   [TRACE_RESUME] = "resume",
		[TRACE_LOST] = "lost",
	};

	fprintf(out, "[%u,\"%s\",%" PRIu64 ",", mark->thread, kinds[mark->kind],
		whole(mark->time_ns));
	if (isfinite(mark->value))
		fprintf(out, "%.17g,", mark->value);
	else
		fputs("null,", out);
	put_json(out, mark->text);
	fputc(']', out);
}

static void put_values(FILE *out, const struct timeline_values *values)
{
	fprintf(out, "[%u,%u,", values->lane, values->piece);
	put_json(out, values->arguments);
	fputc(',', out);
	put_json(out, values->result);
	fputc(']', out);
}

static void put_timeline(FILE *out, const struct timeline *timeline)
{
	uint32_t i;

	fputs(",\n\"timeline\":", out);
	if (!timeline) {
		fputs("null", out);
		return;
	}
	fprintf(out,
		"{\"calls\":%" PRIu64 ",\"merged\":%" PRIu64
		",\"least_ns\":%" PRIu64 ",\"duration_ns\":%" PRIu64
		",\"marks_left_out\":%" PRIu64 ",\"lanes\":[",
		timeline->calls, timeline->merged,
		whole(ceil(timeline->least_ns)), whole(timeline->duration_ns),
		timeline->marks_left_out);
	for (i = 0; i < timeline->lane_count; i++) {
		fputs(i ? ",\n" : "\n", out);
		put_lane(out, timeline, &timeline->lanes[i]);
	}
	fputs("],\n\"marks\":[", out);
	for (i = 0; i < timeline->mark_count; i++) {
		fputs(i ? ",\n" : "\n", out);
		put_mark(out, &timeline->marks[i]);
	}
	fprintf(out, "],\n\"gaps_left_out\":%" PRIu64 ",\"gaps\":[",
		timeline->gaps_left_out);
	for (i = 0; i < timeline->gap_count; i++)
		fprintf(out, "%s[%u,%u,%" PRIu64 ",%" PRIu64 "]",
			i ? ",\n" : "\n", timeline->gaps[i].thread,
			timeline->gaps[i].waits,
			whole(timeline->gaps[i].time_ns),
			whole(timeline->gaps[i].duration_ns));
	fprintf(out, "],\n\"values_left_out\":%" PRIu64 ",\"values\":[",
		timeline->values_left_out);
	for (i = 0; i < timeline->values_count; i++) {
		fputs(i ? ",\n" : "\n", out);
		put_values(out, &timeline->values[i]);
	}
	fputs("]}", out);
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

static void put_strings(FILE *out, const struct html *html)
{
	uint32_t i;

	fputs(",\n\"strings\":[", out);
	for (i = 0; i < html->strings.count; i++) {
		fputs(i ? ",\n" : "\n", out);
		put_json(out, html->strings.text[i]);
	}
	fputc(']', out);
}

static void put_text_of(FILE *out, const struct html *html)
{
	struct model *model = html->sources[0].model;
	const struct process *first = &model->recording->processes[0];
	size_t i;

	fputs("{\"version\":1,\"shim\":\"" SHIM_VERSION "\",\"recording\":",
	      out);
	put_json(out, base_name(model->recording->path));
	fputs(",\"program\":", out);
	put_json(out, process_string(first, "program"));
	fputs(",\"command\":", out);
	put_json(out, process_string(first, "command"));
	fputs(",\"facts\":", out);
	put_facts(out, model, html->options);
	fprintf(out, ",\"lost\":%" PRIu64 ",\"starts_with\":%s", model->lost,
		html->options->memory ? "\"allocated\"" :
		html->options->locks  ? "\"waits\"" :
					"null");
	if (model->locks)
		locks_json(out, model, html->options);
	if (model->exceptions)
		exceptions_json(out, model, html->options);
	fputs(",\n\"sources\":[", out);
	for (i = 0; i < html->source_count; i++) {
		fputs(i ? ",\n" : "\n", out);
		put_source(out, &html->sources[i]);
	}
	fputc(']', out);
	put_timeline(out, html->timeline);
	put_strings(out, html);
	fputs(",\n\"warnings\":[", out);
	for (i = 0; i < warning_count(); i++) {
		fputs(i ? ",\n" : "\n", out);
		put_json(out, warning_text(i));
	}
	fputs("]}\n", out);
}

static void print_text(FILE *out, const struct html *html)
{
	char *text = NULL;
	size_t size = 0;
	FILE *json = open_memstream(&text, &size);

	if (!json)
		die("out of memory");
	put_text_of(json, html);
	fclose(json);
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
