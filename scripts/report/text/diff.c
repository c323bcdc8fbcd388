/*
 * profrun diff: compares the costs of functions in two sets of recordings.
 * Functions are the same if their names and the names of their objects are
 * equal; the program itself may have different names.
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/messages.h"
#include "base/names.h"
#include "base/numbers.h"
#include "base/text.h"
#include "base/welch.h"
#include "model/choose.h"
#include "model/functions.h"
#include "model/estimates.h"
#include "model/memory.h"
#include "model/model.h"
#include "model/options.h"
#include "model/shown.h"
#include "read/process.h"
#include "read/recording.h"
#include "text/diff.h"
#include "text/diff_ci.h"
#include "text/diff_rows.h"
#include "text/layout.h"
#include "text/table.h"

#define ROWS	    30
#define COLUMNS_MAX 10
#define CERTAIN	    0.01 /* a smaller p-value is significant */
#define SAME	    0.05 /* a smaller relative change counts as none */
#define NOT_SHOWN   "not shown to differ"
/* the same quantile of the normal distribution, in standard deviations */
#define NORMAL_LIMIT 2.576

/* --- reading --- */

static bool is_memory(enum value value)
{
	return value >= VALUE_BYTES;
}

/* "libz.so.1.2.13" is libz.so in all versions. */
static const char *library_key(const char *name)
{
	const char *end = strstr(name, ".so.");

	return end ? keep_text(name, (size_t)(end + 3 - name)) : name;
}

/* The names of objects in all runs: the program has none. */
static const char **object_keys(const struct model *model)
{
	const char **keys = allocate(model->object_count, sizeof(*keys));
	struct names programs = { 0 };
	uint32_t i;

	for (i = 0; i < model->recording->process_count; i++) {
		const char *program = process_string(
			&model->recording->processes[i], "program");

		if (program)
			names_add(&programs, base_name(program));
	}
	for (i = 0; i < model->object_count; i++) {
		const char *name = base_name(model->objects[i].path);

		keys[i] = names_find(&programs, name) != NONE ?
				  "" :
				  library_key(name);
	}
	names_free(&programs);
	return keys;
}

/* The lines of B are those of the present source. */
static void note_line(const struct diff *diff, struct diff_row *row,
		      struct function *function)
{
	if (!ci_wants_lines(diff->options))
		return;
	function_line(function);
	if (!function->file)
		return;
	row->file = function->file;
	row->line = function->line;
}

static struct diff_row *find_row(struct diff *diff, const char *const *keys,
				 struct function *function)
{
	const char *key = keep_format(
		"%s\n%s\n%s", function->mangled,
		function->group ? function->group : "",
		function->object ? keys[function->object_number] : "?");
	uint32_t number = names_add(&diff->names, key);

	if (number < diff->count) {
		note_line(diff, &diff->rows[number], function);
		return &diff->rows[number];
	}
	GROW(diff->rows, diff->count, diff->room);
	diff->rows[diff->count] = (struct diff_row){
		.name = function->name,
		.mangled = function->mangled,
		.short_name = function->short_name,
		.object = function->object ? object_name(function) : NULL,
	};
	note_line(diff, &diff->rows[diff->count], function);
	return &diff->rows[diff->count++];
}

static double value_of(const struct model *model, uint32_t function,
		       enum value value)
{
	const struct sums *sums = &model->functions[function].sums;

	switch (value) {
	case VALUE_SELF: return sums->self;
	case VALUE_TOTAL: return sums->total;
	case VALUE_CALLS: return (double)count_of_sums(sums).calls;
	default:
		return (double)memory_value(&model->function_memory[function],
					    value);
	}
}

static double variance_of(const struct sums *sums, enum value value)
{
	/* The error is twice the standard deviation. */
	double of_calls = count_of_sums(sums).error / 2;

	return value == VALUE_SELF  ? sums->self_variance :
	       value == VALUE_TOTAL ? sums->total_variance :
	       value == VALUE_CALLS ? of_calls * of_calls :
				      0;
}

static double value_of_all(const struct model *model, enum value value)
{
	if (is_memory(value))
		return (double)memory_value(&model->memory_all, value);
	return value == VALUE_CALLS ? (double)count_of_model(model).calls :
				      model->time;
}

