/*
 * The report for people: a few lines on what was recorded and how far to
 * believe it, then the table of functions.  It is the same in a pipe and on a
 * terminal, except that a terminal gets colour and no line longer than itself.
 */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <shim/format.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "base/text.h"
#include "model/check_names.h"
#include "model/model.h"
#include "model/options.h"
#include "model/row_order.h"
#include "model/totals.h"
#include "read/end_text.h"
#include "read/files.h"
#include "read/process.h"
#include "read/recording.h"
#include "text/advice.h"
#include "text/callers.h"
#include "text/crosscheck.h"
#include "text/exceptions.h"
#include "text/filter.h"
#include "text/locks.h"
#include "text/memory.h"
#include "text/page.h"
#include "text/ranks.h"
#include "text/report.h"
#include "text/table.h"
#include "text/tree.h"

#define ROWS 30

/* What to do about the cause that has lost most. */
static const char *advice(const struct model *model)
{
	uint64_t all[SHIM_LOST_CAUSES];
	uint32_t i, kind, most = 0;

	for (i = 0; i < SHIM_LOST_CAUSES; i++) {
		all[i] = model->lost_causes[i];
		for (kind = 0; kind < SHIM_LOST_KINDS; kind++)
			all[i] += model->lost_others[kind][i];
		if (all[i] > all[most])
			most = i;
	}
	if (!all[most] && model_has_damage(model))
		return "its files were damaged after the program had written them";
	switch (most) {
	case SHIM_LOST_SPACE:
		return "the disk or the quota was full: free space, or record "
		       "elsewhere with -o DIR";
	case SHIM_LOST_FILE_SIZE:
		return "the limit of file sizes was reached: raise ulimit -f";
	case SHIM_LOST_MEMORY:
		return "there was no memory or address space: raise ulimit -v";
	case SHIM_LOST_ACCESS:
		return "the recording could not be reached any more: profrun "
		       "info says why";
	case SHIM_LOST_FORBIDDEN:
		return "the program had forbidden system calls (seccomp)";
	default: return "profrun info may say why";
	}
}

static void print_lost_kind(const struct page *page, const char *name,
			    const uint64_t lost[SHIM_LOST_CAUSES],
			    bool *is_first)
{
	char count[SHORT_TEXT];
	const char *comma = "";
	uint32_t i;

	if (!lost_sum(lost))
		return;
	fprintf(page->out, "%s%s%s %s LOST%s (", *is_first ? "" : ", ",
		page->color ? "\033[31m" : "",
		human_count(count, lost_sum(lost)), name,
		page->color ? "\033[m" : "");
	for (i = 0; i < SHIM_LOST_CAUSES; i++) {
		if (!lost[i])
			continue;
		fprintf(page->out, "%s%s: %s", comma, lost_names[i],
			human_count(count, lost[i]));
		comma = ", ";
	}
	fputc(')', page->out);
	*is_first = false;
}

static void print_damage(const struct page *page, bool is_first)
{
	const struct trace_damage *damage =
		&page->model->recording->trace_damage;
	char missing[SHORT_TEXT], damaged[SHORT_TEXT], size[SHORT_TEXT];

	if (!model_has_damage(page->model))
		return;
	fprintf(page->out,
		"%s%sparts of the trace LOST%s (%s blocks missing, "
		"%s damaged: %s unread)",
		is_first ? "" : ", ", page->color ? "\033[31m" : "",
		page->color ? "\033[m" : "",
		human_count(missing, damage->missing),
		human_count(damaged, damage->damaged),
		human_bytes(size, damage->bytes));
}

static void print_lost(const struct page *page)
{
	const struct model *model = page->model;
	bool is_first = true;
	uint32_t i;

	if (!model_has_lost(model)) {
		fputs("nothing lost\n", page->out);
		return;
	}
	print_lost_kind(page, counted_name(model), model->lost_causes,
			&is_first);
	for (i = 0; i < SHIM_LOST_KINDS; i++)
		print_lost_kind(page, lost_kinds[i], model->lost_others[i],
				&is_first);
	print_damage(page, is_first);
	fprintf(page->out, ": %s\n", advice(model));
}

