/*
 * profrun export: checks the options against the properties of the format
 * (export/format.h), builds the model, trace or coverage that the format shows,
 * and lets the format write it.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/messages.h"
#include "base/output.h"
#include "base/text.h"
#include "command/export.h"
#include "command/finish.h"
#include "export/estimates.h"
#include "export/formats.h"
#include "export/gmon.h"
#include "export/lanes.h"
#include "model/choose.h"
#include "model/coverage.h"
#include "model/coverage_read.h"
#include "model/functions.h"
#include "model/locks.h"
#include "model/model.h"
#include "model/options.h"
#include "model/shown.h"
#include "model/window.h"
#include "read/recording.h"
#include "trace/clocks.h"
#include "trace/messages.h"
#include "trace/trace.h"

static bool is_stdout(const struct options *options)
{
	return !options->output || !strcmp(options->output, "-");
}

static void check_output(const struct options *options,
			 const struct export_format *format)
{
	if (format->is_binary && is_stdout(options) && isatty(STDOUT_FILENO))
		die_usage("export %s: that is no text for a terminal: "
			  "-o FILE, or a pipe",
			  format->name);
	if (!*format->extension && is_stdout(options))
		die_usage("export %s: is a directory: -o DIR", format->name);
}

static void check_selection(const struct options *options,
			    const struct export_format *format)
{
	if (selection_is_given(&options->selection))
		die_usage("export %s: has no --hide, --only, --focus, "
			  "--merge-recursion: it has no call paths to fold",
			  format->name);
}

/* --- coverage --- */

/* One or more recordings, added up. */
static int export_coverage(const struct options *options,
			   const struct export_format *format, char **paths,
			   int count)
{
	struct coverage coverage = { .line_count = 0 };
	struct recording recording;
	int i;

	if (options->threads || options->value_given)
		die_usage("export %s: has no --threads and no --value",
			  format->name);
	check_selection(options, format);
	if (options->has_window)
		die_usage("export %s: has no --from, --to, --thread, "
			  "--min-duration, --depth, --function: coverage has "
			  "no times",
			  format->name);
	if (options->names == NAMES_SHORT)
		die_usage("export %s: has no --names short: functions of equal "
			  "names would be one",
			  format->name);
	for (i = 0; i < count || i == 0; i++) {
		recording_open(&recording, count ? paths[i] : recording_find(),
			       options->pid);
		if (!coverage_is_there(&recording))
			die("%s: no coverage was recorded "
			    "(profrun -p coverage)",
			    recording.path);
		coverage_add(&coverage, &recording);
	}
	coverage_finish(&coverage);
	if (!format->keeps_tests)
		coverage_merge_tests(&coverage);
	format->print_coverage(output_open(options->output), &coverage,
			       options);
	output_close();
	return coverage.line_count || !warning_count() ? 0 : 1;
}

/* --- traces --- */

static int export_trace(const struct options *options,
			const struct export_format *format, const char *path)
{
	struct recording recording;
	struct model model = { .recording = &recording };
	struct lanes lanes = { .recording = &recording,
			       .model = &model,
			       .options = options };

	if (options->value_given || options->threads || options->samples ||
	    options->memory || options->locks || options->exceptions ||
	    options->raw)
		die_usage("export %s%s: has no --value, --threads, --samples, "
			  "--memory, --locks, --exceptions, --raw: it is all "
			  "of a trace",
			  format->name, format->print ? " of a window" : "");
	check_output(options, format);
	recording_open(&recording, path ? path : recording_find(),
		       options->pid);
	if (!trace_open(&lanes.trace, &recording))
		die("%s: there is no trace in it (profrun -p trace)",
		    recording.path);
	trace_clocks_tell(&lanes.trace);
	model_find_functions(&model);
	locks_find(&model);
	trace_find_messages(&lanes.trace);
	lanes.range = window_begin(&lanes.trace, &model, options, true);
	lanes.range.doing = "exporting";
	if (format->write_trace)
		format->write_trace(options->output, &lanes);
	else
		format->print_trace(output_open(options->output), &lanes);
	progress_end();
	window_end(&lanes.range);
	if (format->print_trace)
		output_close();
	trace_close(&lanes.trace);
	return 0;
}

/* --- several files --- */

static int export_files(struct options *options,
			const struct export_format *format, const char *path,
			const char *file)
{
	struct recording recording;
	struct model model, samples = { .recording = NULL };

	if (!strcmp(file, "-"))
		die_usage("export %s: two files cannot go to standard output",
			  format->name);
	if (options->threads || options->value_given)
		die_usage("export %s: has no --threads and no --value",
			  format->name);
	choose_read(&model, &samples, &recording, options, path);
	format->write_files(&model, samples.recording ? &samples : NULL, file);
	estimates_tell(&model);
	if (model.calls || model.open)
		return 0;
	warn("%s: no %s was recorded", recording.path,
	     model.is_sampled ? "sample" : "call");
	return warning_count() > 1 ? 1 : 0;
}

int export_gmon_to(struct options *options, const char *path, const char *file)
{
	return export_files(options, export_format_find("gmon"), path, file);
}

