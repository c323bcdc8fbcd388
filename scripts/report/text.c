/*
 * The report for people: a few lines on what was recorded and how far to
 * believe it, then the table of functions.  It is the same in a pipe and on a
 * terminal, except that a terminal gets colour and no line longer than itself.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "advice.h"
#include "report.h"

#define ROWS 30

const char *time_text(char text[SHORT_TEXT], double ns, bool is_known)
{
	return is_known ? human_ns(text, ns) : "-";
}

const char *shown_name(const struct function *function,
		       const struct options *options)
{
	return options->mangled ? function->mangled : function->name;
}

static const char *meta_end_text(const struct process *process)
{
	switch (process->meta.end) {
	case SHIM_END_EXIT:
		return keep_format("exit status %u", process->meta.exit_status);
	case SHIM_END_EXEC:
		return "became another program";
	case SHIM_END_ABORT:
		return "aborted";
	default:
		return "killed, crashed or still running";
	}
}

/* What profrun saw is surer than what the program said of itself. */
const char *end_text(const struct recording *recording)
{
	int status = recording->wait_status;
	const struct process *last = &recording->processes[0];
	uint32_t i;

	if (recording->has_end && WIFEXITED(status))
		return keep_format("exit status %d", WEXITSTATUS(status));
	if (recording->has_end && WIFSIGNALED(status))
		return keep_format("killed by signal %d (%s)%s",
				   WTERMSIG(status),
				   strsignal(WTERMSIG(status)),
				   WCOREDUMP(status) ? ", core dumped" : "");
	if (recording->has_end)
		return keep_format("wait status %#x", (unsigned int)status);
	for (i = 1; i < recording->process_count; i++)
		if (recording->processes[i].is_main &&
		    recording->processes[i].number > last->number)
			last = &recording->processes[i];
	return meta_end_text(last);
}

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
	default:
		return "profrun info may say why";
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
		fprintf(page->out, "%u exec%s, ", execs,
			execs == 1 ? "" : "s");
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

