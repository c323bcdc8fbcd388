/*
 * shim-report - what profrun runs to read a recording
 *
 * The command line becomes one struct; then everything goes one way: read,
 * symbols, model, one output.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "coverage.h"
#include "html.h"
#include "options.h"
#include "../run/stack.h"
#include "trace_export.h"

#define RANK_ROWS 10			/* below the other table */

/* Whether there are files of calls, of samples. */
static void find_kinds(const struct recording *recording, bool *calls,
		       bool *samples)
{
	uint32_t i, n;

	*calls = *samples = false;
	for (i = 0; i < recording->process_count; i++)
		for (n = 0; n < recording->processes[i].file_count; n++)
			*(recording->processes[i].files[n].is_sampled ?
			  samples : calls) = true;
}

/* The calls of traces, where nobody counted them or in place of what was counted. */
static void read_traces(struct recording *recording,
			const struct options *options, bool has_calls)
{
	uint32_t i, n, kept;

	if (has_calls && !options->trace)
		return;
	if (options->trace && !trace_is_there(recording))
		die("%s: there is no trace in it (profrun -p trace)",
		    recording->path);
	for (i = 0; i < recording->process_count && has_calls; i++) {
		struct process *process = &recording->processes[i];

		for (n = kept = 0; n < process->file_count; n++)
			if (process->files[n].is_sampled)
				process->files[kept++] = process->files[n];
		process->file_count = kept;
		process_list_ranges(process);
	}
	trace_add_calls(recording);
}

/* Calls, or samples if there are no calls.  Both: @samples gets the latter, if
 * it is not NULL. */
static void build_all(struct model *model, struct model *samples,
		      struct recording *recording,
		      const struct options *options)
{
	bool has_calls, has_samples;

	find_kinds(recording, &has_calls, &has_samples);
	read_traces(recording, options, has_calls);
	find_kinds(recording, &has_calls, &has_samples);
	if (options->samples && !has_samples && has_calls)
		die("%s: no samples were recorded (profrun -p sampling)",
		    recording->path);
	model_build(model, recording, options->raw,
		    options->threads || options->ranks,
		    has_samples && (options->samples || !has_calls));
	if (samples && has_samples && !model->is_sampled)
		model_build(samples, recording, options->raw, false, true);
}

static void read_all(struct model *model, struct model *samples,
		     struct recording *recording, const struct options *options,
		     const char *path)
{
	recording_open(recording, path ? path : recording_find(),
		       options->pid);
	build_all(model, samples, recording, options);
}

void model_read(struct model *model, struct recording *recording,
		const struct options *options, const char *path)
{
	read_all(model, NULL, recording, options, path);
}

/* More than one that did something. */
static bool has_threads(const struct model *model)
{
	uint32_t i, count = 0;

	for (i = 0; i < model->thread_count; i++)
		count += model->threads[i].calls || model->threads[i].open;
	return count > 1;
}

/* Memory is shown if it is what was asked for, when the program ran or now. */
static void choose_memory(const struct model *model, struct options *options)
{
	if (options->memory && !model->has_memory)
		die("%s: no allocations were recorded (profrun -p memory)",
		    model->recording->path);
	if (options->sort_given && options->sort >= SORT_BYTES)
		options->memory = model->has_memory;
	if (model->has_memory && !model->memory_has_calls &&
	    !(options->sort_given && options->sort < SORT_BYTES))
		options->memory = true;
	if (options->sort_given && options->sort >= SORT_BYTES &&
	    !options->memory)
		die("%s: no allocations were recorded to sort by",
		    model->recording->path);
}

/* Calls were not asked for, nor another table. */
static bool is_free(const struct model *model, const struct options *options)
{
	const struct process *process = model->recording->processes;

	return !options->memory && !options->locks && !options->exceptions &&
	       !options->sort_given &&
	       !process_has_profile(process, "calltree") &&
	       !process_has_profile(process, "default");
}

/* Waits, if they are what was asked for, when the program ran or now. */
static void choose_locks(const struct model *model, struct options *options)
{
	if ((options->locks || options->value == VALUE_WAITS) && !model->locks)
		die("%s: no locks were recorded (profrun -p locks)",
		    model->recording->path);
	if (model->locks && is_free(model, options))
		options->locks = true;
}