/* Without an option, the first recording decides which value is compared. */
static void check_value(struct diff *diff, const struct model *model)
{
	if (!diff->is_chosen) {
		diff->value = diff->options->value;
		if (!diff->options->value_given && !model->has_times)
			diff->value = model->has_memory &&
						      !model->memory_has_calls ?
					      VALUE_BYTES :
					      VALUE_CALLS;
		diff->is_sampled = model->is_sampled;
		diff->is_chosen = true;
	}
	if (diff->value == VALUE_WAITS)
		die_usage("diff: has no --value waits");
	if (diff->is_sampled != model->is_sampled)
		die("%s has %s, the others have %s: they cannot be compared",
		    model->recording->path, counted_name(model),
		    diff->is_sampled ? "samples" : "calls");
	if (is_memory(diff->value) && !model->has_memory)
		die("%s: no allocations were recorded (profrun -p memory)",
		    model->recording->path);
	if (diff->value < VALUE_CALLS && !model->has_times && model->calls)
		die("%s: calls were counted, not timed: --value calls is all "
		    "there is",
		    model->recording->path);
}

/* Adds zeros for the earlier runs of this side, which did not have the
 * function. */
static void catch_up(const struct diff *diff, struct diff_row *row, int which)
{
	while (row->value[which].runs < diff->side[which].all.runs) {
		welch_add(&row->value[which], 0);
		welch_add(&row->calls[which], 0);
	}
}

static void add_run(struct diff *diff, int which, const struct model *model)
{
	const char **keys = object_keys(model);
	struct diff_row *row;
	uint32_t i;

	for (i = 0; i < diff->count; i++) {
		diff->rows[i].run_value = 0;
		diff->rows[i].run_calls = 0;
	}
	for (i = 0; i < model->function_count; i++) {
		const struct sums *sums = &model->functions[i].sums;
		struct count count = count_of_sums(sums);
		bool is_counted = sums_are_counted(sums);

		if (shown_hides(model, i) ||
		    (diff->value == VALUE_CALLS && !is_counted))
			continue;
		row = find_row(diff, keys, &model->functions[i]);
		row->is_uncounted[which] |= !is_counted;
		row->run_value += value_of(model, i, diff->value);
		row->run_calls += count.calls;
		row->has_estimate[which] |= count.is_estimate;
		row->is_least[which] |= count.is_least;
		row->variance += variance_of(sums, diff->value);
		if (diff->value != VALUE_CALLS)
			continue;
		diff->side[which].is_estimate |= count.is_estimate;
		diff->side[which].is_least |= count.is_least;
	}
	for (i = 0; i < diff->count; i++) {
		row = &diff->rows[i];
		catch_up(diff, row, which);
		welch_add(&row->value[which], row->run_value);
		welch_add(&row->calls[which], (double)row->run_calls);
	}
	welch_add(&diff->side[which].all, value_of_all(model, diff->value));
	diff->side[which].lost += model->lost;
	diff->side[which].has_damage |= model_has_damage(model);
	if (!diff->side[which].command)
		diff->side[which].command = process_string(
			&model->recording->processes[0], "command");
	free(keys);
}

static void add_recordings(struct diff *diff, int which, char **paths,
			   int count)
{
	struct recording recording;
	struct model model;
	int i;

	for (i = 0; i < count; i++) {
		progress("reading recordings", (uint64_t)i, (uint64_t)count);
		model_read(&model, &recording, diff->options, paths[i]);
		check_value(diff, &model);
		if (!model.calls && !model.open && !model.has_memory)
			warn("%s: no %s was recorded", paths[i],
			     model.is_sampled ? "sample" : "call");
		add_run(diff, which, &model);
	}
	progress_end();
}

/* --- changes --- */

static int compare_rows(const void *left, const void *right)
{
	const struct diff_row *a = left, *b = right;
	double x = fabs(a->change.by), y = fabs(b->change.by);

	if (x != y)
		return x > y ? -1 : 1;
	if (a->calls[1].mean != b->calls[1].mean)
		return a->calls[1].mean > b->calls[1].mean ? -1 : 1;
	return strcmp(a->mangled, b->mangled);
}

/* With one run on each side, the error is at least that of the clock. */
static void find_change(struct diff *diff, struct diff_row *row)
{
	catch_up(diff, row, 0);
	catch_up(diff, row, 1);
	row->change = welch_change(&row->value[0], &row->value[1]);
	if (isnan(row->change.error) && row->variance > 0)
		row->change.error = sqrt(row->variance) * NORMAL_LIMIT;
}