/* What a process has become by exec is another image, and the same process. */
static void print_processes(const struct page *page)
{
	const struct recording *recording = page->model->recording;
	uint32_t i, processes = 0, execs;

	for (i = 0; i < recording->process_count; i++)
		processes += recording->processes[i].number == 0 ||
			     recording->processes[i].meta.forked;
	execs = recording->process_count - processes;
	fprintf(page->out, "%u process%s, ", processes,
		processes == 1 ? "" : "es");
	if (execs)
		fprintf(page->out, "%u exec%s, ", execs, execs == 1 ? "" : "s");
}

static void print_program(const struct page *page)
{
	const struct model *model = page->model;
	const struct recording *recording = model->recording;
	const struct process *process = &recording->processes[0];
	const char *command = process_string(process, "command");
	char text[SHORT_TEXT];
	uint32_t threads = 0, i;

	if (!command)
		command = process_string(process, "program");
	for (i = 0; i < model->thread_count; i++)
		threads += model->threads[i].calls > 0 || !model->calls;
	put_text(page->out, command ? command : "unknown program");
	fprintf(page->out, "\n  %s, ",
		time_text(text, model->duration, model->duration > 0));
	if (recording->part_count > 1)
		fprintf(page->out, "%u recordings, ", recording->part_count);
	print_processes(page);
	if (threads)
		fprintf(page->out, "%u thread%s, ", threads,
			threads == 1 ? "" : "s");
	put_text(page->out, end_text(recording));
	fputc('\n', page->out);
}

static bool has_filter(const struct model *model)
{
	return process_string(&model->recording->processes[0], "filter");
}

/* The rest of the values of a calltree:by=. */
static void print_rest(const struct page *page)
{
	const struct model *model = page->model;
	const struct function *function = model->functions;
	char count[SHORT_TEXT];
	size_t length;
	uint32_t i;

	for (i = 0; i < model->function_count; i++, function++) {
		length = function->group ? strlen(function->group) : 0;
		if (length < 4 || !function->sums.calls ||
		    strcmp(function->group + length - 4, "=..."))
			continue;
		fprintf(page->out,
			"  %s calls had further values than there "
			"may be groups (by-limit=N): ",
			human_count(count, function->sums.calls));
		put_text(page->out, function->name);
		fputc('\n', page->out);
	}
}

/* Of a program without instrumentation, whose memory or locks were recorded. */
static bool has_no_calls(const struct model *model)
{
	return !model->calls && !model->open && !model->is_sampled;
}

static void print_open(const struct page *page)
{
	const struct model *model = page->model;
	char open[SHORT_TEXT], some[SHORT_TEXT];

	if (!model->open)
		return;
	fprintf(page->out, "  %s calls were open at the end",
		human_count(open, model->open));
	if (model->open_until_when == model->open)
		fputs("; when that was is not known: their times are lower "
		      "bounds",
		      page->out);
	else if (model->open_until_when)
		fprintf(page->out,
			"; of %s of them it is not known when that "
			"was: their times are lower bounds",
			human_count(some, model->open_until_when));
	fputc('\n', page->out);
}

static void print_unrecorded(const struct page *page)
{
	const struct recording *recording = page->model->recording;
	uint32_t i;

	for (i = 0; i < recording->part_count; i++)
		if (recording->parts[i].log) {
			fputs("  some processes could not be recorded: profrun "
			      "info says why\n",
			      page->out);
			return;
		}
}

