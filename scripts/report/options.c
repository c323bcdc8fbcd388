/*
 * The words behind a verb become struct options; which of them a verb has is in
 * a table of its own.
 */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "symbols.h"

static const char help[] =
"usage: profrun report [DIR] [OPTIONS]\n"
"       profrun export folded|speedscope|json|csv|pprof|callgrind|massif\n"
"                      [DIR] [OPTIONS]\n"
"       profrun export chrome|perfetto|ctf [DIR] [OPTIONS]   of a trace\n"
"       profrun export lcov|cobertura [DIR...]   of all of them together\n"
"       profrun export gmon [DIR] [OPTIONS]      gmon.out and gmon.out.syms\n"
"       profrun html [DIR] [-o FILE]             a page to look at\n"
"       profrun replay [DIR] [OPTIONS]           the calls of a trace, in time\n"
"       profrun gprof [GPROF OPTIONS] [DIR]\n"
"       profrun merge -o DIR DIR...              one recording of several\n"
"       profrun merge -o FILE GMON.OUT...        and one gmon.out\n"
"       profrun diff A B [OPTIONS]               what got slower\n"
"       profrun diff A1 A2... -- B1 B2...        and what of it is noise\n"
"       profrun finish [DIR]                     gmon.out of killed programs\n"
"       profrun info [DIR]\n"
"\n"
"DIR is a recording; the newest one in the working directory if not given.\n"
"\n"
"report:\n"
"  --sort self|total|calls|mean|max   default self; calls if not timed\n"
"         bytes|allocations|peak|leaked|lost|temporary   of memory; default bytes\n"
"  --limit N            rows of a table; 0: all; default 30\n"
"  --tree               call paths instead of functions\n"
"  --min-percent P      with --tree: sum up what is smaller; default 0.5\n"
"  --depth N            with --tree: no deeper than this; default 64\n"
"  --callers F          who calls function F\n"
"  --callees F          whom function F calls\n"
"  --histogram F        how long calls of F took (profile calltree:exact)\n"
"  --threads            a table for every thread\n"
"  --ranks              how evenly the ranks of a job share the work, the parts\n"
"                       of a merged recording, or processes; also with --tree\n"
"  --format text|json|csv\n"
"  --color auto|always|never\n"
"export:\n"
"  -o, --output FILE    instead of standard output; written whole or not\n"
"  --value self|total|calls|samples   what folded and speedscope count; default\n"
"          self, in ns;\n"
"          bytes|allocations|peak|leaked|lost   of memory;\n"
"          waits                           for locks, in ns; of these two\n"
"                       callgrind: calls, else self and total;\n"
"                       pprof has both, calls and time (self is its flat,\n"
"                       total its cum), or of memory what was allocated and\n"
"                       what is left: which one it shows first\n"
"  --max-depth N        of the paths of folded, speedscope, pprof; default 4096\n"
"  --threads            keep threads apart; pprof has them as labels anyhow\n"
"html:\n"
"  -o, --output FILE    instead of the recording's name and .html; -: standard\n"
"                       output\n"
"  --against DIR        colour by what changed since recording DIR\n"
"  --max-paths N        call paths in it; default 1000000\n"
"  --max-calls N        of a trace, the longest, one by one; default 1000000\n"
"diff:\n"
"  --value self|total|calls|bytes|allocations|peak|leaked   what is compared\n"
"  --limit N            rows of a table; 0: all; default 30\n"
"  --format text|json|csv\n"
"  --color auto|always|never\n"
"replay:\n"
"  --from T, --to T     only this time, since the start: 1.5s, 20ms, 300us, 7ns\n"
"  --thread T           only this thread: its number or its name\n"
"  --function F         only calls of function F, and what they call\n"
"  --depth N            no deeper than this\n"
"  --min-duration T     leave out calls that are shorter\n"
"  --limit N            the first N lines\n"
"  --color auto|always|never\n"
"all:\n"
"  --process PID        only this process\n"
"  --mangled            names as the linker has them\n"
"  --raw                do not subtract our own cost\n"
"  --samples            what samples found, if calls were recorded, too\n"
"  --trace              the calls in a trace, if they were counted, too\n"
"  --memory             what was allocated, if calls were recorded, too\n"
"  --locks              the same of waits for locks\n"
"  --coverage           what was reached, if calls were recorded, too\n"
"  --exceptions         what was thrown and caught, if calls were recorded, too\n"
"  --debuginfod         let elfutils ask the servers in DEBUGINFOD_URLS\n";