/* What was left out is in nobody's numbers: its time is its callers' own. */
static void print_filter(const struct page *page)
{
	const char *filter = process_string(
		&page->model->recording->processes[0], "filter");

	char begin[160];

	if (!filter)
		return;
	snprintf(begin, sizeof(begin), "%s", filter);
	fputs("  only the functions that --filter '", page->out);
	put_text(page->out, begin);
	fprintf(page->out, "%s' lets through\n",
		strlen(filter) < sizeof(begin) ? "" : "...");
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
		fprintf(page->out, "  %s calls had further values than there "
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
		      "bounds", page->out);
	else if (model->open_until_when)
		fprintf(page->out, "; of %s of them it is not known when that "
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
			      "info says why\n", page->out);
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
	print_filter(page);
	print_rest(page);
	if (!model->is_sampled && (model->unwound || model->orphans))
		fprintf(page->out, "  %s calls ended without a leave, %s "
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
		fprintf(page->out, "  found by samples, one for %s of %s in "
			"each thread; \u00b1 is one standard error\n",
			human_ns(text, model->period_ns),
			model->sample_mode == SHIM_SAMPLED_REAL ?
			"time" : "processor time");
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
		fprintf(page->out, ", coarse: ticks of %s; \u00b1 is one "
			"standard error\n", human_ns(text, tick));
	else
		fputs(", every call timed exactly\n", page->out);
	if (model->raw)
		fputs("  our own cost is not subtracted (--raw)\n", page->out);
	else if (model->time_raw > model->time)
		fprintf(page->out, "  %s of our own cost subtracted from %s "
			"(--raw: not)\n",
			human_ns(text, model->time_raw - fmax(model->time, 0)),
			human_ns(raw, model->time_raw));
}

/* Which columns the table of functions has. */
struct columns {
	int calls;			/* how wide */
	bool has_errors, has_min, has_max;
	size_t used;			/* by all of them */
};

static struct columns choose_columns(const struct page *page,
				     const struct sums *sums,
				     const uint32_t *order, uint32_t count)
{
	struct columns columns = {
		.calls = page->model->is_sampled ? 7 : 5,
		.has_errors = page->model->has_errors,
		.has_max = page->model->has_ranges,
		/* Names are worth more than it is. */
		.has_min = page->model->has_ranges && page->columns >= 120,
	};
	char text[SHORT_TEXT];
	uint32_t i;
	int width;

	for (i = 0; i < count; i++) {
		width = (int)strlen(human_count(text, sums[order[i]].calls));
		if (width > columns.calls)
			columns.calls = width;
	}
	columns.used = 6 + 10 + 10 + (size_t)columns.calls + 1 + 10 + 2 +
		       10 * (size_t)(columns.has_errors + columns.has_min +
				     columns.has_max);
	return columns;
}

/* Times are never wider than 9 columns. */
static void print_titles(const struct page *page,
			 const struct columns *columns)
{
	static const char *const sorted_by[] = {
		"self time", "total time", "calls", "mean time", "longest call"
	};
	enum sort sort = effective_sort(page->model, page->options);
	const char *counted = counted_name(page->model);

	fprintf(page->out, "\n%s%6s %9s%s %9s %*s %9s%s%s  function%s  (by "
		"%s)\n", page->color ? "\033[1m" : "", "self%", "self",
		columns->has_errors ? "         \u00b1" : "", "total",
		columns->calls, counted,
		page->model->is_sampled ? "" : "mean",
		columns->has_min ? "       min" : "",
		columns->has_max ? "       max" : "",
		page->color ? "\033[m" : "",
		sort == SORT_CALLS ? counted : sorted_by[sort]);
}

void put_place(const struct page *page, struct function *function)
{
	function_line(function);
	if (!function->is_named)
		return;
	fputs(page->color ? " \033[2m[" : " [", page->out);
	put_text(page->out, object_name(function));
	if (function->file) {
		fputc(' ', page->out);
		put_text(page->out, base_name(function->file));
		fprintf(page->out, ":%d", function->line);
	}
	fputs(page->color ? "]\033[m" : "]", page->out);
}

/* How wide put_place() prints. */
static size_t place_columns(struct function *function)
{
	char line[SHORT_TEXT] = "";

	function_line(function);
	if (!function->is_named)
		return 0;
	if (function->file)
		snprintf(line, sizeof(line), " :%d", function->line);
	return strlen(" []") + text_columns(object_name(function)) +
	       strlen(line) + (function->file ?
			       text_columns(base_name(function->file)) : 0);
}

void put_name(const struct page *page, struct function *function, size_t used)
{
	const char *name = shown_name(function, page->options);
	size_t place, left;

	if (page->columns == SIZE_MAX) {
		put_text(page->out, name);
		put_place(page, function);
	} else {
		/* A name keeps 20 columns; then the place has to go. */
		place = place_columns(function);
		left = page->columns > used ? page->columns - used : 0;
		if (left < place + 20 && left < place + text_columns(name))
			place = 0;
		put_text_cut(page->out, name,
			     left - place > 8 ? left - place : 8);
		if (place)
			put_place(page, function);
	}
	fputc('\n', page->out);
}

static void print_row(const struct page *page, const struct columns *columns,
		      struct function *function, const struct sums *sums,
		      double all)
{
	char self[SHORT_TEXT], total[SHORT_TEXT], calls[SHORT_TEXT];
	char mean[SHORT_TEXT], percent[SHORT_TEXT], text[SHORT_TEXT];
	bool known = !is_untimed(sums), has_range = sums->has_range;

	if (known && all > 0)
		snprintf(percent, sizeof(percent), "%.2f",
			 100 * fmax(sums->self, 0) / all);
	else
		strcpy(percent, "-");
	fprintf(page->out, "%6s %9s", percent,
		time_text(self, sums->self, known));
	if (columns->has_errors)
		fprintf(page->out, " %9s", sums->self_variance > 0 ?
			human_ns(text, sqrt(sums->self_variance)) : "");
	fprintf(page->out, " %9s %*s %9s",
		time_text(total, sums->total, known),
		columns->calls, human_count(calls, sums->calls),
		page->model->is_sampled ? "" :
		time_text(mean, mean_ns(sums), known));
	if (columns->has_min)
		fprintf(page->out, " %9s",
			time_text(text, sums->min, has_range));
	if (columns->has_max)
		fprintf(page->out, " %9s",
			time_text(text, sums->max, has_range));
	fputs("  ", page->out);
	put_name(page, function, columns->used);
}

/* @order: functions that were called, which is freed. */
static void print_table(const struct page *page, const struct sums *sums,
			uint32_t *order, uint32_t count)
{
	struct columns columns;
	uint32_t i, rows;
	double all = 0;

	rows = page_rows(page, ROWS, count);
	for (i = 0; i < count; i++)
		all += fmax(sums[order[i]].self, 0);
	columns = choose_columns(page, sums, order, rows);
	print_titles(page, &columns);
	for (i = 0; i < rows; i++)
		print_row(page, &columns, &page->model->functions[order[i]],
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
	order = order_functions(model, sums, page->options, &count);
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

static void print_thread(const struct page *page, const struct thread *thread)
{
	const struct model *model = page->model;
	char calls[SHORT_TEXT], self[SHORT_TEXT], lost[SHORT_TEXT];
	bool known = thread->untimed < thread->calls;

	fprintf(page->out, "%8u %8u  %15s %9s %12s  ",
		model->recording->processes[thread->process].pid, thread->tid,
		human_count(calls, thread->calls),
		time_text(self, model->raw ? thread->self_raw : thread->self,
			  known), human_count(lost, thread_lost(thread)));
	put_text(page->out, thread->name);
	fputc('\n', page->out);
}

static void print_threads(const struct page *page)
{
	struct model *model = page->model;
	const struct thread *thread = model->threads;
	uint32_t i, count, *order;
	struct part_sums part;

	part_sums_begin(&part, model);
	fprintf(page->out, "\n%8s %8s  %15s %9s %12s  %s\n", "pid", "tid",
		counted_name(model), "time", "lost", "name");
	for (i = 0; i < model->thread_count; i++)
		print_thread(page, &thread[i]);
	for (i = 0; i < model->thread_count; i++, thread++) {
		if (!thread->calls)
			continue;
		part_sums_of(&part, model, thread->path);
		order = order_part(model, &part, page->options, &count);
		fprintf(page->out, "\nthread %u of process %u: ", thread->tid,
			model->recording->processes[thread->process].pid);
		put_text(page->out, thread->name[0] ? thread->name : "?");
		print_table(page, part.sums, order, count);
	}
	part_sums_end(&part);
}

/* How wide the terminal is; SIZE_MAX if it is none. */
static size_t terminal_columns(FILE *out)
{
	struct winsize size;

	if (!isatty(fileno(out)))
		return SIZE_MAX;
	if (ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col >= 40)
		return size.ws_col;
	return 80;
}

static bool wants_color(FILE *out, const char *when)
{
	const char *no = getenv("NO_COLOR"), *terminal = getenv("TERM");

	if (strcmp(when, "auto"))
		return !strcmp(when, "always");
	return isatty(fileno(out)) && !(no && *no) &&
	       !(terminal && !strcmp(terminal, "dumb"));
}

static void print_head(const struct page *page)
{
	print_program(page);
	print_calls(page);
	print_clock(page);
	advice_print(page->out, page->model);
}

struct page page_on(FILE *out, const struct options *options,
		    struct model *model)
{
	return (struct page){
		.out = out,
		.options = options,
		.model = model,
		.color = wants_color(out, options->color),
		.columns = terminal_columns(out),
	};
}

uint32_t page_rows(const struct page *page, uint32_t usual, uint32_t count)
{
	long limit = page->options->limit < 0 ? (long)usual :
						page->options->limit;

	return limit == 0 || limit > (long)count ? count : (uint32_t)limit;
}

void page_left_out(const struct page *page, uint32_t shown, uint32_t count)
{
	char text[SHORT_TEXT];

	if (shown < count)
		fprintf(page->out, "... %s more (--limit 0 shows all)\n",
			human_count(text, count - shown));
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
		fprintf(page->out, "\nRecorded as well, see profrun report"
			"%s%s%s\n", memory, locks, exceptions);
}

void text_print(FILE *out, struct model *model, struct model *samples,
		const struct options *options)
{
	struct page page = page_on(out, options, model);

	if (model->calls || model->open)
		relatives_check(&page);
	asked_check(model);
	print_head(&page);
	if (options->ranks) {
		ranks_print(&page);
		return;
	}
	if (print_other_tables(&page)) {
		if (samples)
			fputs("\nRecorded as well, see profrun report "
			      "--samples\n", out);
		return;
	}
	if (!model->calls && !model->open &&
	    !(options->tree && options->memory)) {
		fputs(model_has_lost(model) ?
		      keep_format("\nNothing is left to report: %s.\n",
				  advice(model)) : model->is_sampled ?
		      "\nNo sample was taken: the program did not compute for "
		      "long enough.\n" : has_filter(model) ?
		      "\nNo call was recorded of those that --filter lets "
		      "through.\n" :
		      "\nNo call was recorded.  Was the program built with "
		      "-finstrument-functions?\n", out);
		return;
	}
	if (options->callers || options->callees || options->histogram)
		relatives_print(&page);
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
