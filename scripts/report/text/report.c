/*
 * Prints the report for people: a few lines on the recording and its accuracy,
 * then the table of functions.  The output is the same in a pipe and on a
 * terminal, except that a terminal gets colour and lines that fit its width.
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
#include "model/bounds.h"
#include "model/budget.h"
#include "model/check_names.h"
#include "model/estimates.h"
#include "model/model.h"
#include "model/options.h"
#include "model/row_order.h"
#include "model/totals.h"
#include "read/end_text.h"
#include "read/files.h"
#include "read/process.h"
#include "read/recording.h"
#include "text/advice.h"
#include "text/budget.h"
#include "text/callers.h"
#include "text/crosscheck.h"
#include "text/exceptions.h"
#include "text/filter.h"
#include "text/hidden.h"
#include "text/locks.h"
#include "text/memory.h"
#include "text/numbers.h"
#include "text/job.h"
#include "text/layout.h"
#include "text/ranks.h"
#include "text/report.h"
#include "text/table.h"
#include "text/tree.h"

#define ROWS 30

/* The remedy for the cause that lost most calls. */
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

static void print_lost_kind(const struct layout *layout, const char *name,
			    const uint64_t lost[SHIM_LOST_CAUSES],
			    bool *is_first)
{
	char count[SHORT_TEXT];
	const char *comma = "";
	uint32_t i;

	if (!lost_sum(lost))
		return;
	fprintf(layout->out, "%s%s%s %s LOST%s (", *is_first ? "" : ", ",
		layout->color ? "\033[31m" : "",
		human_count(count, lost_sum(lost)), name,
		layout->color ? "\033[m" : "");
	for (i = 0; i < SHIM_LOST_CAUSES; i++) {
		if (!lost[i])
			continue;
		fprintf(layout->out, "%s%s: %s", comma, lost_names[i],
			human_count(count, lost[i]));
		comma = ", ";
	}
	fputc(')', layout->out);
	*is_first = false;
}

static void print_tree_damage(const struct layout *layout, bool *is_first)
{
	const struct model *model = layout->model;
	char damaged[SHORT_TEXT];

	if (!model->damaged)
		return;
	fprintf(layout->out,
		"%s%san unknown number of %s LOST%s (at least %s records of "
		"call trees are damaged)",
		*is_first ? "" : ", ", layout->color ? "\033[31m" : "",
		counted_name(model), layout->color ? "\033[m" : "",
		human_count(damaged, model->damaged));
	*is_first = false;
}

static bool has_trace_damage(const struct model *model)
{
	const struct trace_damage *damage = &model->recording->trace_damage;

	return damage->missing || damage->damaged;
}

static void print_damage(const struct layout *layout, bool is_first)
{
	const struct trace_damage *damage =
		&layout->model->recording->trace_damage;
	char missing[SHORT_TEXT], damaged[SHORT_TEXT], size[SHORT_TEXT];

	if (!has_trace_damage(layout->model))
		return;
	fprintf(layout->out,
		"%s%sparts of the trace LOST%s (%s blocks missing, "
		"%s damaged: %s unread)",
		is_first ? "" : ", ", layout->color ? "\033[31m" : "",
		layout->color ? "\033[m" : "",
		human_count(missing, damage->missing),
		human_count(damaged, damage->damaged),
		human_bytes(size, damage->bytes));
}

static void print_lost(const struct layout *layout)
{
	const struct model *model = layout->model;
	bool is_first = true;
	uint32_t i;

	if (!model_has_lost(model)) {
		fputs("nothing lost\n", layout->out);
		return;
	}
	print_lost_kind(layout, counted_name(model), model->lost_causes,
			&is_first);
	for (i = 0; i < SHIM_LOST_KINDS; i++)
		print_lost_kind(layout, lost_kinds[i], model->lost_others[i],
				&is_first);
	print_tree_damage(layout, &is_first);
	print_damage(layout, is_first);
	fprintf(layout->out, ": %s\n", advice(model));
}

/* After an exec, a process has another image, but is still the same process. */
static void print_processes(const struct layout *layout)
{
	const struct recording *recording = layout->model->recording;
	uint32_t i, processes = 0, execs;

	for (i = 0; i < recording->process_count; i++)
		processes += recording->processes[i].number == 0 ||
			     recording->processes[i].meta.forked;
	execs = recording->process_count - processes;
	fprintf(layout->out, "%u process%s, ", processes,
		processes == 1 ? "" : "es");
	if (execs)
		fprintf(layout->out, "%u exec%s, ", execs,
			execs == 1 ? "" : "s");
}