/* The same of exceptions. */
static void choose_exceptions(const struct model *model,
			      struct options *options)
{
	if (options->exceptions && !model->exceptions)
		die("%s: no exceptions were recorded (profrun -p exceptions)",
		    model->recording->path);
	if (model->exceptions && is_free(model, options))
		options->exceptions = true;
}

/* Text has room for a table of each. */
static void choose_all(const struct model *model, struct options *options)
{
	if (!is_free(model, options))
		return;
	options->memory = model->has_memory;
	options->locks = model->locks != NULL;
	options->exceptions = model->exceptions != NULL;
}

/* 0: what was asked for is there; 1: damage has left nothing of it. */
static int finish(const struct model *model)
{
	bool is_empty = !model->calls && !model->open && !model->has_memory &&
			!model->locks && !model->exceptions &&
			!coverage_is_there(model->recording);
	int status = is_empty && warning_count() ? 1 : 0;

	output_close();
	if (is_empty)
		warn("%s: no %s was recorded", model->recording->path,
		     model->is_sampled ? "sample" : "call");
	return status;
}

/* What was reached is shown if it was asked for, when the program ran or now. */
static bool shows_coverage(const struct options *options,
			   const struct recording *recording)
{
	if (options->coverage && !coverage_is_there(recording))
		die("%s: nothing was recorded of what is reached (profrun -p "
		    "coverage)", recording->path);
	return options->coverage || coverage_is_all(recording);
}

static int report_coverage(const struct options *options,
			   const struct recording *recording)
{
	struct coverage coverage = { .line_count = 0 };

	if (strcmp(options->format, "text"))
		die_usage("--format %s: what was reached has export lcov and "
			  "export cobertura", options->format);
	coverage_add(&coverage, recording);
	coverage_finish(&coverage);
	coverage_merge_tests(&coverage);
	coverage_print(output_open(NULL), &coverage, options);
	output_close();
	return 0;
}

/* One or more recordings, as one. */
static int export_coverage(const struct options *options, const char *name,
			   char **paths, int count)
{
	struct coverage coverage = { .line_count = 0 };
	bool is_lcov = !strcmp(name, "lcov");
	struct recording recording;
	FILE *out;
	int i;

	if (options->threads || options->value_given)
		die_usage("export %s: has no --threads and no --value", name);
	for (i = 0; i < count || i == 0; i++) {
		recording_open(&recording, count ? paths[i] : recording_find(),
			       options->pid);
		if (!coverage_is_there(&recording))
			die("%s: nothing was recorded of what is reached "
			    "(profrun -p coverage)", recording.path);
		coverage_add(&coverage, &recording);
	}
	coverage_finish(&coverage);
	if (!is_lcov)
		coverage_merge_tests(&coverage);
	out = output_open(options->output);
	(is_lcov ? lcov_print : cobertura_print)(out, &coverage, options);
	output_close();
	return coverage.line_count || !warning_count() ? 0 : 1;
}

/* Nothing but the table of functions was asked for. */
static bool is_plain(const struct options *options)
{
	return !strcmp(options->format, "text") && !options->tree &&
	       !options->threads && !options->ranks && !options->callers &&
	       !options->callees && !options->histogram && !options->memory;
}

/* Below the report of several recordings: how they differ. */
static void add_ranks(FILE *out, const struct options *options,
		      const char *path)
{
	struct options by_rank = *options;
	struct recording recording;
	struct model model;
	struct page page;

	by_rank.ranks = true;
	if (options->limit < 0)
		by_rank.limit = RANK_ROWS;
	read_all(&model, NULL, &recording, &by_rank, path);
	page = page_on(out, &by_rank, &model);
	fputc('\n', out);
	ranks_print(&page);
}

