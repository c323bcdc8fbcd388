/*
 * Options.  All errors of a user are found here, before anything runs: a typing error
 * must not show up after an hour.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/nearest.h"
#include "profiles.h"
#include "recording.h"
#include "say.h"
#include "settings.h"
#include "tick.h"

bool settings_is_number(const char *value)
{
	size_t digits = strspn(value, "0123456789");

	return digits > 0 && digits <= 9 && value[digits] == '\0';
}

void settings_usage_error(const struct settings *settings)
{
	fprintf(stderr, "Try 'profrun %s --help'.\n",
		settings->is_record ? "record" :
		settings->is_stat   ? "stat" :
				      "run");
	exit(STATUS_USAGE);
}

/* Lines of the help, as they are printed. */
static const char common_help[] =
	"  -p, --profile NAME[:ARGS]  what to record; may be repeated:\n"
	"                             calltree         calls and times (default)\n"
	"                             calltree:exact   every call timed\n"
	"                             calltree:calibrate  the same, with the cost of\n"
	"                                              that measured where it arises\n"
	"                             calltree:counts  calls only\n"
	"                             calltree:clock=cpu  times without waiting\n"
	"                             calltree:by=FUNCTION/ARGUMENT  calls of that\n"
	"                                              function grouped by a parameter,\n"
	"                                              its name or number; at most\n"
	"                                              by-limit=N groups (256);\n"
	"                                              with commas: exact,by=f/x,by=g/2\n"
	"                             calltree:budget=N  as --budget\n"
	"                             sampling[:hz=N,clock=cpu|wall|thread,\n"
	"                                      unwinder=own|libunwind|both]\n"
	"                                              stacks, N times a second (1000)\n"
	"                             trace            every call with its time, for\n"
	"                                              replay; trace:ring=64M keeps the\n"
	"                                              last of each thread, min=10us\n"
	"                                              leaves out shorter calls, depth=N\n"
	"                                              deeper ones, every=f/N all but\n"
	"                                              each N-th, trigger=f what is not\n"
	"                                              called by f; args=f, results=f\n"
	"                                              what f gets, returns; off: until\n"
	"                                              shim_trace_start(); signal=USR1:\n"
	"                                              that one turns it off or on\n"
	"                             memory[:period=SIZE,seed=N,leaks=MS,\n"
	"                             snapshots=MS,unwind]\n"
	"                                              what each call path allocates;\n"
	"                                              period: bytes for each sample \n"
	"                             locks[:unwind]   who waits for which lock\n"
	"                             coverage         lines and functions reached (-g);\n"
	"                                              coverage:label=NAME of a test\n"
	"                             exceptions[:unwind]\n"
	"                                              types, throwers and catchers;\n"
	"                                              unwind, of these three: also\n"
	"                                              where no function is instrumented\n"
	"                             pchist[:hz=N]    a histogram for gprof: gmon.out,\n"
	"                                              see profrun help profilers\n"
	"                             none             nothing\n"
	"                             NAME             libshim-profiler-NAME.so,\n"
	"                                              which gets NAME:ARGS; or a path\n"
	"      --budget PERCENT       keep calltree's cost below PERCENT of the\n"
	"                             processor time: times come from samples, and\n"
	"                             calls of the functions that cost most are\n"
	"                             estimated; 1 to 99\n"
	"  -o, --output DIR           where to; %p is the process, %h the host, %r the\n"
	"                             rank, %n the program; never overwritten\n"
	"                             (default " RECORDING_PATTERN ")\n"
	"  -F, --filter LIST          which functions; the last item that fits decides:\n"
	"                             all, none, program, libfoo.so, N:namespace,\n"
	"                             T:class, M:function, F:file.c, -item: not these;\n"
	"                             @FILE: with such items, one or more a line\n"
	"      --patch LIST           record functions that no compiler has marked, as\n"
	"                             '*' or 'parse*,N:db': FUNCTION, libfoo.so and\n"
	"                             the items of --filter (x86-64)\n"
	"      --libcalls[=LIST]      record the program's calls of libraries' functions,\n"
	"                             malloc, read, ..., too; as 'MPI_*,-MPI_Wtime' or\n"
	"                             'program,libfoo.so': FUNCTION, or whose calls;\n"
	"                             the items of --patch (x86-64)\n"
	"      --control              let `profrun ctl` in while it runs\n"
	"  -q, --quiet                print errors only\n"
	"  -v, --verbose              print each step\n"
	"  -h, --help                 this text\n";