static void print_program(const struct layout *layout)
{
	const struct model *model = layout->model;
	const struct recording *recording = model->recording;
	const struct process *process = &recording->processes[0];
	const char *command = process_string(process, "command");
	char text[SHORT_TEXT];
	uint32_t threads = 0, i;

	if (!command)
		command = process_string(process, "program");
	for (i = 0; i < model->thread_count; i++)
		threads += model->threads[i].calls > 0 || !model->calls;
	put_text(layout->out, command ? command : "unknown program");
	fputs(" (recording: ", layout->out);
	put_text(layout->out, recording->path);
	fprintf(layout->out, ")\n  %s, ",
		time_text(text, model->duration, model->duration > 0));
	if (recording->part_count > 1)
		fprintf(layout->out, "%u recordings, ", recording->part_count);
	print_processes(layout);
	if (threads)
		fprintf(layout->out, "%u thread%s, ", threads,
			threads == 1 ? "" : "s");
	put_text(layout->out, end_text(recording));
	fputc('\n', layout->out);
	job_print(layout->out, recording);
}

static bool has_filter(const struct model *model)
{
	return process_string(&model->recording->processes[0], "filter");
}

/* The values beyond the limit of calltree:by=. */
static void print_rest(const struct layout *layout)
{
	const struct model *model = layout->model;
	const struct function *function = model->functions;
	char count[SHORT_TEXT];
	size_t length;
	uint32_t i;

	for (i = 0; i < model->function_count; i++, function++) {
		length = function->group ? strlen(function->group) : 0;
		if (length < 4 || !function->sums.calls ||
		    strcmp(function->group + length - 4, "=..."))
			continue;
		fprintf(layout->out,
			"  %s calls had further values than there "
			"may be groups (by-limit=N): ",
			human_count(count, function->sums.calls));
		put_function_name(layout, function, SIZE_MAX);
		fputc('\n', layout->out);
	}
}

/* A program without instrumentation, whose memory or locks were recorded. */
static bool has_no_calls(const struct model *model)
{
	return !model->calls && !model->open && !model->is_sampled;
}

static void print_open(const struct layout *layout)
{
	const struct model *model = layout->model;
	char open[SHORT_TEXT], some[SHORT_TEXT];

	if (!model->open)
		return;
	fprintf(layout->out, "  %s %s open at the end",
		human_count(open, model->open),
		model->open == 1 ? "call was" : "calls were");
	if (model->open_until_when == model->open)
		fputs("; when that was is not known: their times are lower "
		      "bounds",
		      layout->out);
	else if (model->open_until_when)
		fprintf(layout->out,
			"; of %s of them it is not known when that "
			"was: their times are lower bounds",
			human_count(some, model->open_until_when));
	fputc('\n', layout->out);
}

static void print_older(const struct layout *layout)
{
	char older[SHORT_TEXT];

	if (layout->model->older)
		fprintf(layout->out,
			"  %s %s open before the attach: not counted, and "
			"timed from there on\n",
			human_count(older, layout->model->older),
			layout->model->older == 1 ? "call was" : "calls were");
}

static void print_unrecorded(const struct layout *layout)
{
	const struct recording *recording = layout->model->recording;
	uint32_t i;

	for (i = 0; i < recording->part_count; i++)
		if (recording->parts[i].log) {
			fputs("  some processes could not be recorded: profrun "
			      "info says why\n",
			      layout->out);
			return;
		}
}

static bool is_one(uint64_t count)
{
	return count == 1;
}

static void print_calls(const struct layout *layout)
{
	const struct model *model = layout->model;
	const char *counted = counted_name(model); /* a plural */
	char calls[COUNT_TEXT], paths[SHORT_TEXT], functions[SHORT_TEXT];
	struct count count = count_of_model(model);
	uint32_t i, path_count = 0, function_count = 0;

	for (i = 0; i < model->path_count; i++)
		path_count += model->paths[i].function != NONE;
	for (i = 0; i < model->function_count; i++)
		function_count += sums_are_there(&model->functions[i].sums);
	if (has_no_calls(model))
		fputs("  no calls of instrumented functions; ", layout->out);
	else
		fprintf(layout->out,
			"  %s %.*s in %s path%s of %s function%s; ",
			count_text(calls, &count),
			(int)strlen(counted) - is_one(count.calls), counted,
			human_count(paths, path_count),
			is_one(path_count) ? "" : "s",
			human_count(functions, function_count),
			is_one(function_count) ? "" : "s");
	print_lost(layout);
	print_open(layout);
	print_older(layout);
	print_unrecorded(layout);
	hidden_print(layout);
	filter_print(layout);
	print_rest(layout);
	if (!model->is_sampled && (model->unwound || model->orphans))
		fprintf(layout->out,
			"  %s call%s ended without a leave, %s "
			"%s had no call\n",
			human_count(functions, model->unwound),
			is_one(model->unwound) ? "" : "s",
			human_count(paths, model->orphans),
			is_one(model->orphans) ? "leave" : "leaves");
}