static int report(struct options *options, const char *path)
{
	struct recording recording;
	struct model model, samples = { .recording = NULL };
	FILE *out;

	if (strcmp(options->format, "text") &&
	    (options->callers || options->callees || options->histogram ||
	     options->tree))
		die_usage("--format %s has no --tree, --callers, --callees, "
			  "--histogram; see export json", options->format);
	if (options->ranks && (options->threads || options->callers ||
			       options->callees || options->histogram ||
			       !strcmp(options->format, "csv")))
		die_usage("--ranks has no --threads, --callers, --callees, "
			  "--histogram and no csv");
	recording_open(&recording, path ? path : recording_find(),
		       options->pid);
	if (shows_coverage(options, &recording))
		return report_coverage(options, &recording);
	build_all(&model, strcmp(options->format, "text") ? NULL : &samples,
		  &recording, options);
	if (!strcmp(options->format, "text"))
		choose_all(&model, options);
	choose_memory(&model, options);
	choose_locks(&model, options);
	choose_exceptions(&model, options);
	out = output_open(NULL);
	if (!strcmp(options->format, "json") && options->ranks)
		ranks_json(out, &model);
	else if (!strcmp(options->format, "json"))
		json_print(out, &model, options, false);
	else if (!strcmp(options->format, "csv"))
		csv_print(out, &model, options);
	else
		text_print(out, &model, samples.recording ? &samples : NULL,
			   options);
	if (recording.part_count > 1 && is_plain(options))
		add_ranks(out, options, path);
	return finish(&model);
}

/* Two files: gmon.out, unless another name is given, and its symbols. */
static int export_gmon(struct options *options, const char *path,
		       const char *file)
{
	struct recording recording;
	struct model model, samples = { .recording = NULL };

	if (!strcmp(file, "-"))
		die_usage("export gmon: two files cannot go to standard output");
	if (options->threads || options->value_given)
		die_usage("export gmon: has no --threads and no --value");
	read_all(&model, &samples, &recording, options, path);
	gmon_write(&model, samples.recording ? &samples : NULL, file);
	if (model.calls || model.open)
		return 0;
	warn("%s: no %s was recorded", recording.path,
	     model.is_sampled ? "sample" : "call");
	return warning_count() > 1 ? 1 : 0;
}

enum export { EXPORT_FOLDED, EXPORT_JSON, EXPORT_CSV, EXPORT_PPROF,
	      EXPORT_CALLGRIND, EXPORT_MASSIF, EXPORT_SPEEDSCOPE, EXPORT_ORDER };

static enum export find_format(const char *name)
{
	static const char *const formats[] = {
		[EXPORT_FOLDED] = "folded",
		[EXPORT_JSON] = "json",
		[EXPORT_CSV] = "csv",
		[EXPORT_PPROF] = "pprof",
		[EXPORT_CALLGRIND] = "callgrind",
		[EXPORT_MASSIF] = "massif",
		[EXPORT_SPEEDSCOPE] = "speedscope",
		[EXPORT_ORDER] = "order",
	};
	size_t i;

	for (i = 0; i < sizeof(formats) / sizeof(*formats); i++)
		if (!strcmp(name, formats[i]))
			return (enum export)i;
	die_usage("export: unknown format '%s'", name);
}

/* pprof labels what it has found with its thread. */
static void check_export(struct options *options, enum export format)
{
	if (options->object && format != EXPORT_ORDER)
		die_usage("--object is order's");
	if (format == EXPORT_ORDER && options->threads)
		die_usage("export order: has no --threads");
	if (format != EXPORT_PPROF)
		return;
	options->threads = true;
	if ((!options->output || !strcmp(options->output, "-")) &&
	    isatty(STDOUT_FILENO))
		die_usage("export pprof: that is no text for a terminal: "
			  "-o FILE, or a pipe");
}

static void check_memory_value(const struct options *options,
			       enum export format, const struct model *model)
{
	if (options->value < VALUE_BYTES)
		return;
	if (format != EXPORT_FOLDED && format != EXPORT_MASSIF &&
	    format != EXPORT_SPEEDSCOPE &&
	    (format != EXPORT_PPROF || options->value == VALUE_PEAK ||
	     options->value == VALUE_LOST))
		die_usage("--value bytes, allocations, peak, leaked and lost "
			  "are folded's and speedscope's; pprof has no peak "
			  "and lost");
	if (!model->has_memory)
		die("%s: no allocations were recorded (profrun -p memory)",
		    model->recording->path);
	if (options->value == VALUE_LOST && !model->memory_heaps_searched)
		die("%s: what was lost is not known", model->recording->path);
}