static const char report_help[] =
	"      --gaps                 note when threads have no processor, for what\n"
	"                             shows a trace\n"
	"      --counters[=MS]        note the program's memory, processor time and\n"
	"                             page faults each second, for what shows a\n"
	"                             trace; or every MS milliseconds\n"
	"      --tick HZ              how often calltree's coarse clock ticks (2000);\n"
	"                             0: the kernel's own tick, 100 to 1000 a second\n"
	"      --live                 show the screen of profrun top while it runs; its\n"
	"                             output comes afterwards; q leaves\n"
	"      --node-files           ranks of a job: put those of each host into one\n"
	"                             file when the last one has ended\n"
	"      --no-report            run only\n"
	"      --sort COLUMN          report: by self, total, calls, mean or max\n"
	"      --limit N              report: the first N lines\n"
	"      --tree                 report: who called whom\n"
	"      --threads              report: each thread by itself\n";

static const char stat_help[] =
	"      --json                 print it as JSON\n";

static const char status_help[] =
	"The exit status is PROGRAM's; 127 if it is not found, 126 if it cannot be\n"
	"executed, 125 if profrun itself failed, 2 if it was called wrongly.\n";

static void help(const struct settings *settings)
{
	if (settings->is_record)
		printf("Usage: profrun record [OPTIONS] [--] PROGRAM [ARG...]\n"
		       "       profrun record --pid PID [--for TIME] [OPTIONS]\n\n"
		       "Runs PROGRAM and records where its time goes; --pid: see"
		       " `profrun attach --help`.\n\n%s\n%s",
		       common_help, status_help);
	else if (settings->is_stat)
		printf("Usage: profrun stat [OPTIONS] [--] PROGRAM [ARG...]\n"
		       "       profrun stat DIR [--json]\n\n"
		       "Runs PROGRAM and prints one paragraph on stderr: time, calls,"
		       " memory, waits,\nour own cost.  Keeps the recording with -o"
		       " only.  DIR is a recording.\n\n%s%s\n%s",
		       common_help, stat_help, status_help);
	else
		printf("Usage: profrun [run] [OPTIONS] [--] PROGRAM [ARG...]\n\n"
		       "Runs PROGRAM, records where its time goes, and reports it"
		       " on stderr when it ends.\n\n%s%s\n%s",
		       common_help, report_help, status_help);
	exit(say_end(0) == 0 ? 0 : STATUS_FAILED);
}

/* Appends a repeated option to its list; false if the list gets too long. */
static bool append(char *list, size_t size, char separator, const char *item)
{
	size_t n = strlen(list);

	if (n + strlen(item) + 2 > size)
		return false;
	if (n > 0)
		list[n++] = separator;
	strcpy(list + n, item);
	return true;
}

/* --- profilers ----------------------------------------------------------- */

static void add_profile(struct settings *settings, const char *text)
{
	profiles_check(settings, text, "--profile");
	if (!append(settings->profile, sizeof(settings->profile), ';', text)) {
		say("--profile: too many profilers");
		settings_usage_error(settings);
	}
}

/* --- the filter --------------------------------------------------------- */

/* Lists of repeated options are joined. */
static void add_filter(struct settings *settings, struct filter *filter,
		       const char *text, const char *where)
{
	if (filter_add(filter, text))
		return;
	say("%s: %s", where, filter->error);
	settings_usage_error(settings);
}

/* --- options for the report --------------------------------------------- */

static void add_report_option(struct settings *settings, const char *name,
			      const char *value)
{
	int n = 0;

	while (settings->report_option[n] != NULL)
		n++;
	if (n + 2 > REPORT_OPTIONS_MAX) {
		say("too many options");
		settings_usage_error(settings);
	}
	settings->report_option[n++] = name;
	if (value != NULL)
		settings->report_option[n++] = value;
	settings->report_option[n] = NULL;
}

static void add_sort(struct settings *settings, const char *column)
{
	static const char *const columns[] = { "self", "total", "calls", "mean",
					       "max" };

	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
		if (strcmp(column, columns[i]) == 0) {
			add_report_option(settings, "--sort", column);
			return;
		}
	}
	say("--sort: '%s' is not one of self, total, calls, mean, max", column);
	settings_usage_error(settings);
}

static void add_limit(struct settings *settings, const char *number)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(number, &end, 10);
	if (!isdigit((unsigned char)*number) || *end != '\0' || errno != 0 ||
	    value > INT_MAX) {
		say("--limit: '%s' is not a number", number);
		settings_usage_error(settings);
	}
	add_report_option(settings, "--limit", number);
}