/* A merged recording may have times of both kinds. */
static void print_waiting(const struct layout *layout)
{
	const struct recording *recording = layout->model->recording;
	uint32_t i, by_cpu = 0;
	char text[SHORT_TEXT];
	double waited = 0;

	for (i = 0; i < recording->process_count; i++) {
		const struct process *process = &recording->processes[i];

		by_cpu += process->meta.is_cpu == 1 ||
			  budget_is_calibrated(process);
		waited += process_ns(process, process->meta.waited);
	}
	if (by_cpu == 0 || layout->model->raw)
		return;
	for (i = 0; i < layout->model->path_count; i++)
		waited += layout->model->paths[i].raw_waited;
	fprintf(layout->out,
		"  times are processor time%s; threads waited for another %s\n",
		by_cpu < recording->process_count ? " of some processes" : "",
		human_ns(text, waited));
}

/* Of code without unwind tables. */
static void print_guesses(const struct layout *layout)
{
	const struct model *model = layout->model;
	char text[SHORT_TEXT];

	if (model->guessed)
		fprintf(layout->out,
			"  %s of them (%.1f %%) have a caller that is a guess, "
			"as that code has no unwind tables (--tree marks it)\n",
			human_count(text, model->guessed),
			100.0 * (double)model->guessed / (double)model->calls);
}

static void print_clock(const struct layout *layout)
{
	const struct model *model = layout->model;
	const struct process *process = &model->recording->processes[0];
	char text[SHORT_TEXT], raw[SHORT_TEXT];
	double tick = process_ns(process, process_tick(process));

	if (!process->has_meta)
		return;
	if (model->is_sampled &&
	    model->period_ns == 0) /* no thread had its first */
		return;
	if (model->is_sampled) {
		fprintf(layout->out,
			"  found by samples, one for %s of %s in "
			"each thread; \u00b1 is one standard error\n",
			human_ns(text, model->period_ns),
			model->sample_mode == SHIM_SAMPLED_REAL ?
				"time" :
				"processor time");
		print_guesses(layout);
		return;
	}
	if (has_no_calls(model))
		return;
	if (model->budget) {
		fprintf(layout->out,
			"  times are from samples of processor time, one for "
			"%s in each thread; \u00b1 is one standard error\n",
			human_ns(text, model->budget->period_ns));
		return;
	}
	if (!model->has_times) {
		fputs("  calls were counted, not timed\n", layout->out);
		return;
	}
	if (process->meta.clock == SHIM_CLOCK_TSC)
		fprintf(layout->out, "  clock: tsc %.4g GHz",
			1 / process->unit_ns);
	else
		fputs("  clock: monotonic, ns", layout->out);
	if (budget_is_calibrated(process))
		fprintf(layout->out,
			", every call timed exactly; samples, one for %s of "
			"processor time, tell our own cost; \u00b1 is one "
			"standard error\n",
			human_ns(text, (double)process->meta.sample_period_ns));
	else if (model->has_errors)
		fprintf(layout->out,
			", coarse: ticks of %s; \u00b1 is one "
			"standard error\n",
			human_ns(text, tick));
	else
		fputs(", every call timed exactly\n", layout->out);
	print_waiting(layout);
	if (model->raw)
		fputs("  our own cost is not subtracted (--raw)\n",
		      layout->out);
	else if (model->time_raw > model->time)
		fprintf(layout->out,
			"  %s of our own cost subtracted from %s "
			"(--raw: not)\n",
			human_ns(text, model->time_raw - fmax(model->time, 0)),
			human_ns(raw, model->time_raw));
}

#define COLUMNS_MAX 11

/* The table of functions and its columns. */
struct flat {
	struct table table;
	struct column columns[COLUMNS_MAX];
	struct count_column calls;
	bool has_errors, has_min, has_max;
};

static void add_column(struct flat *flat, const char *title, int width)
{
	struct column *column = flat->columns;

	while (column->title)
		column++;
	*column = (struct column){ title, width };
}