static void check_value(struct options *options, enum export format,
			const struct model *model)
{
	if (!options->value_given && !model->has_times)
		options->value = VALUE_CALLS;
	options->memory = options->memory || format == EXPORT_MASSIF;
	choose_memory(model, options);
	choose_locks(model, options);
	choose_exceptions(model, options);
	if (format == EXPORT_MASSIF && !options->value_given)
		options->value = VALUE_PEAK;
	if (format == EXPORT_MASSIF && options->value != VALUE_PEAK)
		die_usage("export massif: has no --value");
	if ((format == EXPORT_FOLDED || format == EXPORT_SPEEDSCOPE) &&
	    options->locks && !options->value_given)
		options->value = VALUE_WAITS;
	if (options->value == VALUE_WAITS && format != EXPORT_FOLDED &&
	    format != EXPORT_SPEEDSCOPE)
		die_usage("--value waits is folded's and speedscope's");
	if ((format == EXPORT_FOLDED || format == EXPORT_SPEEDSCOPE ||
	     format == EXPORT_PPROF) &&
	    options->memory && !options->value_given)
		options->value = VALUE_BYTES;
	check_memory_value(options, format, model);
	if (format == EXPORT_PPROF)
		options->memory = options->value >= VALUE_BYTES;
	if (format != EXPORT_JSON && format != EXPORT_CSV &&
	    options->value < VALUE_CALLS && !model->has_times && model->calls)
		die("%s: calls were counted, not timed: --value calls is all "
		    "there is", model->recording->path);
}

static int export(struct options *options, const char *name, const char *path)
{
	struct recording recording;
	enum export format;
	struct model model;
	FILE *out;

	if (!strcmp(name, "gmon"))
		return export_gmon(options, path,
				   options->output ? options->output :
						     "gmon.out");
	if (trace_export(name, options, path))
		return 0;
	format = find_format(name);
	check_export(options, format);
	read_all(&model, NULL, &recording, options, path);
	check_value(options, format, &model);
	out = output_open(options->output);
	switch (format) {
	case EXPORT_FOLDED:
		folded_print(out, &model, options);
		break;
	case EXPORT_JSON:
		json_print(out, &model, options, true);
		break;
	case EXPORT_CSV:
		csv_print(out, &model, options);
		break;
	case EXPORT_PPROF:
		pprof_print(out, &model, options);
		break;
	case EXPORT_CALLGRIND:
		callgrind_print(out, &model, options);
		break;
	case EXPORT_MASSIF:
		massif_print(out, &model, options);
		break;
	case EXPORT_SPEEDSCOPE:
		speedscope_print(out, &model, options);
		break;
	case EXPORT_ORDER:
		linker_order_print(out, &model, options);
		break;
	}
	return finish(&model);
}

