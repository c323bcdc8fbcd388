/*
 * shim-report - what profrun runs to read a recording
 *
 * main() parses the command line into one struct.  Every verb then goes the
 * same way: read the recording, find symbols, build the model, write one
 * output.
 */
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/messages.h"
#include "base/output.h"
#include "base/text.h"
#include "command/annotate.h"
#include "command/command_line.h"
#include "command/export.h"
#include "command/finish.h"
#include "command/html.h"
#include "command/screen.h"
#include "common/descriptors.h"
#include "common/stack.h"
#include "export/json_coverage.h"
#include "export/csv.h"
#include "export/formats.h"
#include "export/gmon.h"
#include "export/json_info.h"
#include "export/json_replay.h"
#include "export/json_report.h"
#include "export/json_messages.h"
#include "export/json_ranks.h"
#include "history/history.h"
#include "jobs/merge_gmon.h"
#include "jobs/merge_recordings.h"
#include "jobs/pack_ranks.h"
#include "jobs/unwritten_gmon.h"
#include "model/choose.h"
#include "model/coverage.h"
#include "model/coverage_read.h"
#include "model/late_ranks.h"
#include "model/model.h"
#include "model/options.h"
#include "model/reduce.h"
#include "model/reduction.h"
#include "model/shown.h"
#include "model/window.h"
#include "read/recording.h"
#include "text/coverage.h"
#include "text/diff.h"
#include "text/info.h"
#include "text/layout.h"
#include "text/messages.h"
#include "text/ranks.h"
#include "text/replay.h"
#include "text/report.h"
#include "text/stat.h"

#define RANK_ROWS 10 /* limit of the table below the main one */

/* Coverage is shown if the user asked for it, at record time or now. */
static bool shows_coverage(const struct options *options,
			   const struct recording *recording)
{
	if (options->coverage && !coverage_is_there(recording))
		die("%s: no coverage was recorded (profrun -p coverage)",
		    recording->path);
	return options->coverage ||
	       (!options->samples && coverage_is_all(recording));
}

static int report_coverage(const struct options *options,
			   const struct recording *recording)
{
	struct coverage coverage = { .line_count = 0 };

	if (!strcmp(options->format, "csv"))
		die_usage(
			"--format csv: for coverage use --json, export lcov or "
			"export cobertura");
	if (selection_is_given(&options->selection))
		die_usage("--coverage has no --hide, --only, --focus, "
			  "--merge-recursion");
	coverage_add(&coverage, recording);
	coverage_finish(&coverage);
	coverage_merge_tests(&coverage);
	if (!strcmp(options->format, "json"))
		coverage_json(output_open(NULL), &coverage);
	else
		coverage_print(output_open(NULL), &coverage, options);
	output_close();
	return 0;
}

/* Whether the user asked for the table of functions only. */
static bool is_plain(const struct options *options)
{
	return !strcmp(options->format, "text") && !options->tree &&
	       !options->threads && !options->ranks && !options->callers &&
	       !options->callees && !options->histogram && !options->memory;
}

/* Shows how several recordings differ, below their common report. */
static void add_ranks(FILE *out, const struct options *options,
		      const struct model *reduced, const char *path)
{
	struct options by_rank = *options;
	struct recording recording;
	struct model model;
	struct layout layout;

	by_rank.ranks = true;
	if (options->limit < 0)
		by_rank.limit = RANK_ROWS;
	if (reduced->reduction && !options->raw &&
	    !selection_is_given(&options->selection))
		model = *reduced;
	else
		choose_read(&model, NULL, &recording, &by_rank, path);
	layout = layout_on(out, &by_rank, &model);
	fputc('\n', out);
	ranks_print(&layout);
}

/* --- messages between ranks --- */

