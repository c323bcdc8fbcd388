/*
 * Parses the words after a verb into struct options. options.def lists the
 * options of each verb, for the parser and for --help.
 */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/messages.h"
#include "base/numbers.h"
#include "base/output.h"
#include "command/command_line.h"
#include "common/nearest.h"
#include "export/formats.h"
#include "model/options.h"
#include "names/object_file.h"

#define HELP_COLUMN 23 /* column of an option's description */

/* Verbs, and sets of verbs. */
enum {
	REPORT = 1 << 0,
	EXPORT = 1 << 1,
	HTML = 1 << 2,
	REPLAY = 1 << 3,
	DIFF = 1 << 4,
	MERGE = 1 << 5,
	INFO = 1 << 6,
	GPROF = 1 << 7,
	FINISH = 1 << 8,
	ANNOTATE = 1 << 9,
	STAT = 1 << 10,
	TUI = 1 << 11,
	TOP = 1 << 12,
	REDUCE = 1 << 13,
	HISTORY = 1 << 14,
	ALL = (1 << 15) - 1,
	TIMERS = REPORT | EXPORT | HTML | DIFF | TUI,
	SELECTORS = TIMERS | REPLAY,
	NAMERS = SELECTORS | ANNOTATE,
	READERS = NAMERS | INFO,
	WINDOWS = EXPORT | REPLAY,
};

#define NEWEST \
	"\nDIR is a recording; without it, the newest in the working directory.\n"

static const struct verb {
	const char *name;
	int bit;
	const char *usage;
} verbs[] = {
	{ "stat", STAT,
	  "Usage: profrun stat DIR [OPTIONS]\n\n"
	  "Prints one paragraph about a recording.\n" },
	{ "report", REPORT,
	  "Usage: profrun report [DIR] [OPTIONS]\n\n"
	  "Prints where the time went.\n" NEWEST },
	{ "export", EXPORT,
	  "Usage: profrun export FORMAT [DIR] [OPTIONS]\n\n"
	  "Prints a recording for other tools.  lcov and cobertura take many DIRs.\n" NEWEST },
	{ "html", HTML,
	  "Usage: profrun html [DIR] [OPTIONS]\n\n"
	  "Makes a page to look at, for any browser.\n" NEWEST },
	{ "replay", REPLAY,
	  "Usage: profrun replay [DIR] [OPTIONS]\n\n"
	  "Prints the calls of a trace, in time.\n" NEWEST },
	{ "annotate", ANNOTATE,
	  "Usage: profrun annotate [FUNCTION [DIR]] [OPTIONS]\n\n"
	  "Prints the source of functions with the samples of each line.  FUNCTION is a name or\n"
	  "a regular expression; without it, the function with the most self time.\n" NEWEST },
	{ "tui", TUI,
	  "Usage: profrun tui [DIR] [OPTIONS]\n\n"
	  "Shows a recording on the terminal: functions, the call tree, callers, source.\n"
	  "The key ? lists the keys.\n" NEWEST },
	{ "top", TOP,
	  "Usage: profrun top PID [OPTIONS]\n\n"
	  "Shows once a second what the functions of a process do that shim records.\n"
	  "The key ? lists the keys; profrun ctl lists such processes.\n" },
	{ "diff", DIFF,
	  "Usage: profrun diff A B [OPTIONS]\n"
	  "       profrun diff A1 A2... -- B1 B2... [OPTIONS]\n\n"
	  "Tells what got slower; with several runs of each, what of it is noise.\n" },
	{ "history", HISTORY,
	  "Usage: profrun history add DIR... [OPTIONS]\n"
	  "       profrun history [FUNCTION] [OPTIONS]\n\n"
	  "Keeps the times of a program's versions in a database, and tells when they changed.\n" },
	{ "merge", MERGE,
	  "Usage: profrun merge -o DIR DIR...\n"
	  "       profrun merge -o FILE GMON.OUT...\n\n"
	  "Makes one recording of several, or one gmon.out.\n" },
	{ "reduce", REDUCE,
	  "Usage: profrun reduce [DIR] [OPTIONS]\n\n"
	  "Adds up the ranks of a large job once, in parallel, for all later reports.\n" NEWEST },
	{ "info", INFO,
	  "Usage: profrun info [DIR] [OPTIONS]\n\n"
	  "Prints what was recorded, how, and what was lost.\n" NEWEST },
	{ "gprof", GPROF,
	  "Usage: profrun gprof [GPROF OPTIONS] [DIR]\n\n"
	  "Runs gprof on a recording; `gprof --help` lists its options.  To run it by\n"
	  "hand: profrun export gmon, which prints how gprof has the right names.\n" NEWEST },
	{ "finish", FINISH,
	  "Usage: profrun finish [DIR] [OPTIONS]\n\n"
	  "Writes the gmon.out that killed programs could not.\n" NEWEST },
};
#define VERBS (sizeof(verbs) / sizeof(*verbs))