enum {
	OPTION_SORT = 256, OPTION_LIMIT, OPTION_TREE, OPTION_MIN_PERCENT,
	OPTION_DEPTH, OPTION_CALLERS, OPTION_CALLEES, OPTION_HISTOGRAM,
	OPTION_THREADS, OPTION_PROCESS, OPTION_FORMAT, OPTION_COLOR,
	OPTION_MANGLED, OPTION_RAW, OPTION_DEBUGINFOD, OPTION_VALUE,
	OPTION_MAX_DEPTH, OPTION_SAMPLES, OPTION_TRACE, OPTION_MEMORY,
	OPTION_LOCKS, OPTION_EXCEPTIONS, OPTION_COVERAGE, OPTION_RANKS,
	OPTION_AGAINST, OPTION_MAX_PATHS, OPTION_MAX_CALLS, OPTION_FROM,
	OPTION_TO, OPTION_THREAD, OPTION_FUNCTION, OPTION_MIN_DURATION,
	OPTION_HELP, OPTION_OUTPUT = 'o',
};

#define COMMON                                                              \
	{ "process", required_argument, NULL, OPTION_PROCESS },             \
	{ "mangled", no_argument, NULL, OPTION_MANGLED },                   \
	{ "raw", no_argument, NULL, OPTION_RAW },                           \
	{ "samples", no_argument, NULL, OPTION_SAMPLES },                   \
	{ "trace", no_argument, NULL, OPTION_TRACE },                       \
	{ "memory", no_argument, NULL, OPTION_MEMORY },                     \
	{ "locks", no_argument, NULL, OPTION_LOCKS },                       \
	{ "coverage", no_argument, NULL, OPTION_COVERAGE },                 \
	{ "exceptions", no_argument, NULL, OPTION_EXCEPTIONS },             \
	{ "debuginfod", no_argument, NULL, OPTION_DEBUGINFOD },             \
	{ "help", no_argument, NULL, OPTION_HELP },                         \
	{ NULL, 0, NULL, 0 }

const struct option report_options[] = {
	{ "sort", required_argument, NULL, OPTION_SORT },
	{ "limit", required_argument, NULL, OPTION_LIMIT },
	{ "tree", no_argument, NULL, OPTION_TREE },
	{ "min-percent", required_argument, NULL, OPTION_MIN_PERCENT },
	{ "depth", required_argument, NULL, OPTION_DEPTH },
	{ "callers", required_argument, NULL, OPTION_CALLERS },
	{ "callees", required_argument, NULL, OPTION_CALLEES },
	{ "histogram", required_argument, NULL, OPTION_HISTOGRAM },
	{ "threads", no_argument, NULL, OPTION_THREADS },
	{ "ranks", no_argument, NULL, OPTION_RANKS },
	{ "format", required_argument, NULL, OPTION_FORMAT },
	{ "color", required_argument, NULL, OPTION_COLOR },
	COMMON
};

const struct option export_options[] = {
	{ "output", required_argument, NULL, OPTION_OUTPUT },
	{ "value", required_argument, NULL, OPTION_VALUE },
	{ "max-depth", required_argument, NULL, OPTION_MAX_DEPTH },
	{ "threads", no_argument, NULL, OPTION_THREADS },
	COMMON
};

const struct option replay_options[] = {
	{ "from", required_argument, NULL, OPTION_FROM },
	{ "to", required_argument, NULL, OPTION_TO },
	{ "thread", required_argument, NULL, OPTION_THREAD },
	{ "function", required_argument, NULL, OPTION_FUNCTION },
	{ "depth", required_argument, NULL, OPTION_DEPTH },
	{ "min-duration", required_argument, NULL, OPTION_MIN_DURATION },
	{ "limit", required_argument, NULL, OPTION_LIMIT },
	{ "color", required_argument, NULL, OPTION_COLOR },
	COMMON
};

const struct option merge_options[] = {
	{ "output", required_argument, NULL, OPTION_OUTPUT },
	{ "help", no_argument, NULL, OPTION_HELP },
	{ NULL, 0, NULL, 0 }
};

const struct option diff_options[] = {
	{ "limit", required_argument, NULL, OPTION_LIMIT },
	{ "value", required_argument, NULL, OPTION_VALUE },
	{ "format", required_argument, NULL, OPTION_FORMAT },
	{ "color", required_argument, NULL, OPTION_COLOR },
	COMMON
};

const struct option html_options[] = {
	{ "against", required_argument, NULL, OPTION_AGAINST },
	{ "max-paths", required_argument, NULL, OPTION_MAX_PATHS },
	{ "max-calls", required_argument, NULL, OPTION_MAX_CALLS },
	{ "output", required_argument, NULL, OPTION_OUTPUT },
	COMMON
};

const struct option info_options[] = { COMMON };