static int report_messages(const struct options *options, const char *path)
{
	struct late_ranks ranks;
	FILE *out;

	if (options->ranks || options->threads || options->tree ||
	    options->callers || options->callees || options->histogram ||
	    !strcmp(options->format, "csv"))
		die_usage("--messages has no --ranks, --threads, --tree, "
			  "--callers, --callees, --histogram and no csv");
	late_ranks_find(&ranks, path);
	if (!ranks.messages)
		die("%s: it has no messages (mpirun ... profrun -p trace)",
		    path);
	out = output_open(NULL);
	if (!strcmp(options->format, "json")) {
		messages_json(out, &ranks);
	} else {
		messages_print(out, &ranks, options);
		messages_print_ranks(out, &ranks, options);
	}
	output_close();
	late_ranks_free(&ranks);
	return 0;
}

/* Below the report of a job, if its calls were traced. */
static void add_messages(FILE *out, const struct options *options,
			 const struct model *model, const char *path)
{
	struct options few = *options;
	struct late_ranks ranks;

	if (model->reduction || !trace_is_there(model->recording))
		return;
	if (options->limit < 0)
		few.limit = RANK_ROWS;
	late_ranks_find(&ranks, path);
	if (ranks.messages) {
		fputc('\n', out);
		messages_print(out, &ranks, &few);
	}
	late_ranks_free(&ranks);
}

/* Builds the model of a large job without all of its trees in memory. */
static bool build_reduced(struct model *model, struct recording *recording,
			  const struct options *options, const char *path)
{
	const struct reduction *reduction;

	if (!reduce_is_possible(options) ||
	    (options->ranks &&
	     (options->raw || selection_is_given(&options->selection))))
		return false;
	recording_open_heads(recording, path);
	reduction = reduce_for_report(recording);
	if (reduction)
		reduction_build(model, reduction, recording, options);
	else
		recording_free(recording);
	return reduction != NULL;
}

static int report(struct options *options, const char *path)
{
	struct recording recording;
	struct model model, samples = { .recording = NULL };
	FILE *out;

	if (!strcmp(options->format, "github") ||
	    !strcmp(options->format, "junit"))
		die_usage("--format %s is diff's", options->format);
	if (strcmp(options->format, "text") &&
	    (options->callers || options->callees || options->histogram ||
	     options->tree))
		die_usage("--format %s has no --tree, --callers, --callees, "
			  "--histogram; see export json",
			  options->format);
	if (options->ranks &&
	    (options->threads || options->callers || options->callees ||
	     options->histogram || !strcmp(options->format, "csv")))
		die_usage("--ranks has no --threads, --callers, --callees, "
			  "--histogram and no csv");
	path = path ? path : recording_find();
	if (options->messages)
		return report_messages(options, path);
	if (!build_reduced(&model, &recording, options, path)) {
		recording_open(&recording, path, options->pid);
		if (shows_coverage(options, &recording))
			return report_coverage(options, &recording);
		choose_build(&model,
			     strcmp(options->format, "text") ? NULL : &samples,
			     &recording, options);
	}
	if (!strcmp(options->format, "text"))
		choose_all(&model, options);
	choose_memory(&model, options);
	choose_locks(&model, options);
	choose_exceptions(&model, options);
	choose_check_sort(&model, options);
	out = output_open(NULL);
	if (!strcmp(options->format, "json") && options->ranks)
		ranks_json(out, &model);
	else if (!strcmp(options->format, "json"))
		json_report_print(out, &model, options, false);
	else if (!strcmp(options->format, "csv"))
		csv_print(out, &model, options);
	else
		text_print(out, &model, samples.recording ? &samples : NULL,
			   options);
	if (recording.part_count > 1 && is_plain(options))
		add_ranks(out, options, &model, path);
	if (recording.part_count > 1 && is_plain(options))
		add_messages(out, options, &model, path);
	return finish(&model);
}