/* Numbers of long options; letters are smaller. */
enum {
	OPTION_SORT = 256,
	OPTION_ASM,
	OPTION_CONTEXT,
	OPTION_JSON,
	OPTION_SOURCE,
	OPTION_SOURCE_DIR,
	OPTION_LIMIT,
	OPTION_LINES,
	OPTION_TREE,
	OPTION_MIN_PERCENT,
	OPTION_DEPTH,
	OPTION_DEPTH_SHOWN,
	OPTION_CALLERS,
	OPTION_CALLEES,
	OPTION_HISTOGRAM,
	OPTION_THREADS,
	OPTION_PROCESS,
	OPTION_FORMAT,
	OPTION_COLOR,
	OPTION_HIDE,
	OPTION_ONLY,
	OPTION_FOCUS,
	OPTION_MERGE_RECURSION,
	OPTION_NAMES,
	OPTION_MANGLED,
	OPTION_RAW,
	OPTION_SUMS,
	OPTION_SYMFS,
	OPTION_DEBUGINFOD,
	OPTION_VALUE,
	OPTION_MAX_DEPTH,
	OPTION_SAMPLES,
	OPTION_TRACE,
	OPTION_MEMORY,
	OPTION_LOCKS,
	OPTION_EXCEPTIONS,
	OPTION_COVERAGE,
	OPTION_RANKS,
	OPTION_MESSAGES,
	OPTION_AGAINST,
	OPTION_MAX_PATHS,
	OPTION_MAX_CALLS,
	OPTION_FROM,
	OPTION_TO,
	OPTION_THREAD,
	OPTION_FUNCTION,
	OPTION_MIN_DURATION,
	OPTION_OBJECT,
	OPTION_IF_ANY,
	OPTION_HOST,
	OPTION_NODE_FILES,
	OPTION_EMBED,
	OPTION_FAIL_ABOVE,
	OPTION_AS,
	OPTION_DB,
	OPTION_DELAY = 'd',
	OPTION_HELP = 'h',
	OPTION_OUTPUT = 'o',
};

