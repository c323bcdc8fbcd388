/*
 * One page that holds all of a recording: what is in page/, which the build
 * puts together, with the numbers between.  Text is in one JSON object, each
 * string once; numbers are in columns (columns.h), one piece for each model
 * and in it one for each view: the tree of a thread, or of all.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "columns.h"
#include "html.h"

/* What the build made of page/: all before the numbers, all after them. */
extern const char html_begin[], html_end[];

struct view {
	uint32_t thread;		/* NONE: all */
	uint32_t paths;
	size_t size;			/* bytes of columns */
};

/* One model in the page. */
struct source {
	struct model *model;
	struct columns columns;
	size_t functions_size;		/* bytes; the views follow */
	uint32_t *places;		/* of functions in the page, or NONE */
	uint32_t function_count;	/* with a place */
	struct view *views;
	uint32_t view_count, view_room;
	bool is_against;		/* of what the others are compared with */
	double *weights;		/* of paths: see choose_paths() */
	double least;			/* what weighs no more is left out */
	uint64_t left_out;
};

struct html {
	const struct options *options;
	struct names strings;
	struct source *sources;
	size_t source_count;
	struct timeline *timeline;	/* or NULL */
	struct columns timeline_functions;
};

/* --- which paths --- */

static int compare_doubles(const void *left, const void *right)
{
	const double *a = left, *b = right;

	return *a > *b ? -1 : *a < *b;
}

/* What keeps a path in the page: time, or calls, with those below it; never more
 * than what is above it has. */
static double *weigh_paths(const struct model *model)
{
	double *weights = allocate(model->path_count, sizeof(*weights));
	const struct path *path;
	uint32_t i;

	for (i = model->path_count - 1; i > 0; i--) {
		path = &model->paths[i];
		if (model->has_times) {
			weights[i] = fmax(fmax(path->total, weights[i]), 0);
			weights[path->parent] = fmax(weights[path->parent],
						     weights[i]);
			continue;
		}
		weights[i] += (double)path->calls + path->open;
		if (model->has_memory)
			weights[i] += (double)model->memory[i].allocations;
		weights[path->parent] += weights[i];
	}
	return weights;
}

/*
 * Of very many paths those with most are kept, and the page says how many are
 * not; the sums of functions have all of them.
 */
static void choose_paths(struct source *source, uint32_t most)
{
	struct model *model = source->model;
	size_t size = model->path_count * sizeof(double);
	double *sorted;

	source->weights = weigh_paths(model);
	source->least = -1;
	if (model->path_count <= most)
		return;
	sorted = allocate(model->path_count, sizeof(*sorted));
	memcpy(sorted, source->weights, size);
	qsort(sorted, model->path_count, sizeof(*sorted), compare_doubles);
	source->least = sorted[most];
	free(sorted);
}

struct walking {
	struct source *source;
	uint32_t *order;
	uint32_t *up;			/* from the one before to the parent */
	uint32_t count, depth;
};

static bool enter_path(void *context, uint32_t number, uint32_t depth)
{
	struct walking *walking = context;
	struct source *source = walking->source;

	if (depth == 0)
		return true;
	if (source->weights[number] <= source->least) {
		source->left_out++;
		return false;
	}
	walking->order[walking->count] = number;
	walking->up[walking->count++] = walking->depth + 1 - depth;
	walking->depth = depth;
	return true;
}

static void leave_path(void *context, uint32_t number, uint32_t depth)
{
	(void)context;
	(void)number;
	(void)depth;
}

/* --- columns --- */

#define COLUMN(columns, i, count, value)                                    \
	for (i = 0; i < (count); i++)                                       \
		columns_put(columns, value)

static uint64_t error_of(double variance)
{
	return whole(sqrt(fmax(variance, 0)));
}

static int64_t rounded(double value)
{
	return fabs(value) < 9e15 ? llround(value) : value < 0 ?
	       -9000000000000000 : 9000000000000000;
}

/* 0: unknown. */
static uint64_t known(double value, bool is_known)
{
	return is_known ? whole(value) + 1 : 0;
}

static bool has_path_range(const struct path *path)
{
	return !path->has_no_range && path->max >= path->min;
}

static void put_path_memory(struct columns *columns, const struct model *model,
			    const uint32_t *order, uint32_t count)
{
	const struct memory *memory = model->memory;
	uint32_t i;

	COLUMN(columns, i, count, memory[order[i]].allocated);
	COLUMN(columns, i, count, memory[order[i]].allocations);
	COLUMN(columns, i, count, memory[order[i]].peak);
	COLUMN(columns, i, count, memory[order[i]].live);
}