/* --- variables ---------------------------------------------------------- */

/* The library complains about unknown names: it reads the variables also without
 * profrun. */

static bool is_set(const char *name)
{
	const char *value = getenv(name);

	return value != NULL && *value != '\0' && strcmp(value, "0") != 0;
}

static void read_tick(struct settings *settings, const char *text,
		      const char *where)
{
	settings->tick_hz = (unsigned)atoi(text);
	settings->is_tick_given = true;
	if (settings_is_number(text) &&
	    (settings->tick_hz == 0 || (settings->tick_hz >= TICK_HZ_MIN &&
					settings->tick_hz <= TICK_HZ_MAX)))
		return;
	say("%s: '%s' is no number of ticks a second, %d to %d, or 0 for the"
	    " kernel's own",
	    where, text, TICK_HZ_MIN, TICK_HZ_MAX);
	settings_usage_error(settings);
}

static void read_variables(struct settings *settings)
{
	const char *value = getenv("SHIM_OUTPUT");

	const char *tick = getenv("SHIM_TICK");

	settings->tick_hz = TICK_HZ;
	if (tick != NULL && *tick != '\0')
		read_tick(settings, tick, "SHIM_TICK");
	settings->output = RECORDING_PATTERN;
	if (value != NULL && *value != '\0') {
		settings->output = value;
		settings->is_output_given = true;
	}
	settings->is_disabled = is_set("SHIM_DISABLE");
	settings->is_quiet = is_set("SHIM_QUIET");
	settings->is_verbose = is_set("SHIM_VERBOSE");
	settings->wants_report = !settings->is_record &&
				 !is_set("SHIM_NO_REPORT");
	settings->has_node_files = is_set("SHIM_NODE_FILES");
}

/* --- all of it ---------------------------------------------------------- */

enum {
	OPT_CONTROL = 256,
	OPT_BUDGET,
	OPT_PATCH,
	OPT_LIBCALLS,
	OPT_GAPS,
	OPT_COUNTERS,
	OPT_TICK,
	OPT_LIVE,
	OPT_NODE_FILES,
	OPT_NO_REPORT,
	OPT_SORT,
	OPT_LIMIT,
	OPT_TREE,
	OPT_THREADS,
	OPT_JSON
};

#define COMMON_OPTIONS \
	{ "profile", required_argument, NULL, 'p' }, \
		{ "output", required_argument, NULL, 'o' }, \
		{ "filter", required_argument, NULL, 'F' }, \
		{ "control", no_argument, NULL, OPT_CONTROL }, \
		{ "budget", required_argument, NULL, OPT_BUDGET }, \
		{ "patch", required_argument, NULL, OPT_PATCH }, \
		{ "libcalls", optional_argument, NULL, OPT_LIBCALLS }, \
		{ "quiet", no_argument, NULL, 'q' }, \
		{ "verbose", no_argument, NULL, 'v' }, \
	{ \
		"help", no_argument, NULL, 'h' \
	}

static const struct option record_options[] = { COMMON_OPTIONS, { 0 } };

static const struct option stat_options[] = {
	COMMON_OPTIONS,
	{ "json", no_argument, NULL, OPT_JSON },
	{ 0 },
};

static const struct option run_options[] = {
	COMMON_OPTIONS,
	{ "gaps", no_argument, NULL, OPT_GAPS },
	{ "counters", optional_argument, NULL, OPT_COUNTERS },
	{ "tick", required_argument, NULL, OPT_TICK },
	{ "live", no_argument, NULL, OPT_LIVE },
	{ "node-files", no_argument, NULL, OPT_NODE_FILES },
	{ "no-report", no_argument, NULL, OPT_NO_REPORT },
	{ "sort", required_argument, NULL, OPT_SORT },
	{ "limit", required_argument, NULL, OPT_LIMIT },
	{ "tree", no_argument, NULL, OPT_TREE },
	{ "threads", no_argument, NULL, OPT_THREADS },
	{ 0 },
};

static void read_period(struct settings *settings, const char *text)
{
	settings->counters_ms = text == NULL ? 1000 : (unsigned)atoi(text);
	if (text == NULL || (settings_is_number(text) && strlen(text) <= 6 &&
			     settings->counters_ms > 0))
		return;
	say("--counters: '%s' is no time in milliseconds, from 1 to 999999",
	    text);
	settings_usage_error(settings);
}