static void find_changes(struct diff *diff)
{
	uint32_t i;

	for (i = 0; i < diff->count; i++)
		find_change(diff, &diff->rows[i]);
	names_free(&diff->names);
	if (!diff->count)
		return;
	qsort(diff->rows, diff->count, sizeof(*diff->rows), compare_rows);
}

static bool was_called(const struct diff_row *row, int which)
{
	return row->calls[which].mean > 0 || row->value[which].mean > 0;
}

/* Whether there is no difference, or almost none with 99 % certainty.  The
 * clock's error alone does not prove that. */
static bool is_same(const struct diff_row *row)
{
	const struct change *change = &row->change;

	return change->by == 0 ||
	       (!isnan(change->chance) &&
		fabs(change->by) + change->error <=
			SAME * fmax(row->value[0].mean, row->value[1].mean));
}

/* Whether calls that were not counted may make the difference: the side that is not
 * greater is a lower bound. */
static bool may_lack_calls(const struct diff *diff, bool a_is_least,
			   bool b_is_least, double by)
{
	return diff->value == VALUE_CALLS &&
	       ((a_is_least && by >= 0) || (b_is_least && by <= 0));
}

static bool row_may_lack_calls(const struct diff *diff,
			       const struct diff_row *row)
{
	return may_lack_calls(diff, row->is_least[0], row->is_least[1],
			      row->change.by);
}

static bool all_may_lack_calls(const struct diff *diff, double by)
{
	return may_lack_calls(diff, diff->side[0].is_least,
			      diff->side[1].is_least, by);
}

const char *diff_verdict(const struct diff *diff, const struct diff_row *row)
{
	bool is_time = diff->value < VALUE_CALLS;
	bool is_known = !isnan(row->change.chance);

	if (!was_called(row, 0))
		return "new";
	if (!was_called(row, 1))
		return "gone";
	if (row_may_lack_calls(diff, row))
		return NOT_SHOWN;
	if (is_same(row))
		return "same";
	if ((is_known && row->change.chance >= CERTAIN) ||
	    fabs(row->change.by) < row->change.error)
		return NOT_SHOWN;
	if (row->change.by > 0)
		return is_time	? is_known ? "slower" : "slower?" :
		       is_known ? "more" :
				  "more?";
	return is_time	? is_known ? "faster" : "faster?" :
	       is_known ? "less" :
			  "less?";
}

static bool is_unclear(const struct diff *diff, const struct diff_row *row)
{
	return !strcmp(diff_verdict(diff, row), NOT_SHOWN);
}

static bool is_above(const struct diff *diff, double by)
{
	double limit = diff->options->fail_above / 100;

	return diff->options->has_fail_above && by > 0 &&
	       by > limit * diff->side[0].all.mean;
}

bool diff_crosses(const struct diff *diff, const struct diff_row *row)
{
	return is_above(diff, row->change.by) && !is_same(row) &&
	       !is_unclear(diff, row);
}

bool diff_all_crosses(const struct diff *diff)
{
	struct change change = welch_change(&diff->side[0].all,
					    &diff->side[1].all);

	return is_above(diff, change.by) &&
	       !all_may_lack_calls(diff, change.by) &&
	       !(change.chance >= CERTAIN); /* unknown with one run each */
}

/* --- text --- */

/* "~": an estimate, or a mean that includes estimates; "> ": a lower bound. */
static const char *mark_of(bool is_estimate, bool is_least)
{
	return is_least ? "> " : is_estimate ? "~" : "";
}

const char *diff_value_text(const struct diff *diff, char text[DIFF_CELL],
			    double value, bool with_plus)
{
	char memory[SHORT_TEXT];
	const char *plain;

	if (diff->value < VALUE_CALLS)
		plain = human_ns(memory, fabs(value));
	else if (diff->value == VALUE_CALLS || diff->value == VALUE_ALLOCATIONS)
		plain = human_count(memory, whole(fabs(value)));
	else
		plain = human_bytes(memory, whole(fabs(value)));
	snprintf(text, DIFF_CELL, "%s%s",
		 value < 0		? "-" :
		 value > 0 && with_plus ? "+" :
					  "",
		 plain);
	return text;
}

static const char *percent_text(char text[SHORT_TEXT], const struct welch *a,
				const struct change *change)
{
	double times = 1 + change->by / a->mean;

	if (a->mean > 0 && times < 10)
		snprintf(text, SHORT_TEXT, "%+.1f", 100 * (times - 1));
	else if (a->mean > 0)
		snprintf(text, SHORT_TEXT, times < 1e5 ? "x%.0f" : "x%.0e",
			 times);
	else
		strcpy(text, "-");
	return text;
}