static bool is_directory(const char *path)
{
	struct stat info;

	return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* All words are gprof's, but for a recording as the last. */
static int gprof(struct options *options, int argc, char **argv)
{
	const char *path = NULL, *file;

	if (argc > 0 && argv[argc - 1][0] != '-' &&
	    is_directory(argv[argc - 1]))
		path = argv[--argc];
	file = gmon_make_directory();
	if (export_gmon(options, path, file) != 0)
		return 1;
	return gmon_run_gprof(file, argv, argc);
}

static int merge(const struct options *options, char **files, int count)
{
	if (!options->output)
		die_usage("merge: where to? -o DIR, or FILE for gmon.out");
	if (is_directory(files[0]))
		recordings_join(options->output, files, count);
	else
		gmon_merge(options->output, files, count);
	return 0;
}

/* A -- is between the sets, which two recordings do not need. */
static int diff(struct options *options, int argc, char **argv)
{
	int middle = 1, first, second;
	char **start;

	while (middle < argc && strcmp(argv[middle], "--"))
		middle++;
	first = take_options(options, "diff", middle, argv);
	start = argv + optind;
	if (middle == argc) {
		if (first != 2)
			die_usage("diff: which two recordings?  More of them: "
				  "A1 A2... -- B1 B2...");
		diff_print(output_open(NULL), options, start, 1, start + 1, 1);
	} else {
		optind = 0;
		second = take_options(options, "diff", argc - middle,
				      argv + middle);
		if (first == 0 || second == 0)
			die_usage("diff: recordings before and after --");
		diff_print(output_open(NULL), options, start, first,
			   argv + middle + optind, second);
	}
	output_close();
	return 0;
}

/* As the recording's, wherever it is. */
static const char *page_name(const char *recording)
{
	char *whole = realpath(recording, NULL);
	const char *name = keep_format("%s.html", base_name(
					       whole ? whole : recording));

	free(whole);
	return name;
}

static void say_where(const char *path)
{
	if (!isatty(STDERR_FILENO) || !strcmp(path, "-"))
		return;
	fputs("profrun: the page is ", stderr);
	put_text(stderr, path);
	fputc('\n', stderr);
}

/* All there is: what was found by samples as well, each thread apart, and when. */
static int html(struct options *options, const char *path)
{
	struct recording recording, before;
	struct model models[4] = { { .recording = NULL } };
	struct model against = { .recording = NULL };
	struct html_contents contents = { .model_count = 0 };
	struct timeline timeline;
	FILE *out;
	int status;
	size_t i;

	if (options->against) {
		read_all(&against, NULL, &before, options, options->against);
		contents.against = &against;
	}
	recording_open(&recording, path ? path : recording_find(),
		       options->pid);
	recording.is_needed = true;
	build_all(&models[0], &models[1], &recording, options);
	recording.is_needed = false;
	choose_memory(&models[0], options);
	choose_locks(&models[0], options);
	choose_exceptions(&models[0], options);
	if (has_threads(&models[0])) {
		model_build(&models[2], &recording, options->raw, true,
			    models[0].is_sampled);
		if (models[1].recording)
			model_build(&models[3], &recording, options->raw, true,
				    true);
	}
	for (i = 0; i < 4; i++)
		if (models[i].recording)
			contents.models[contents.model_count++] = &models[i];
	if (trace_is_there(&recording) &&
	    timeline_read(&timeline, recording.path, options))
		contents.timeline = &timeline;
	if (!options->output)
		options->output = page_name(recording.path);
	out = output_open(options->output);
	html_print(out, &contents, options);
	status = finish(&models[0]);
	say_where(options->output);
	return status;
}

static int finish_histograms(const struct options *options, const char *path)
{
	struct recording recording;

	recording_open(&recording, path ? path : recording_find(), 0);
	if (histograms_finish(&recording, options->output ? options->output :
							    ".") == 0 &&
	    !options->if_any)
		die("%s: no histogram was left unwritten", recording.path);
	return 0;
}

static int replay(const struct options *options, const char *path)
{
	struct recording recording;

	if (options->to_ns && options->to_ns < options->from_ns)
		die_usage("--to: before --from");
	recording_open(&recording, path ? path : recording_find(),
		       options->pid);
	replay_print(output_open(NULL), &recording, options);
	output_close();
	return 0;
}

static int info(const struct options *options, const char *path)
{
	struct recording recording;
	struct model model;

	read_all(&model, NULL, &recording, options, path);
	info_print(output_open(NULL), &model);
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
		.max_depth = 4096,
		.max_paths = 1000000,
		.max_calls = 1000000,
	};
	const char *verb = argc > 1 ? argv[1] : "";
	int left;

	check_verb(verb);
	signal(SIGXFSZ, SIG_IGN);	/* it is an error, and said */
	/* The verb stands where getopt expects the program's name. */
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
	} else if (!strcmp(verb, "export")) {
		left = take_options(&options, verb, argc, argv);
		if (left == 0)
			die_usage("export: which format? folded, speedscope, "
				  "json, csv, pprof, callgrind, massif, gmon, "
				  "chrome, perfetto, ctf, lcov, "
				  "cobertura, order");
		if (!strcmp(argv[optind], "lcov") ||
		    !strcmp(argv[optind], "cobertura"))
			return export_coverage(&options, argv[optind],
					       argv + optind + 1, left - 1);
		if (left <= 2)
			return export(&options, argv[optind],
				      argv[optind + 1]);
	} else if (!strcmp(verb, "merge")) {
		left = take_options(&options, verb, argc, argv);
		if (left == 0)
			die_usage("merge: which files?");
		return merge(&options, argv + optind, left);
	} else if (!strcmp(verb, "finish")) {
		left = take_options(&options, verb, argc, argv);
		if (left <= 1)
			return finish_histograms(&options, argv[optind]);
	} else if (!strcmp(verb, "html")) {
		left = take_options(&options, verb, argc, argv);
		if (left <= 1)
			return html(&options, argv[optind]);
	} else if (!strcmp(verb, "replay")) {
		options.depth = UINT32_MAX;
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