/* A time has at most 9 columns. */
static void choose_columns(struct flat *flat, const struct layout *layout,
			   const struct sums *sums, const uint32_t *order,
			   uint32_t count)
{
	struct column calls;
	uint32_t i;

	flat->calls.width = layout->model->is_sampled ? 7 : 5;
	flat->has_errors = layout->model->has_errors;
	flat->has_max = layout->model->has_ranges;
	/* Names are more important than this column. */
	flat->has_min = layout->model->has_ranges && layout->columns >= 120;
	for (i = 0; i < count; i++) {
		struct count count_of = count_of_sums(&sums[order[i]]);

		count_column_fit(&flat->calls, &count_of);
	}
	calls = count_column(&flat->calls, counted_name(layout->model));
	add_column(flat, "self%", 6);
	add_column(flat, "self", 9);
	if (flat->has_errors)
		add_column(flat, "\u00b1", 9);
	add_column(flat, "total", 9);
	if (layout->model->has_waited)
		add_column(flat, "waiting", 9);
	add_column(flat, calls.title, calls.width);
	add_column(flat, layout->model->is_sampled ? "" : "mean", 9);
	if (flat->has_min)
		add_column(flat, "min", 9);
	if (flat->has_max)
		add_column(flat, "max", 9);
	add_column(flat, "function", 0);
	flat->table = table_begin(layout, flat->columns);
}

static void print_titles(struct flat *flat)
{
	static const char *const sorted_by[] = { "self time", "total time",
						 "calls", "mean time",
						 "longest call" };
	const struct layout *layout = flat->table.layout;
	enum sort sort = effective_sort(layout->model, layout->options);

	fputc('\n', layout->out);
	table_titles(
		&flat->table,
		keep_format("  (by %s)", sort == SORT_CALLS ?
						 counted_name(layout->model) :
						 sorted_by[sort]));
}

/* NULL: calls of the function are not counted. */
static const struct count *counted_calls(struct count *count,
					 const struct sums *sums)
{
	*count = count_of_sums(sums);
	return sums_are_counted(sums) ? count : NULL;
}

/* (An upper bound of all calls together is no bound of each call, but of their
 * mean.) */
static const char *mean_text(char text[SHORT_TEXT], const struct sums *sums,
			     double bound)
{
	double calls = (double)(sums->calls - sums->untimed);

	return bounded_text(text, mean_ns(sums), calls > 0 ? bound / calls : 0,
			    !is_untimed(sums) && mean_is_known(sums));
}

static void print_row(struct flat *flat, struct function *function,
		      const struct sums *sums, double all)
{
	struct table *table = &flat->table;
	bool known = !is_untimed(sums), has_range = sums->has_range;
	double all_time = table->layout->model->time;
	double self_below = self_bound(sums, all_time);
	double total_below = total_bound(sums, all_time);
	char text[SHORT_TEXT] = "-", calls[2 * COUNT_TEXT];
	struct count count;

	if (known && all > 0)
		snprintf(text, sizeof(text), "%.2f",
			 100 * fmax(sums->self, 0) / all);
	table_cell(table, text);
	table_cell(table, bounded_text(text, sums->self, self_below, known));
	if (flat->has_errors)
		table_cell(table,
			   sums->self_variance > 0 && !self_below ?
				   human_ns(text, sqrt(sums->self_variance)) :
				   "");
	table_cell(table, bounded_text(text, sums->total, total_below, known));
	if (table->layout->model->has_waited)
		table_cell(table,
			   bounded_text(text, sums->waited, waited_bound(sums),
					sums->has_waited));
	table_cell(table, count_column_text(calls, &flat->calls,
					    counted_calls(&count, sums)));
	table_cell(table, table->layout->model->is_sampled ?
				  "" :
				  mean_text(text, sums, total_below));
	if (flat->has_min)
		table_cell(table, bounded_text(text, sums->min,
					       duration_bound(sums->min,
							      sums->min_most),
					       has_range));
	if (flat->has_max)
		table_cell(table, bounded_text(text, sums->max,
					       duration_bound(sums->max,
							      sums->max_most),
					       has_range));
	table_name(table, function);
}

/* @order: functions that were called, which is freed. */
static void print_table(const struct layout *layout, const struct sums *sums,
			uint32_t *order, uint32_t count)
{
	struct flat flat = { .columns = { { NULL, 0 } } };
	uint32_t i, rows;
	double all = 0;

	rows = layout_rows(layout, ROWS, count);
	for (i = 0; i < count; i++)
		all += fmax(sums[order[i]].self, 0);
	choose_columns(&flat, layout, sums, order, rows);
	print_titles(&flat);
	for (i = 0; i < rows; i++)
		print_row(&flat, &layout->model->functions[order[i]],
			  &sums[order[i]], all);
	layout_left_out(layout, rows, count);
	free(order);
}