static void read_option(struct settings *settings, int option)
{
	switch (option) {
	case 'p': add_profile(settings, optarg); break;
	case 'o':
		settings->output = optarg;
		settings->is_output_given = true;
		break;
	case 'F':
		add_filter(settings, &settings->filter, optarg, "--filter");
		break;
	case OPT_PATCH:
		add_filter(settings, &settings->patch, optarg, "--patch");
		break;
	case OPT_LIBCALLS:
		add_filter(settings, &settings->libcalls,
			   optarg != NULL ? optarg : "program", "--libcalls");
		break;
	case OPT_BUDGET:
		profiles_check_budget(settings, optarg, "--budget");
		settings->budget = optarg;
		break;
	case OPT_CONTROL: settings->has_control = true; break;
	case 'q': settings->is_quiet = true; break;
	case 'v': settings->is_verbose = true; break;
	case OPT_COUNTERS: read_period(settings, optarg); break;
	case OPT_TICK: read_tick(settings, optarg, "--tick"); break;
	case OPT_GAPS: settings->has_gaps = true; break;
	case OPT_LIVE: settings->is_live = true; break;
	case OPT_NODE_FILES: settings->has_node_files = true; break;
	case OPT_NO_REPORT: settings->wants_report = false; break;
	case OPT_SORT: add_sort(settings, optarg); break;
	case OPT_LIMIT: add_limit(settings, optarg); break;
	case OPT_TREE: add_report_option(settings, "--tree", NULL); break;
	case OPT_JSON: add_report_option(settings, "--json", NULL); break;
	case OPT_THREADS: add_report_option(settings, "--threads", NULL); break;
	case 'h': help(settings); break;
	default: break;
	}
}

/* @option is getopt's: ':' for a missing argument. */
static void bad_option(const struct settings *settings, int option,
		       const char *word, const struct option *options)
{
	const char *meant = nearest_option(word, options);

	if (option == ':')
		say("%s: needs an argument", word);
	else if (optopt != 0 && strncmp(word, "--", 2) == 0)
		say("%s: takes no argument", word);
	else if (optopt != 0)
		say("unknown option '-%c'", optopt);
	else if (meant != NULL)
		say("unknown option '%s'; did you mean '--%s'?", word, meant);
	else
		say("unknown option '%s'", word);
	settings_usage_error(settings);
}

static void no_program(const struct settings *settings)
{
	const char *last = strrchr(settings->profile, ';');

	last = last != NULL ? last + 1 : settings->profile;
	if (strchr(last, '/') != NULL)
		say("which program?  '%s' was taken for a profiler, -p NAME",
		    last);
	else
		say("which program?");
	settings_usage_error(settings);
}

void settings_read(struct settings *settings, int words, char **word)
{
	const struct option *options;
	const char *error, *profile, *filter, *patch, *calls, *budget;
	int option;

	settings->patch.option = "patch";
	settings->libcalls.option = "libcalls";

	settings->is_record = strcmp(word[0], "record") == 0;
	settings->is_stat = strcmp(word[0], "stat") == 0;
	options = settings->is_record ? record_options :
		  settings->is_stat   ? stat_options :
					run_options;
	read_variables(settings);
	opterr = 0;
	while ((option = getopt_long(words, word, "+:p:o:F:qvh", options,
				     NULL)) != -1)
		if (option == '?' || option == ':')
			bad_option(settings, option, word[optind - 1], options);
		else
			read_option(settings, option);
	if (optind >= words)
		no_program(settings);
	settings->command = word + optind;
	error = recording_pattern_error(settings->output);
	if (error != NULL) {
		say("--output: '%s' %s", settings->output, error);
		settings_usage_error(settings);
	}
	filter = getenv("SHIM_FILTER");
	if (settings->filter.list == NULL && filter != NULL)
		add_filter(settings, &settings->filter, filter, "SHIM_FILTER");
	patch = getenv("SHIM_PATCH");
	if (settings->patch.list == NULL && patch != NULL && *patch != '\0')
		add_filter(settings, &settings->patch, patch, "SHIM_PATCH");
	calls = getenv("SHIM_LIBCALLS");
	if (settings->libcalls.list == NULL && calls != NULL && *calls != '\0')
		add_filter(settings, &settings->libcalls, calls,
			   "SHIM_LIBCALLS");
	budget = getenv("SHIM_BUDGET");
	if (settings->budget == NULL && budget != NULL && *budget != '\0')
		profiles_check_budget(settings, budget, "SHIM_BUDGET");
	profile = getenv("SHIM_PROFILE");
	if (settings->profile[0] == '\0' && profile != NULL && *profile != '\0')
		profiles_check(settings, profile, "SHIM_PROFILE");
}