static const char *error_text(const struct diff *diff, char text[DIFF_CELL],
			      double error)
{
	return isnan(error) ? strcpy(text, "-") :
			      diff_value_text(diff, text, error, false);
}

static void print_side(const struct layout *layout, const struct diff *diff,
		       int which)
{
	const struct diff_side *side = &diff->side[which];
	double deviation = welch_deviation(&side->all);
	char text[DIFF_CELL], more[DIFF_CELL];

	fprintf(layout->out, "%c  %2u run%s  %s%s", 'A' + which, side->all.runs,
		side->all.runs == 1 ? " " : "s",
		mark_of(side->is_estimate, side->is_least),
		diff_value_text(diff, text, side->all.mean, false));
	if (!isnan(deviation))
		fprintf(layout->out, " \302\261 %s",
			diff_value_text(diff, more, deviation, false));
	fputs("  ", layout->out);
	put_text(layout->out,
		 side->command ? side->command : "unknown program");
	if (side->lost || side->has_damage)
		fprintf(layout->out, "  (%s%s%s calls LOST)",
			side->lost ? human_count(text, side->lost) : "",
			side->lost && side->has_damage ? " and " : "",
			side->has_damage ? "an unknown number of" : "");
	fputc('\n', layout->out);
}

static void print_all(const struct layout *layout, const struct diff *diff)
{
	struct change change = welch_change(&diff->side[0].all,
					    &diff->side[1].all);
	char by[DIFF_CELL], percent[SHORT_TEXT], error[DIFF_CELL];

	if (all_may_lack_calls(diff, change.by)) {
		fputs("all of it: " NOT_SHOWN
		      "; >: at least so many calls, how many more is unknown\n",
		      layout->out);
		return;
	}
	percent_text(percent, &diff->side[0].all, &change);
	fprintf(layout->out, "all of it: %s (%s%s), ",
		diff_value_text(diff, by, change.by, true), percent,
		percent[0] == 'x' || percent[1] == '\0' ? "" : " %");
	if (isnan(change.error))
		fputs("and how much runs vary is not known from one each;\n"
		      "\302\261 is the clock's error alone.  Several tell: "
		      "profrun diff A1 A2 A3 -- B1 B2 B3\n",
		      layout->out);
	else
		fprintf(layout->out, "99 %% certain to \302\261 %s: %s\n",
			diff_value_text(diff, error, change.error, false),
			change.chance < CERTAIN ? "a change" :
			change.by == 0		? "the same" :
						  NOT_SHOWN);
}

/* NULL: none. */
static const char *color_of(const char *word)
{
	if (!strcmp(word, "same") || !strcmp(word, NOT_SHOWN))
		return NULL;
	return strchr("smn", word[0]) ? "\033[31m" : "\033[32m";
}

static const char *calls_text(char text[SHORT_TEXT], const struct diff_row *row,
			      int which)
{
	char count[SHORT_TEXT];

	if (row->is_uncounted[which] && !(row->calls[which].mean > 0))
		return "-";
	snprintf(text, SHORT_TEXT, "%s%.29s",
		 mark_of(row->has_estimate[which], row->is_least[which]),
		 human_count(count, whole(row->calls[which].mean)));
	return text;
}

/* 0: unknown, or not needed. */
static unsigned int runs_to_tell(const struct diff *diff,
				 const struct diff_row *row)
{
	return is_unclear(diff, row) && !row_may_lack_calls(diff, row) ?
		       welch_runs_to_tell(&row->value[0], &row->value[1]) :
		       0;
}

/* The number of runs needed for a clear answer; "-": unknown. */
static const char *runs_text(char text[SHORT_TEXT], const struct diff *diff,
			     const struct diff_row *row)
{
	unsigned int runs = runs_to_tell(diff, row);
	char count[SHORT_TEXT];

	if (!is_unclear(diff, row))
		return "";
	if (runs == 0)
		return "-";
	snprintf(text, SHORT_TEXT, "%s%.30s", runs == WELCH_RUNS_MAX ? ">" : "",
		 human_count(count, runs));
	return text;
}