static bool is_directory(const char *path)
{
	struct stat info;

	return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* All words are gprof's, except a recording as the last word, or the first. */
static int gprof(struct options *options, int argc, char **argv)
{
	const char *path = NULL, *file;

	if (argc > 0 && argv[argc - 1][0] != '-' &&
	    is_directory(argv[argc - 1])) {
		path = argv[--argc];
	} else if (argc > 0 && argv[0][0] != '-' && is_directory(argv[0])) {
		path = *argv++;
		argc--;
	}
	file = gmon_make_directory();
	if (export_gmon_to(options, path, file) != 0)
		return 1;
	return gmon_run_gprof(file, argv, argc);
}

static int merge(const struct options *options, char **files, int count)
{
	if (!options->output)
		die_usage("merge: where to? -o DIR, or FILE for gmon.out");
	if (is_directory(files[0]))
		merge_recordings(options->output, files, count);
	else
		merge_gmon(options->output, files, count);
	return 0;
}

/* "--" separates the two sets; two recordings need no separator. */
static int diff(struct options *options, int argc, char **argv)
{
	int middle = 1, first, second;
	bool has_failed;
	char **start;

	while (middle < argc && strcmp(argv[middle], "--"))
		middle++;
	first = take_options(options, "diff", middle, argv);
	start = argv + optind;
	if (middle == argc) {
		if (first != 2)
			die_usage("diff: which two recordings?  More of them: "
				  "A1 A2... -- B1 B2...");
		has_failed = diff_print(output_open(NULL), options, start, 1,
					start + 1, 1);
	} else {
		optind = 0;
		second = take_options(options, "diff", argc - middle,
				      argv + middle);
		if (first == 0 || second == 0)
			die_usage("diff: recordings before and after --");
		has_failed = diff_print(output_open(NULL), options, start,
					first, argv + middle + optind, second);
	}
	output_close();
	return has_failed ? 3 : 0;
}

static int reduce(const struct options *options, const char *path)
{
	struct recording recording;

	recording_open_heads(&recording, path ? path : recording_find());
	if (!reduce_write(&recording, options->host) && !options->node_files)
		die("%s: a rank has more than calls (samples, memory...), "
		    "which reports read from the rank itself",
		    recording.path);
	if (options->node_files)
		pack_ranks(&recording);
	return 0;
}

static void history_of_recordings(const struct options *options, char **paths,
				  int count)
{
	if (count == 0)
		die_usage("history add: which recordings?");
	if (options->version && !*options->version)
		die_usage("history add: --as: '' is empty");
	if (options->has_fail_above || options->value_given ||
	    strcmp(options->format, "text"))
		die_usage("history add: has no --fail-above, --value, --json");
	history_add(options, paths, count);
}

static int show_history(const struct options *options, const char *function)
{
	bool has_failed;

	if (options->version)
		die_usage("history: --as is of history add");
	if (options->value_given && (!function || options->value > VALUE_TOTAL))
		die_usage("history: --value is self or total of a FUNCTION");
	has_failed = history_print(output_open(NULL), options, function);
	output_close();
	return has_failed ? 3 : 0;
}

static int finish_histograms(const struct options *options, const char *path)
{
	struct recording recording;

	recording_open(&recording, path ? path : recording_find(), 0);
	if (unwritten_gmon_write(&recording, options->output ? options->output :
							       ".") == 0 &&
	    !options->if_any)
		die("%s: no histogram was left unwritten", recording.path);
	return 0;
}

static int replay(const struct options *options, const char *path)
{
	struct recording recording;

	window_check(options);
	recording_open(&recording, path ? path : recording_find(),
		       options->pid);
	if (!strcmp(options->format, "json"))
		json_replay_print(output_open(NULL), &recording, options);
	else
		replay_print(output_open(NULL), &recording, options);
	output_close();
	return 0;
}

static int info(const struct options *options, const char *path)
{
	bool is_json = !strcmp(options->format, "json");
	struct recording recording;
	struct model model;
	FILE *out;

	choose_read(&model, NULL, &recording, options, path);
	out = output_open(NULL);
	if (!options->sums) {
		if (is_json)
			json_info_print(out, &model);
		else
			info_print(out, &model);
		return finish(&model);
	}
	if (is_json)
		json_info_print_sums(out, &model);
	else
		info_print_sums(out, &model);
	/* That there is nothing is said there. */
	output_close();
	return 0;
}

static int stat_recording(const struct options *options, const char *path)
{
	struct recording recording;
	struct model model, samples = { .recording = NULL };
	const struct model *other;
	FILE *out;

	choose_read(&model, &samples, &recording, options, path);
	other = samples.recording ? &samples : NULL;
	out = output_open(NULL);
	if (!strcmp(options->format, "json"))
		stat_json(out, &model, other);
	else
		stat_print(out, &model, other);
	return finish(&model);
}

static int do_verb(int argc, char **argv)
{
	struct options options = {
		.limit = -1,
		.format = "text",
		.color = "auto",
		.min_percent = 0.5,
		.depth = 64,
		.max_paths = 1000000,
		.max_calls = 1000000,
		.context = 5,
		.database = "profrun-history.db",
	};
	const char *verb = argc > 1 ? argv[1] : "";
	int left;

	descriptors_hold();
	check_verb(verb);
	/* option error; getopt has printed the message */
	signal(SIGXFSZ, SIG_IGN);
	/* The verb is in the place where getopt expects the program's name. */
	argc--;
	argv++;
	if (argc == 2 && !strcmp(verb, "gprof") &&
	    (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")))
		print_help(verb);
	if (!strcmp(verb, "gprof"))
		return gprof(&options, argc - 1, argv + 1);
	if (!strcmp(verb, "diff"))
		return diff(&options, argc, argv);
	if (!strcmp(verb, "report")) {
		left = take_options(&options, verb, argc, argv);
		if (left <= 1)
			return report(&options, argv[optind]);
	} else if (!strcmp(verb, "stat")) {
		left = take_options(&options, verb, argc, argv);
		if (left <= 1)
			return stat_recording(&options, argv[optind]);
	} else if (!strcmp(verb, "export")) {
		options.depth = 0;
		left = take_options(&options, verb, argc, argv);
		if (left == 0)
			die_usage("export: which format? %s",
				  export_format_names());
		return export_recordings(&options, argv[optind],
					 argv + optind + 1, left - 1);
	} else if (!strcmp(verb, "merge")) {
		left = take_options(&options, verb, argc, argv);
		if (left == 0)
			die_usage("merge: which files?");
		return merge(&options, argv + optind, left);
	} else if (!strcmp(verb, "reduce")) {
		left = take_options(&options, verb, argc, argv);
		if (left <= 1)
			return reduce(&options, argv[optind]);
	} else if (!strcmp(verb, "history")) {
		left = take_options(&options, verb, argc, argv);
		if (left > 0 && !strcmp(argv[optind], "add")) {
			history_of_recordings(&options, argv + optind + 1,
					      left - 1);
			return 0;
		}
		if (left <= 1)
			return show_history(&options, argv[optind]);
	} else if (!strcmp(verb, "finish")) {
		left = take_options(&options, verb, argc, argv);
		if (left <= 1)
			return finish_histograms(&options, argv[optind]);
	} else if (!strcmp(verb, "html")) {
		left = take_options(&options, verb, argc, argv);
		if (left <= 1)
			return html_page(&options, argv[optind]);
	} else if (!strcmp(verb, "tui")) {
		left = take_options(&options, verb, argc, argv);
		if (left <= 1)
			return tui(&options, argv[optind]);
	} else if (!strcmp(verb, "top")) {
		left = take_options(&options, verb, argc, argv);
		if (left == 0)
			die_usage("top: which process? profrun ctl lists those "
				  "that shim records");
		if (left == 1)
			return top(&options, argv[optind]);
	} else if (!strcmp(verb, "annotate")) {
		left = take_options(&options, verb, argc, argv);
		if (left <= 2)
			return annotate(&options, argv + optind, left);
	} else if (!strcmp(verb, "replay")) {
		options.depth = 0;
		left = take_options(&options, verb, argc, argv);
		if (left <= 1)
			return replay(&options, argv[optind]);
	} else {
		left = take_options(&options, verb, argc, argv);
		if (left <= 1)
			return info(&options, argv[optind]);
	}
	die_usage("%s: too many arguments", argv[argc - 1]);
}

int main(int argc, char **argv)
{
	return stack_call(do_verb, argc, argv);
}