static void print_calls(const struct page *page)
{
	const struct model *model = page->model;
	char calls[SHORT_TEXT], paths[SHORT_TEXT], functions[SHORT_TEXT];
	uint32_t i, path_count = 0, function_count = 0;

	for (i = 0; i < model->path_count; i++)
		path_count += model->paths[i].function != NONE;
	for (i = 0; i < model->function_count; i++)
		function_count += model->functions[i].sums.calls ||
				  model->functions[i].sums.open;
	if (has_no_calls(model))
		fputs("  no calls of instrumented functions; ", page->out);
	else
		fprintf(page->out, "  %s %s in %s paths of %s functions; ",
			human_count(calls, model->calls), counted_name(model),
			human_count(paths, path_count),
			human_count(functions, function_count));
	print_lost(page);
	print_open(page);
	print_unrecorded(page);
	filter_print(page);
	print_rest(page);
	if (!model->is_sampled && (model->unwound || model->orphans))
		fprintf(page->out,
			"  %s calls ended without a leave, %s "
			"leaves had no call\n",
			human_count(calls, model->unwound),
			human_count(paths, model->orphans));
}

static void print_clock(const struct page *page)
{
	const struct model *model = page->model;
	const struct process *process = &model->recording->processes[0];
	char text[SHORT_TEXT], raw[SHORT_TEXT];
	double tick = process_ns(process, process->meta.tick);

	if (!process->has_meta)
		return;
	if (model->is_sampled) {
		fprintf(page->out,
			"  found by samples, one for %s of %s in "
			"each thread; \u00b1 is one standard error\n",
			human_ns(text, model->period_ns),
			model->sample_mode == SHIM_SAMPLED_REAL ?
				"time" :
				"processor time");
		return;
	}
	if (has_no_calls(model))
		return;
	if (!model->has_times) {
		fputs("  calls were counted, not timed\n", page->out);
		return;
	}
	if (process->meta.clock == SHIM_CLOCK_TSC)
		fprintf(page->out, "  clock: tsc %.4g GHz",
			1 / process->unit_ns);
	else
		fputs("  clock: monotonic, ns", page->out);
	if (model->has_errors)
		fprintf(page->out,
			", coarse: ticks of %s; \u00b1 is one "
			"standard error\n",
			human_ns(text, tick));
	else
		fputs(", every call timed exactly\n", page->out);
	if (model->raw)
		fputs("  our own cost is not subtracted (--raw)\n", page->out);
	else if (model->time_raw > model->time)
		fprintf(page->out,
			"  %s of our own cost subtracted from %s "
			"(--raw: not)\n",
			human_ns(text, model->time_raw - fmax(model->time, 0)),
			human_ns(raw, model->time_raw));
}

#define COLUMNS_MAX 9

/* The table of functions, and which columns it has. */
struct flat {
	struct table table;
	struct column columns[COLUMNS_MAX];
	bool has_errors, has_min, has_max;
};

static void add_column(struct flat *flat, const char *title, int width)
{
	struct column *column = flat->columns;

	while (column->title)
		column++;
	*column = (struct column){ title, width };
}

/* Times are never wider than 9 columns. */
static void choose_columns(struct flat *flat, const struct page *page,
			   const struct sums *sums, const uint32_t *order,
			   uint32_t count)
{
	int calls = page->model->is_sampled ? 7 : 5, width;
	char text[SHORT_TEXT];
	uint32_t i;

	flat->has_errors = page->model->has_errors;
	flat->has_max = page->model->has_ranges;
	/* Names are worth more than it is. */
	flat->has_min = page->model->has_ranges && page->columns >= 120;
	for (i = 0; i < count; i++) {
		width = (int)strlen(human_count(text, sums[order[i]].calls));
		if (width > calls)
			calls = width;
	}
	add_column(flat, "self%", 6);
	add_column(flat, "self", 9);
	if (flat->has_errors)
		add_column(flat, "\u00b1", 9);
	add_column(flat, "total", 9);
	add_column(flat, counted_name(page->model), calls);
	add_column(flat, page->model->is_sampled ? "" : "mean", 9);
	if (flat->has_min)
		add_column(flat, "min", 9);
	if (flat->has_max)
		add_column(flat, "max", 9);
	add_column(flat, "function", 0);
	flat->table = table_begin(page, flat->columns);
}