static void print_flat(const struct layout *layout)
{
	const struct model *model = layout->model;
	struct sums *sums = sums_of_functions(model);
	uint32_t count, *order;

	order = row_order_functions(model, sums, layout->options, &count);
	print_table(layout, sums, order, count);
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
	const struct model *model = table->layout->model;
	const struct process *process =
		&model->recording->processes[thread->process];
	char text[SHORT_TEXT], calls[COUNT_TEXT];
	struct count count = count_of_thread(thread);
	bool known = thread->untimed < thread->calls || model->budget;

	table_cell(table, id_text(text, process->pid));
	table_cell(table, id_text(text, thread->tid));
	table_cell(table, count_text(calls, &count));
	table_cell(table,
		   time_text(text, model->raw ? thread->self_raw : thread->self,
			     known));
	table_cell(table, human_count(text, thread_lost(thread)));
	table_rest(table, 0);
	put_text(table->layout->out, thread->name);
	table_end_row(table);
}

static void print_threads(const struct layout *layout)
{
	struct model *model = layout->model;
	const struct column columns[] = {
		{ "pid", 8 },  { "tid", 8 },   { counted_name(model), 16 },
		{ "time", 9 }, { "lost", 12 }, { "name", 0 },
	};
	struct table table = table_begin(layout, columns);
	const struct thread *thread = model->threads;
	uint32_t i, count, *order;
	struct part_sums part;

	part_sums_begin(&part, model);
	fputc('\n', layout->out);
	table_titles(&table, NULL);
	for (i = 0; i < model->thread_count; i++)
		print_thread(&table, &thread[i]);
	for (i = 0; i < model->thread_count; i++, thread++) {
		if (!thread->calls)
			continue;
		part_sums_of(&part, model, thread->path);
		order = row_order_part(model, &part, layout->options, &count);
		fprintf(layout->out, "\nthread %u of process %u: ", thread->tid,
			model->recording->processes[thread->process].pid);
		put_text(layout->out, thread->name[0] ? thread->name : "?");
		print_table(layout, part.sums, order, count);
	}
	part_sums_end(&part);
}

static void print_head(const struct layout *layout)
{
	print_program(layout);
	print_calls(layout);
	print_clock(layout);
	budget_print(layout->out, layout->model);
	advice_print(layout->out, layout->model);
}

void head_print(FILE *out, struct model *model, const struct options *options)
{
	struct layout layout = layout_on(out, options, model);

	layout.color = false;
	layout.columns = SIZE_MAX;
	print_head(&layout);
}

/* Prints requested tables other than that of calls; false: none was
 * requested. */
static bool print_other_tables(const struct layout *layout)
{
	const struct options *options = layout->options;

	if (options->tree || options->threads || options->callers ||
	    options->callees || options->histogram)
		return false;
	if (options->memory)
		memory_print(layout);
	if (options->locks)
		locks_print(layout);
	if (options->exceptions)
		exceptions_print(layout);
	return options->memory || options->locks || options->exceptions;
}

/* Mentions other views of the recording. */
static void print_hint(const struct layout *layout)
{
	const struct model *model = layout->model;
	bool has_shown = layout->options->tree && layout->options->memory;
	const char *memory = model->has_memory && !has_shown ? " --memory" : "";
	const char *locks = model->locks ? " --locks" : "";
	const char *exceptions = model->exceptions ? " --exceptions" : "";

	if (*memory || *locks || *exceptions)
		fprintf(layout->out,
			"\nRecorded as well, see profrun report"
			"%s%s%s\n",
			memory, locks, exceptions);
}

void text_print(FILE *out, struct model *model, struct model *samples,
		const struct options *options)
{
	struct layout layout = layout_on(out, options, model);

	if (model->calls || model->open || (options->tree && options->memory))
		callers_check(&layout);
	check_names(model);
	print_head(&layout);
	if (options->ranks) {
		ranks_print(&layout);
		return;
	}
	if (print_other_tables(&layout)) {
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
			      "\nNothing is left to report.\n" :
		      model->recording->has_left_out ?
			      "\nThe options of the trace have left out all calls.\n" :
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
		callers_print(&layout);
	else if (options->tree)
		tree_print(&layout);
	else if (options->threads)
		print_threads(&layout);
	else
		print_flat(&layout);
	if (samples)
		crosscheck_print(&layout, samples);
	print_hint(&layout);
}