/* --- formats of the model --- */

/* A window selects calls of a trace. */
static void check_window(const struct options *options,
			 const struct export_format *format)
{
	if (!options->has_window)
		return;
	if (format->is_of_memory || options->samples || options->memory ||
	    options->locks || options->exceptions ||
	    options->value >= VALUE_WAITS)
		die_usage("export %s: --from, --to, --thread, --min-duration, "
			  "--depth and --function select calls of a trace, not "
			  "samples, memory, waits or exceptions",
			  format->name);
}

static void check_lines(const struct options *options,
			const struct export_format *format)
{
	if (!options->lines)
		return;
	if (!format->may_have_lines && !format->has_lines)
		die_usage("export %s: has no --lines; these have: callgrind, "
			  "csv, folded, perf-script, pprof",
			  format->name);
	if (options->memory || options->locks || options->exceptions ||
	    options->value >= VALUE_WAITS || options->has_window)
		die_usage("--lines: lines are those of samples, not of calls, "
			  "memory, waits or exceptions");
	if (options->threads && !strcmp(format->name, "csv"))
		die_usage("export csv: --lines has no --threads");
}

static bool has_value(const struct export_format *format, enum value value)
{
	return format->values & VALUE_BIT(value);
}

/* What a format counts without --value. */
static void choose_value(struct options *options,
			 const struct export_format *format,
			 const struct model *model)
{
	if (options->value_given)
		return;
	if (!model->has_times)
		options->value = VALUE_CALLS;
	if (format->is_of_memory)
		options->value = VALUE_PEAK;
	else if (options->locks && has_value(format, VALUE_WAITS))
		options->value = VALUE_WAITS;
	else if (options->memory && has_value(format, VALUE_BYTES))
		options->value = VALUE_BYTES;
}

static void check_memory_value(const struct options *options,
			       const struct model *model)
{
	if (options->value < VALUE_BYTES)
		return;
	if (!model->has_memory)
		die("%s: no allocations were recorded (profrun -p memory)",
		    model->recording->path);
	if (options->value == VALUE_LOST && !model->memory_heaps_searched)
		die("%s: the lost blocks are not known",
		    model->recording->path);
}

static void check_value(const struct options *options,
			const struct export_format *format,
			const struct model *model)
{
	if (format->is_of_memory && options->value != VALUE_PEAK)
		die_usage("export %s: has no --value", format->name);
	if (!format->is_of_memory && !has_value(format, options->value))
		die_usage("export %s: has no such --value; these have: %s",
			  format->name,
			  export_format_names_with(options->value));
	check_memory_value(options, model);
	if (!format->needs_no_times && options->value < VALUE_CALLS &&
	    !model->has_times && model->calls)
		die("%s: calls were counted, not timed: --value calls is all "
		    "there is",
		    model->recording->path);
}

#define DEPTH_MAX 4096 /* without --max-depth */

static int export_model(struct options *options,
			const struct export_format *format, const char *path)
{
	struct recording recording;
	struct model model;

	if (format->has_no_threads && options->threads)
		die_usage("export %s: has no --threads", format->name);
	check_window(options, format);
	check_lines(options, format);
	options->threads |= format->has_threads_always;
	options->by_line = format->has_lines || options->lines;
	check_output(options, format);
	choose_read(&model, NULL, &recording, options, path);
	if (options->lines && !model.is_sampled)
		die("%s: --lines: calls have no lines; samples have: "
		    "--samples, of profrun -p sampling",
		    recording.path);
	options->memory |= format->is_of_memory;
	choose_memory(&model, options);
	choose_locks(&model, options);
	choose_exceptions(&model, options);
	choose_value(options, format, &model);
	check_value(options, format, &model);
	if (format->shows_one_value)
		options->memory = options->value >= VALUE_BYTES;
	if (!options->max_depth)
		options->max_depth = format->max_depth ? format->max_depth :
							 DEPTH_MAX;
	format->print(output_open(options->output), &model, options);
	if (options->value == VALUE_CALLS || format->has_calls_always)
		estimates_tell(&model);
	return finish(&model);
}

int export_recordings(struct options *options, const char *name, char **paths,
		      int count)
{
	const struct export_format *format = export_format_find(name);

	window_check(options);
	if (options->embed && !format->run)
		die_usage("--embed is html's");
	if ((options->source || options->places.count) && !format->run)
		die_usage("--source and --source-dir are html's");
	if (format->print_coverage)
		return export_coverage(options, format, paths, count);
	if (count > 1)
		die_usage("%s: too many arguments", paths[count - 1]);
	if (format->run)
		return format->run(options, paths[0]);
	if (options->object && !format->has_object && format->print)
		die_usage("--object is order's");
	if (format->write_files) {
		const char *file = options->output ? options->output :
						     "gmon.out";
		int status = export_files(options, format, paths[0], file);

		if (format->say_how)
			format->say_how(file);
		return status;
	}
	if (format->write_trace ||
	    (format->print_trace && (!format->print || options->has_window)))
		return export_trace(options, format, paths[0]);
	return export_model(options, format, paths[0]);
}