static void put_paths(struct source *source, const struct walking *walking)
{
	struct columns *columns = &source->columns;
	const struct model *model = source->model;
	const uint32_t *order = walking->order;
	const struct path *paths = model->paths;
	uint32_t i, count = walking->count;

	COLUMN(columns, i, count, walking->up[i]);
	COLUMN(columns, i, count, source->places[paths[order[i]].function]);
	COLUMN(columns, i, count, paths[order[i]].calls);
	COLUMN(columns, i, count, paths[order[i]].open);
	COLUMN(columns, i, count, paths[order[i]].untimed);
	if (model->is_sampled)
		COLUMN(columns, i, count, paths[order[i]].own);
	if (model->has_times) {
		for (i = 0; i < count; i++)
			columns_put_signed(columns,
					   rounded(paths[order[i]].self));
		COLUMN(columns, i, count, whole(paths[order[i]].total));
	}
	if (model->has_errors) {
		COLUMN(columns, i, count,
		       error_of(path_self_variance(&paths[order[i]])));
		COLUMN(columns, i, count, error_of(paths[order[i]].variance));
	}
	if (model->has_ranges) {
		COLUMN(columns, i, count, known(paths[order[i]].min,
				has_path_range(&paths[order[i]])));
		COLUMN(columns, i, count, known(paths[order[i]].max,
				has_path_range(&paths[order[i]])));
	}
	if (model->has_memory)
		put_path_memory(columns, model, order, count);
	if (model->locks)
		COLUMN(columns, i, count, whole(locks_waited(model, order[i])));
}

static void put_sums(struct source *source, const struct sums *sums)
{
	struct columns *columns = &source->columns;
	const struct model *model = source->model;
	uint32_t *rows = allocate(model->function_count, sizeof(*rows));
	uint32_t i, count = 0;

	for (i = 0; i < model->function_count; i++)
		if (sums[i].calls || sums[i].open)
			rows[count++] = i;
	columns_put(columns, count);
	COLUMN(columns, i, count, source->places[rows[i]]);
	COLUMN(columns, i, count, sums[rows[i]].calls);
	COLUMN(columns, i, count, sums[rows[i]].open);
	COLUMN(columns, i, count, sums[rows[i]].untimed);
	COLUMN(columns, i, count, whole(sums[rows[i]].self));
	COLUMN(columns, i, count, whole(sums[rows[i]].total));
	COLUMN(columns, i, count, error_of(sums[rows[i]].self_variance));
	COLUMN(columns, i, count, error_of(sums[rows[i]].total_variance));
	free(rows);
}

static void add_view(struct source *source, uint32_t thread, uint32_t root)
{
	struct model *model = source->model;
	struct sums *sums = allocate(model->function_count, sizeof(*sums));
	struct walking walking = {
		.source = source,
		.order = allocate(model->path_count, sizeof(uint32_t)),
		.up = allocate(model->path_count, sizeof(uint32_t)),
	};
	struct walk walk = { enter_path, leave_path, &walking };
	size_t before = source->columns.size;
	struct view *view;

	model_walk(model, root, &walk);
	put_paths(source, &walking);
	model_sum(model, root, sums);
	put_sums(source, sums);
	GROW(source->views, source->view_count, source->view_room);
	view = &source->views[source->view_count++];
	*view = (struct view){ thread, walking.count,
			       source->columns.size - before };
	free(walking.order);
	free(walking.up);
	free(sums);
}

static void put_histogram(struct columns *columns,
			  const struct function *function)
{
	uint32_t i, used = 0;

	for (i = 0; i < SHIM_BUCKETS && function->histogram; i++)
		used += function->histogram[i] > 0;
	columns_put(columns, used);
	for (i = 0; i < SHIM_BUCKETS && used; i++) {
		if (!function->histogram[i])
			continue;
		columns_put(columns, i);
		columns_put(columns, function->histogram[i]);
	}
}

/* 0: no string. */
static uint32_t string_of(struct html *html, const char *text)
{
	return text ? names_add(&html->strings, text) + 1 : 0;
}

static void put_function_memory(struct columns *columns,
				const struct memory *memory)
{
	columns_put(columns, memory->allocated);
	columns_put(columns, memory->allocations);
	columns_put(columns, memory->peak);
	columns_put(columns, memory->live);
}

static void put_names(struct html *html, struct columns *columns,
		      struct function *function)
{
	function_line(function);
	columns_put(columns, string_of(html, shown_name(function,
							html->options)));
	columns_put(columns, string_of(html, function->object ?
				       function->object->path : NULL));
	columns_put(columns, string_of(html, function->file));
	columns_put(columns, function->file ? (uint64_t)function->line : 0);
}