static const struct {
	int verbs, code;
	const char *name, *argument, *help;
} rows[] = {
#define OPTION(verbs, code, name, argument, help) \
	{ verbs, OPTION_##code, name, argument, help },
#include "command/options.def"
#undef OPTION
};
#define ROWS (sizeof(rows) / sizeof(*rows))

static const struct verb *find_verb(const char *name)
{
	size_t i;

	for (i = 0; i < VERBS; i++)
		if (!strcmp(verbs[i].name, name))
			return &verbs[i];
	die_usage(*name ? "unknown verb '%s'" : "what shall I do?", name);
}

void check_verb(const char *name)
{
	usage_verb(find_verb(name)->name);
}

/* Prints "  -o, --output FILE    what it does", and each further line of the
 * description below it. */
static void print_option(size_t row)
{
	const char *line = rows[row].help, *end;
	int used;

	used = rows[row].code < 256 ? printf("  -%c,", rows[row].code) :
				      printf(" ");
	used += printf(" --%s%s%s", rows[row].name,
		       rows[row].argument ? " " : "",
		       rows[row].argument ? rows[row].argument : "");
	for (;; line = end + 1, used = 0) {
		end = line + strcspn(line, "\n");
		printf("%*s%.*s\n", used < HELP_COLUMN ? HELP_COLUMN - used : 2,
		       "", (int)(end - line), line);
		if (!*end)
			break;
	}
}

_Noreturn void print_help(const char *name)
{
	const struct verb *verb = find_verb(name);
	size_t i;

	output_open(NULL);
	printf("%s\n", verb->usage);
	if (verb->bit == EXPORT) {
		puts("FORMAT is one of:");
		export_format_help();
		putchar('\n');
	}
	for (i = 0; i < ROWS; i++)
		if (rows[i].verbs & verb->bit)
			print_option(i);
	output_close();
	exit(0);
}

/* The index of @text in @words. */
static int choose(const char *option, const char *text,
		  const char *const *words)
{
	const char *meant, *all;
	int i;

	for (i = 0; words[i]; i++)
		if (!strcmp(text, words[i]))
			return i;
	meant = nearest_to(text, words);
	if (meant)
		die_usage("--%s: unknown value '%s'; did you mean %s?", option,
			  text, meant);
	for (all = "", i = 0; words[i]; i++)
		all = keep_format("%s%s%s", all, i ? ", " : "", words[i]);
	die_usage("--%s: unknown value '%s'; there are %s", option, text, all);
}

static long parse_number(const char *option, const char *text, long least,
			 long most)
{
	char *end;
	long value;

	errno = 0;
	value = strtol(text, &end, 10);
	if (errno || end == text || *end || value < least || value > most)
		die_usage("--%s: '%s' is not a number from %ld to %ld", option,
			  text, least, most);
	return value;
}

static double parse_percent(const char *option, const char *text, double most)
{
	char *end;
	double value = strtod(text, &end);

	if (end != text && *end == '%')
		end++;
	if (end == text || *end || !(value >= 0 && value <= most))
		die_usage("--%s: '%s' is not a percentage, from 0 to %.0f",
			  option, text, most);
	return value;
}

static double parse_time(const char *option, const char *text)
{
	double ns;

	if (!read_time(text, &ns))
		die_usage("--%s: '%s' is not a time: 1.5s, 20ms, 300us, 7ns",
			  option, text);
	return ns;
}

/* Seconds, as for top, or a time with its unit. */
static double parse_delay(const char *text)
{
	char *end;
	double ns, seconds = strtod(text, &end);

	if (end == text || *end)
		seconds = read_time(text, &ns) ? ns / 1e9 : -1;
	if (!(seconds >= 0.1 && seconds <= 60))
		die_usage("--delay: '%s' is not from 0.1 to 60 seconds", text);
	return seconds;
}

static void add_pattern(struct patterns *patterns, const char *option,
			const char *text)
{
	if (patterns->count == PATTERNS_MAX)
		die_usage("--%s: more than %d of them", option, PATTERNS_MAX);
	patterns->text[patterns->count++] = text;
}

static void add_place(struct source_places *places, const char *text)
{
	if (places->count == SOURCE_PLACES_MAX)
		die_usage("--source-dir: more than %d of them",
			  SOURCE_PLACES_MAX);
	places->text[places->count++] = text;
}

/* OPTION_DEPTH of a report is another. */
static bool is_of_window(int option)
{
	return option == OPTION_FROM || option == OPTION_TO ||
	       option == OPTION_THREAD || option == OPTION_FUNCTION ||
	       option == OPTION_MIN_DURATION || option == OPTION_DEPTH_SHOWN;
}

static void take_option(struct options *options, int option, const char *text)
{
	static const char *const sorts[] = { "self",	    "total", "calls",
					     "mean",	    "max",   "bytes",
					     "allocations", "peak",  "leaked",
					     "temporary",   "lost",  NULL };
	static const char *const values[] = {
		"self", "total",  "calls", "waits",   "bytes", "allocations",
		"peak", "leaked", "lost",  "samples", NULL
	};
	static const char *const names[] = { "full", "short", "mangled", NULL };
	static const char *const formats[] = { "text",	 "json",  "csv",
					       "github", "junit", NULL };
	static const char *const colors[] = { "auto", "always", "never", NULL };

	options->has_window |= is_of_window(option);
	switch (option) {
	case OPTION_SORT:
		options->sort = (enum sort)choose("sort", text, sorts);
		options->sort_given = true;
		break;
	case OPTION_LIMIT:
		options->limit = parse_number("limit", text, 0, INT32_MAX);
		break;
	case OPTION_TREE: options->tree = true; break;
	case OPTION_ASM: options->code = true; break;
	case OPTION_CONTEXT:
		options->context = (int)parse_number("context", text, 0,
						     1000000);
		break;
	case OPTION_JSON: options->format = "json"; break;
	case OPTION_SOURCE_DIR: add_place(&options->places, text); break;
	case OPTION_MIN_PERCENT:
		options->min_percent = parse_percent("min-percent", text, 100);
		break;
	case OPTION_DEPTH:
	case OPTION_DEPTH_SHOWN:
		options->depth = (uint32_t)parse_number("depth", text, 1,
							INT32_MAX);
		break;
	case OPTION_CALLERS: options->callers = text; break;
	case OPTION_CALLEES: options->callees = text; break;
	case OPTION_HISTOGRAM: options->histogram = text; break;
	case OPTION_THREADS: options->threads = true; break;
	case OPTION_RANKS: options->ranks = true; break;
	case OPTION_MESSAGES: options->messages = true; break;
	case OPTION_PROCESS:
		options->pid = (uint32_t)parse_number("process", text, 1,
						      INT32_MAX);
		break;
	case OPTION_FORMAT:
		options->format = formats[choose("format", text, formats)];
		break;
	case OPTION_COLOR:
		options->color = colors[choose("color", text, colors)];
		break;
	case OPTION_HIDE:
		add_pattern(&options->selection.hide, "hide", text);
		break;
	case OPTION_ONLY:
		add_pattern(&options->selection.only, "only", text);
		break;
	case OPTION_FOCUS: options->selection.focus = text; break;
	case OPTION_MERGE_RECURSION:
		options->selection.merges_recursion = true;
		break;
	case OPTION_NAMES:
		options->names = NAMES_FULL +
				 (enum name_form)choose("names", text, names);
		break;
	case OPTION_MANGLED: options->names = NAMES_MANGLED; break;
	case OPTION_RAW: options->raw = true; break;
	case OPTION_SUMS: options->sums = true; break;
	case OPTION_HOST: options->host = text; break;
	case OPTION_NODE_FILES: options->node_files = true; break;
	case OPTION_SAMPLES: options->samples = true; break;
	case OPTION_TRACE: options->trace = true; break;
	case OPTION_COVERAGE: options->coverage = true; break;
	case OPTION_MEMORY: options->memory = true; break;
	case OPTION_LOCKS: options->locks = true; break;
	case OPTION_EXCEPTIONS: options->exceptions = true; break;
	case OPTION_SYMFS:
		if (!object_file_look_below(text))
			die_usage("--symfs: %s: %s", text, strerror(errno));
		break;
	case OPTION_DEBUGINFOD: object_file_allow_network(); break;
	case OPTION_VALUE:
		options->value = (enum value)choose("value", text, values);
		if (options->value > VALUE_LOST) {
			options->value = VALUE_CALLS;
			options->samples = true;
		}
		options->value_given = true;
		break;
	case OPTION_MAX_DEPTH:
		options->max_depth = (uint32_t)parse_number("max-depth", text,
							    1, 1000000);
		break;
	case OPTION_OUTPUT: options->output = text; break;
	case OPTION_DELAY: options->delay = parse_delay(text); break;
	case OPTION_MAX_PATHS:
		options->max_paths = (uint32_t)parse_number("max-paths", text,
							    1, 100000000);
		break;
	case OPTION_MAX_CALLS:
		options->max_calls = (uint32_t)parse_number("max-calls", text,
							    1, 100000000);
		break;
	case OPTION_AGAINST: options->against = text; break;
	case OPTION_AS: options->version = text; break;
	case OPTION_DB: options->database = text; break;
	case OPTION_OBJECT: options->object = text; break;
	case OPTION_FAIL_ABOVE:
		options->fail_above = parse_percent("fail-above", text, 1e6);
		options->has_fail_above = true;
		break;
	case OPTION_SOURCE: options->source = true; break;
	case OPTION_EMBED: options->embed = true; break;
	case OPTION_LINES: options->lines = true; break;
	case OPTION_IF_ANY: options->if_any = true; break;
	case OPTION_FROM: options->from_ns = parse_time("from", text); break;
	case OPTION_TO: options->to_ns = parse_time("to", text); break;
	case OPTION_MIN_DURATION:
		options->min_duration_ns = parse_time("min-duration", text);
		break;
	case OPTION_THREAD: options->thread = text; break;
	case OPTION_FUNCTION: options->function = text; break;
	default: break;
	}
}

/* Fills the tables of getopt with the options of one verb. */
static void fill_getopt_tables(const struct verb *verb,
			       struct option long_options[ROWS + 1],
			       char letters[8])
{
	size_t i;

	*letters++ = ':';
	for (i = 0; i < ROWS; i++) {
		if (!(rows[i].verbs & verb->bit))
			continue;
		*long_options++ = (struct option){
			.name = rows[i].name,
			.has_arg = rows[i].argument ? required_argument :
						      no_argument,
			.val = rows[i].code,
		};
		if (rows[i].code >= 256)
			continue;
		*letters++ = (char)rows[i].code;
		if (rows[i].argument)
			*letters++ = ':';
	}
	*letters = '\0';
	*long_options = (struct option){ .name = NULL };
}

static _Noreturn void die_unknown_option(const char *word,
					 const struct option *long_options)
{
	const char *meant = nearest_option(word, long_options);

	if (optopt && !strncmp(word, "--", 2))
		die_usage("%s: takes no argument", word);
	if (optopt)
		die_usage("unknown option '-%c'", optopt);
	if (meant)
		die_usage("unknown option '%s'; did you mean '--%s'?", word,
			  meant);
	die_usage("unknown option '%s'", word);
}

int take_options(struct options *options, const char *verb, int argc,
		 char **argv)
{
	struct option long_options[ROWS + 1];
	char letters[8];
	int option;

	fill_getopt_tables(find_verb(verb), long_options, letters);
	opterr = 0;
	while ((option = getopt_long(argc, argv, letters, long_options,
				     NULL)) != -1) {
		if (option == '?')
			die_unknown_option(argv[optind - 1], long_options);
		if (option == ':')
			die_usage("%s: needs an argument", argv[optind - 1]);
		if (option == OPTION_HELP)
			print_help(verb);
		take_option(options, option, optarg);
	}
	return argc - optind;
}