static void print_row(struct table *table, const struct diff *diff,
		      const struct diff_row *row)
{
	const char *word = diff_verdict(diff, row), *color = color_of(word);
	char text[DIFF_CELL], calls[SHORT_TEXT], percent[SHORT_TEXT];

	table_cell(table,
		   diff_value_text(diff, text, row->value[0].mean, false));
	table_cell(table,
		   diff_value_text(diff, text, row->value[1].mean, false));
	if (color)
		table_color(table, color);
	table_cell(table, diff_value_text(diff, text, row->change.by, true));
	table_cell(table, error_text(diff, text, row->change.error));
	table_cell(table, percent_text(percent, &row->value[0], &row->change));
	table_cell(table, word);
	if (color)
		table_no_color(table);
	if (diff->has_unclear)
		table_cell(table, runs_text(text, diff, row));
	table_cell(table, calls_text(calls, row, 0));
	table_cell(table, calls_text(calls, row, 1));
	table_names(table, row->name, row->short_name, row->mangled);
}

/* The width of the column of calls. */
static int calls_width(const struct diff *diff, uint32_t rows)
{
	size_t width = strlen("samples A");
	char text[SHORT_TEXT];
	uint32_t i;
	int which;

	for (i = 0; i < rows; i++)
		for (which = 0; which < 2; which++) {
			size_t columns = text_columns(
				calls_text(text, &diff->rows[i], which));

			width = columns > width ? columns : width;
		}
	return (int)width;
}

/* Explains the verdict that most rows need explained. */
static void print_unclear(const struct layout *layout, const struct diff *diff)
{
	bool is_one = diff->side[0].all.runs == 1 &&
		      diff->side[1].all.runs == 1;
	bool is_least = diff->side[0].is_least || diff->side[1].is_least;

	fputs(is_least ?
		      "\n" NOT_SHOWN
		      ": calls that were not counted may make the "
		      "difference (>: at least so many)\n" :
	      is_one ?
		      "\n" NOT_SHOWN ": the clock's error is larger than the "
		      "difference; compare several runs of each\n" :
		      "\n" NOT_SHOWN ": runs vary too much for a difference "
		      "so small; (runs): about how many of each would show it\n",
	      layout->out);
}

static void print_text(FILE *out, struct diff *diff)
{
	static const char *const names[] = {
		[VALUE_SELF] = "self",		[VALUE_TOTAL] = "total",
		[VALUE_CALLS] = "calls",	[VALUE_BYTES] = "bytes",
		[VALUE_ALLOCATIONS] = "blocks", [VALUE_PEAK] = "peak",
		[VALUE_LEAKED] = "left",	[VALUE_LOST] = "lost",
	};
	const char *counted = diff->is_sampled ? "samples" : "calls";
	struct layout layout = layout_on(out, diff->options, NULL);
	uint32_t i, rows = layout_rows(&layout, ROWS, diff->count);
	struct column columns[COLUMNS_MAX] = { { NULL, 0 } };
	struct column *column = columns;
	int width = calls_width(diff, rows);
	char titles[4][SHORT_TEXT];
	struct table table;

	for (i = 0; i < rows; i++)
		diff->has_unclear |= is_unclear(diff, &diff->rows[i]);
	for (i = 0; i < 4; i++)
		snprintf(titles[i], SHORT_TEXT, "%s %c",
			 i < 2 ? names[diff->value] : counted,
			 (char)('A' + i % 2));
	*column++ = (struct column){ titles[0], 10 };
	*column++ = (struct column){ titles[1], 10 };
	*column++ = (struct column){ "change", 10 };
	*column++ = (struct column){ "\302\261", 9 };
	*column++ = (struct column){ "%", 7 };
	*column++ = (struct column){ "", diff->has_unclear ?
						 -(int)strlen(NOT_SHOWN) :
						 -8 };
	if (diff->has_unclear)
		*column++ = (struct column){ "runs", 6 };
	*column++ = (struct column){ titles[2], width };
	*column++ = (struct column){ titles[3], width };
	*column = (struct column){ "function", 0 };
	table = table_begin(&layout, columns);
	print_side(&layout, diff, 0);
	print_side(&layout, diff, 1);
	print_all(&layout, diff);
	fputc('\n', out);
	table_titles(&table, NULL);
	for (i = 0; i < rows; i++)
		print_row(&table, diff, &diff->rows[i]);
	layout_left_out(&layout, rows, diff->count);
	if (diff->has_unclear)
		print_unclear(&layout, diff);
}

/* --- JSON and CSV --- */

static void put_number(struct json *json, const char *key, double value)
{
	json_key_number(json, key, value, 17);
}