/* Which of @words @text is. */
static int choose(const char *option, const char *text,
		  const char *const *words)
{
	int i;

	for (i = 0; words[i]; i++)
		if (!strcmp(text, words[i]))
			return i;
	die_usage("--%s: unknown value '%s'", option, text);
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

static double parse_percent(const char *option, const char *text)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !(value >= 0 && value <= 100))
		die_usage("--%s: '%s' is not from 0 to 100", option, text);
	return value;
}

static double parse_time(const char *option, const char *text)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = { { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 } };
	char *end;
	double value = strtod(text, &end);
	size_t i;

	if (end != text && value >= 0 && value < 1e12)
		for (i = 0; i < sizeof(units) / sizeof(*units); i++)
			if (!strcmp(end, units[i].name))
				return value * units[i].ns;
	die_usage("--%s: '%s' is not a time: 1.5s, 20ms, 300us, 7ns", option,
		  text);
}

static void take_option(struct options *options, int option, const char *text)
{
	static const char *const sorts[] = { "self", "total", "calls", "mean",
					     "max", "bytes", "allocations",
					     "peak", "leaked", "temporary",
					     "lost",
					     NULL };
	static const char *const values[] = { "self", "total", "calls", "waits",
					      "bytes",
					      "allocations", "peak", "leaked",
					      "lost",
					      "samples", NULL };
	static const char *const formats[] = { "text", "json", "csv", NULL };
	static const char *const colors[] = { "auto", "always", "never", NULL };

	switch (option) {
	case OPTION_SORT:
		options->sort = (enum sort)choose("sort", text, sorts);
		options->sort_given = true;
		break;
	case OPTION_LIMIT:
		options->limit = parse_number("limit", text, 0, INT32_MAX);
		break;
	case OPTION_TREE:
		options->tree = true;
		break;
	case OPTION_MIN_PERCENT:
		options->min_percent = parse_percent("min-percent", text);
		break;
	case OPTION_DEPTH:
		options->depth = (uint32_t)parse_number("depth", text, 1,
							INT32_MAX);
		break;
	case OPTION_CALLERS:
		options->callers = text;
		break;
	case OPTION_CALLEES:
		options->callees = text;
		break;
	case OPTION_HISTOGRAM:
		options->histogram = text;
		break;
	case OPTION_THREADS:
		options->threads = true;
		break;
	case OPTION_RANKS:
		options->ranks = true;
		break;
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
	case OPTION_MANGLED:
		options->mangled = true;
		break;
	case OPTION_RAW:
		options->raw = true;
		break;
	case OPTION_SAMPLES:
		options->samples = true;
		break;
	case OPTION_TRACE:
		options->trace = true;
		break;
	case OPTION_COVERAGE:
		options->coverage = true;
		break;
	case OPTION_MEMORY:
		options->memory = true;
		break;
	case OPTION_LOCKS:
		options->locks = true;
		break;
	case OPTION_EXCEPTIONS:
		options->exceptions = true;
		break;
	case OPTION_DEBUGINFOD:
		symbols_allow_network();
		break;
	case OPTION_VALUE:
		options->value = (enum value)choose("value", text, values);
		if (options->value > VALUE_LOST)
			options->value = VALUE_CALLS;
		options->value_given = true;
		break;
	case OPTION_MAX_DEPTH:
		options->max_depth = (uint32_t)parse_number("max-depth", text,
							    1, 1000000);
		break;
	case OPTION_OUTPUT:
		options->output = text;
		break;
	case OPTION_MAX_PATHS:
		options->max_paths = (uint32_t)parse_number("max-paths", text,
							    1, 100000000);
		break;
	case OPTION_MAX_CALLS:
		options->max_calls = (uint32_t)parse_number("max-calls", text,
							    1, 100000000);
		break;
	case OPTION_AGAINST:
		options->against = text;
		break;
	case OPTION_FROM:
		options->from_ns = parse_time("from", text);
		break;
	case OPTION_TO:
		options->to_ns = parse_time("to", text);
		break;
	case OPTION_MIN_DURATION:
		options->min_duration_ns = parse_time("min-duration", text);
		break;
	case OPTION_THREAD:
		options->thread = text;
		break;
	case OPTION_FUNCTION:
		options->function = text;
		break;
	case OPTION_HELP:
		print_help();
	default:
		break;
	}
}

int take_options(struct options *options, int argc, char **argv,
		 const struct option *known, const char *letters)
{
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, letters, known, NULL)) != -1) {
		if (option == '?')
			die_usage("%s: unknown option, or an argument too "
				  "many", argv[optind - 1]);
		if (option == ':')
			die_usage("%s: needs an argument", argv[optind - 1]);
		take_option(options, option, optarg);
	}
	return argc - optind;
}

_Noreturn void print_help(void)
{
	fputs(help, stdout);
	exit(fflush(stdout) ? 1 : 0);
}