static void print_titles(struct flat *flat)
{
	static const char *const sorted_by[] = { "self time", "total time",
						 "calls", "mean time",
						 "longest call" };
	const struct page *page = flat->table.page;
	enum sort sort = effective_sort(page->model, page->options);

	fputc('\n', page->out);
	table_titles(
		&flat->table,
		keep_format("  (by %s)", sort == SORT_CALLS ?
						 counted_name(page->model) :
						 sorted_by[sort]));
}

static void print_row(struct flat *flat, struct function *function,
		      const struct sums *sums, double all)
{
	struct table *table = &flat->table;
	bool known = !is_untimed(sums), has_range = sums->has_range;
	char text[SHORT_TEXT] = "-";

	if (known && all > 0)
		snprintf(text, sizeof(text), "%.2f",
			 100 * fmax(sums->self, 0) / all);
	table_cell(table, text);
	table_cell(table, time_text(text, sums->self, known));
	if (flat->has_errors)
		table_cell(table,
			   sums->self_variance > 0 ?
				   human_ns(text, sqrt(sums->self_variance)) :
				   "");
	table_cell(table, time_text(text, sums->total, known));
	table_cell(table, human_count(text, sums->calls));
	table_cell(table, table->page->model->is_sampled ?
				  "" :
				  time_text(text, mean_ns(sums), known));
	if (flat->has_min)
		table_cell(table, time_text(text, sums->min, has_range));
	if (flat->has_max)
		table_cell(table, time_text(text, sums->max, has_range));
	table_name(table, function);
}

/* @order: functions that were called, which is freed. */
static void print_table(const struct page *page, const struct sums *sums,
			uint32_t *order, uint32_t count)
{
	struct flat flat = { .columns = { { NULL, 0 } } };
	uint32_t i, rows;
	double all = 0;

	rows = page_rows(page, ROWS, count);
	for (i = 0; i < count; i++)
		all += fmax(sums[order[i]].self, 0);
	choose_columns(&flat, page, sums, order, rows);
	print_titles(&flat);
	for (i = 0; i < rows; i++)
		print_row(&flat, &page->model->functions[order[i]],
			  &sums[order[i]], all);
	page_left_out(page, rows, count);
	free(order);
}

static void print_flat(const struct page *page)
{
	const struct model *model = page->model;
	struct sums *sums = allocate(model->function_count, sizeof(*sums));
	uint32_t i, count, *order;

	for (i = 0; i < model->function_count; i++)
		sums[i] = model->functions[i].sums;
	order = row_order_functions(model, sums, page->options, &count);
	print_table(page, sums, order, count);
	free(sums);
}

static uint64_t thread_lost(const struct thread *thread)
{
	uint64_t lost = 0;
	uint32_t i;

	for (i = 0; i < SHIM_LOST_CAUSES; i++)
		lost += thread->lost[i];
	return lost;
}

static const char *id_text(char text[SHORT_TEXT], uint32_t id)
{
	snprintf(text, SHORT_TEXT, "%u", id);
	return text;
}

static void print_thread(struct table *table, const struct thread *thread)
{
	const struct model *model = table->page->model;
	const struct process *process =
		&model->recording->processes[thread->process];
	char text[SHORT_TEXT];
	bool known = thread->untimed < thread->calls;

	table_cell(table, id_text(text, process->pid));
	table_cell(table, id_text(text, thread->tid));
	table_cell(table, human_count(text, thread->calls));
	table_cell(table,
		   time_text(text, model->raw ? thread->self_raw : thread->self,
			     known));
	table_cell(table, human_count(text, thread_lost(thread)));
	table_rest(table, 0);
	put_text(table->page->out, thread->name);
	table_end_row(table);
}