static void put_function(struct html *html, struct source *source, uint32_t n)
{
	struct function *function = &source->model->functions[n];
	struct columns *columns = &source->columns;

	put_names(html, columns, function);
	columns_put(columns, known(function->min, function->has_range));
	columns_put(columns, known(function->max, function->has_range));
	put_histogram(columns, function);
	if (!source->model->has_memory)
		return;
	put_function_memory(columns, &source->model->function_memory[n]);
	put_function_memory(columns, &source->model->function_memory_below[n]);
}

/* Those that are on some path. */
static void put_functions(struct html *html, struct source *source)
{
	struct model *model = source->model;
	uint32_t i;

	source->places = allocate(model->function_count, sizeof(uint32_t));
	for (i = 0; i < model->function_count; i++)
		source->places[i] = NONE;
	for (i = 0; i < model->path_count; i++) {
		uint32_t function = model->paths[i].function;

		if (function == NONE || source->places[function] != NONE)
			continue;
		source->places[function] = source->function_count++;
		put_function(html, source, function);
	}
	source->functions_size = source->columns.size;
}

static void fill_source(struct html *html, struct source *source)
{
	struct model *model = source->model;
	uint32_t i;

	choose_paths(source, html->options->max_paths);
	put_functions(html, source);
	if (!model->by_thread)
		add_view(source, NONE, 0);
	for (i = 0; i < model->thread_count && model->by_thread; i++)
		if (model->threads[i].calls || model->threads[i].open)
			add_view(source, i, model->threads[i].path);
}

static void name_timeline(struct html *html)
{
	struct model *model = &html->timeline->model;
	uint32_t i;

	columns_put(&html->timeline_functions, model->function_count);
	for (i = 0; i < model->function_count; i++)
		put_names(html, &html->timeline_functions,
			  &model->functions[i]);
}

/* --- text --- */

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

	fprintf(out, "{\"kind\":\"%s\",\"by_thread\":%s,\"against\":%s,"
		"\"functions\":%u,\"functions_size\":%zu",
		counted_name(model), flag(model->by_thread),
		flag(source->is_against), source->function_count,
		source->functions_size);
	fputs(",\"program\":", out);
	put_json(out, process_string(&model->recording->processes[0],
				     "program"));
	fputs(",\"recording\":", out);
	put_json(out, base_name(model->recording->path));
	fprintf(out, ",\"times\":%s,\"errors\":%s,\"ranges\":%s,\"memory\":%s",
		flag(model->has_times), flag(model->has_errors),
		flag(model->has_ranges), flag(model->has_memory));
	fprintf(out, ",\"waits\":%s", flag(model->locks != NULL));
	fprintf(out, ",\"left_out\":%" PRIu64 ",\"least\":%" PRIu64
		",\"bucket_ns\":%.17g,\"views\":[", source->left_out,
		whole(source->least), model->bucket_ns);
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
	fprintf(out, ",\"calls\":%" PRIu64 ",\"pieces\":%u,\"begin_ns\":%"
		PRIu64 ",\"end_ns\":%" PRIu64 ",\"name\":", lane->calls,
		lane->pieces, whole(lane->begin_ns), whole(lane->end_ns));
	put_json(out, thread->name);
	fputc('}', out);
}

static void put_mark(FILE *out, const struct timeline_mark *mark)
{
	static const char *const kinds[] = {
		[TRACE_MARK] = "mark", [TRACE_RANGE_BEGIN] = "begin",
		[TRACE_RANGE_END] = "end", [TRACE_COUNTER] = "counter",
		[TRACE_PAUSE] = "pause", [TRACE_RESUME] = "resume",
		[TRACE_LOST] = "lost",
	};

	fprintf(out, "[%u,\"%s\",%" PRIu64 ",", mark->thread,
		kinds[mark->kind], whole(mark->time_ns));
	if (isfinite(mark->value))
		fprintf(out, "%.17g,", mark->value);
	else
		fputs("null,", out);
	put_json(out, mark->text);
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
	fprintf(out, "{\"calls\":%" PRIu64 ",\"merged\":%" PRIu64
		",\"least_ns\":%" PRIu64 ",\"duration_ns\":%" PRIu64
		",\"marks_left_out\":%" PRIu64 ",\"lanes\":[", timeline->calls,
		timeline->merged, whole(ceil(timeline->least_ns)),
		whole(timeline->duration_ns), timeline->marks_left_out);
	for (i = 0; i < timeline->lane_count; i++) {
		fputs(i ? ",\n" : "\n", out);
		put_lane(out, timeline, &timeline->lanes[i]);
	}
	fputs("],\n\"marks\":[", out);
	for (i = 0; i < timeline->mark_count; i++) {
		fputs(i ? ",\n" : "\n", out);
		put_mark(out, &timeline->marks[i]);
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
		html->options->locks ? "\"waits\"" : "null");
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
		fill_source(&html, &html.sources[i]);
	}
	if (html.timeline)
		name_timeline(&html);
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