static void put_side(struct json *json, const char *key,
		     const struct welch *value, const struct welch *calls)
{
	json_key_object(json, key);
	put_number(json, "mean", value->mean);
	put_number(json, "deviation", welch_deviation(value));
	if (calls)
		put_number(json, "calls", calls->mean);
	else
		json_key_count(json, "runs", value->runs);
	json_close_object(json);
}

static void put_change(struct json *json, const struct change *change)
{
	put_number(json, "change", change->by);
	put_number(json, "error", change->error);
	put_number(json, "chance", change->chance);
}

static void put_row(struct json *json, const struct diff *diff,
		    const struct diff_row *row)
{
	json_line(json, 0);
	json_object(json);
	json_key_text(json, "name", row->name);
	json_key_text(json, "mangled", row->mangled);
	json_key_text(json, "object", row->object);
	put_side(json, "a", &row->value[0], &row->calls[0]);
	put_side(json, "b", &row->value[1], &row->calls[1]);
	put_change(json, &row->change);
	json_key_flag(json, "a_calls_estimated", row->has_estimate[0]);
	json_key_flag(json, "b_calls_estimated", row->has_estimate[1]);
	json_key_flag(json, "a_calls_complete", !row->is_least[0]);
	json_key_flag(json, "b_calls_complete", !row->is_least[1]);
	json_key_text(json, "verdict", diff_verdict(diff, row));
	if (runs_to_tell(diff, row))
		json_key_count(json, "runs_to_tell", runs_to_tell(diff, row));
	json_close_object(json);
}

static void print_json(FILE *out, const struct diff *diff)
{
	static const char *const names[] = {
		[VALUE_SELF] = "self_ns",
		[VALUE_TOTAL] = "total_ns",
		[VALUE_CALLS] = "calls",
		[VALUE_BYTES] = "bytes",
		[VALUE_ALLOCATIONS] = "allocations",
		[VALUE_PEAK] = "peak",
		[VALUE_LEAKED] = "leaked",
		[VALUE_LOST] = "lost",
	};
	struct change all = welch_change(&diff->side[0].all,
					 &diff->side[1].all);
	struct json json = json_begin(out);
	uint32_t i;

	json_object(&json);
	json_key_text(&json, "value", names[diff->value]);
	put_side(&json, "a", &diff->side[0].all, NULL);
	put_side(&json, "b", &diff->side[1].all, NULL);
	put_change(&json, &all);
	json_key_array(&json, "functions");
	for (i = 0; i < diff->count; i++)
		put_row(&json, diff, &diff->rows[i]);
	json_close_array(&json);
	json_close_object(&json);
	json_end(&json);
}

static void put_csv_number(FILE *out, double value)
{
	if (isnan(value))
		fputc(',', out);
	else
		fprintf(out, ",%.10g", value);
}

static void print_csv(FILE *out, const struct diff *diff)
{
	uint32_t i;

	fputs("name,mangled,object,a,a_deviation,a_calls,b,b_deviation,"
	      "b_calls,change,error,chance,verdict,runs_to_tell\r\n",
	      out);
	for (i = 0; i < diff->count; i++) {
		const struct diff_row *row = &diff->rows[i];
		int which;

		put_csv(out, row->name);
		fputc(',', out);
		put_csv(out, row->mangled);
		fputc(',', out);
		put_csv(out, row->object);
		for (which = 0; which < 2; which++) {
			put_csv_number(out, row->value[which].mean);
			put_csv_number(out,
				       welch_deviation(&row->value[which]));
			put_csv_number(out, row->calls[which].mean);
		}
		put_csv_number(out, row->change.by);
		put_csv_number(out, row->change.error);
		put_csv_number(out, row->change.chance);
		fprintf(out, ",%s,", diff_verdict(diff, row));
		if (runs_to_tell(diff, row))
			fprintf(out, "%u", runs_to_tell(diff, row));
		fputs("\r\n", out);
	}
}

bool diff_print(FILE *out, const struct options *options, char **first,
		int first_count, char **second, int second_count)
{
	struct diff diff = { .options = options };

	add_recordings(&diff, 0, first, first_count);
	add_recordings(&diff, 1, second, second_count);
	find_changes(&diff);
	if (!strcmp(options->format, "json"))
		print_json(out, &diff);
	else if (!strcmp(options->format, "csv"))
		print_csv(out, &diff);
	else if (!strcmp(options->format, "github"))
		ci_print_github(out, &diff);
	else if (!strcmp(options->format, "junit"))
		ci_print_junit(out, &diff);
	else
		print_text(out, &diff);
	return ci_tell_crossed(&diff);
}