static void print_threads(const struct page *page)
{
	struct model *model = page->model;
	const struct column columns[] = {
		{ "pid", 8 },  { "tid", 8 },   { counted_name(model), 16 },
		{ "time", 9 }, { "lost", 12 }, { "name", 0 },
	};
	struct table table = table_begin(page, columns);
	const struct thread *thread = model->threads;
	uint32_t i, count, *order;
	struct part_sums part;

	part_sums_begin(&part, model);
	fputc('\n', page->out);
	table_titles(&table, NULL);
	for (i = 0; i < model->thread_count; i++)
		print_thread(&table, &thread[i]);
	for (i = 0; i < model->thread_count; i++, thread++) {
		if (!thread->calls)
			continue;
		part_sums_of(&part, model, thread->path);
		order = row_order_part(model, &part, page->options, &count);
		fprintf(page->out, "\nthread %u of process %u: ", thread->tid,
			model->recording->processes[thread->process].pid);
		put_text(page->out, thread->name[0] ? thread->name : "?");
		print_table(page, part.sums, order, count);
	}
	part_sums_end(&part);
}

static void print_head(const struct page *page)
{
	print_program(page);
	print_calls(page);
	print_clock(page);
	advice_print(page->out, page->model);
}

void head_print(FILE *out, struct model *model, const struct options *options)
{
	struct page page = page_on(out, options, model);

	page.color = false;
	page.columns = SIZE_MAX;
	print_head(&page);
}

/* What is no table of calls; false: nothing of it was asked for. */
static bool print_other_tables(const struct page *page)
{
	const struct options *options = page->options;

	if (options->tree || options->threads || options->callers ||
	    options->callees || options->histogram)
		return false;
	if (options->memory)
		memory_print(page);
	if (options->locks)
		locks_print(page);
	if (options->exceptions)
		exceptions_print(page);
	return options->memory || options->locks || options->exceptions;
}

/* What else there is to look at. */
static void print_hint(const struct page *page)
{
	const struct model *model = page->model;
	bool has_shown = page->options->tree && page->options->memory;
	const char *memory = model->has_memory && !has_shown ? " --memory" : "";
	const char *locks = model->locks ? " --locks" : "";
	const char *exceptions = model->exceptions ? " --exceptions" : "";

	if (*memory || *locks || *exceptions)
		fprintf(page->out,
			"\nRecorded as well, see profrun report"
			"%s%s%s\n",
			memory, locks, exceptions);
}

void text_print(FILE *out, struct model *model, struct model *samples,
		const struct options *options)
{
	struct page page = page_on(out, options, model);

	if (model->calls || model->open)
		callers_check(&page);
	check_names(model);
	print_head(&page);
	if (options->ranks) {
		ranks_print(&page);
		return;
	}
	if (print_other_tables(&page)) {
		if (samples)
			fputs("\nRecorded as well, see profrun report "
			      "--samples\n",
			      out);
		return;
	}
	if (!model->calls && !model->open &&
	    !(options->tree && options->memory)) {
		fputs(open_failure() ?
			      keep_format(
				      "\nNo call was read, files of the recording "
				      "cannot be opened: %s.\n",
				      open_failure()) :
		      model_has_lost(model) ?
			      keep_format("\nNothing is left to report: %s.\n",
					  advice(model)) :
		      model->is_sampled ?
			      "\nNo sample was taken: the program did not compute for "
			      "long enough.\n" :
		      has_filter(model) ?
			      "\nNo call was recorded of those that --filter lets "
			      "through.\n" :
			      "\nNo call was recorded.  Was the program built with "
			      "-finstrument-functions?\n",
		      out);
		return;
	}
	if (options->callers || options->callees || options->histogram)
		callers_print(&page);
	else if (options->tree)
		tree_print(&page);
	else if (options->threads)
		print_threads(&page);
	else
		print_flat(&page);
	if (samples)
		crosscheck_print(&page, samples);
	print_hint(&page);
}
