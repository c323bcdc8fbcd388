/*
 * shim-process - looks into a running process or a core file, and attaches shim to a
 * process, for profrun
 *
 * Reads the command line of the verb, which stands where getopt expects the program's
 * name.
 */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/messages.h"
#include "base/numbers.h"
#include "base/output.h"
#include "common/descriptors.h"
#include "common/stack.h"
#include "names/symbols.h"
#include "process/attach.h"
#include "process/naming.h"
#include "process/stack.h"
#include "process/target.h"

static const char stack_help[] =
	"Usage: profrun stack PID|CORE [OPTIONS]\n\n"
	"Shows the stacks of all threads of a running process or of a core file: functions,\n"
	"lines, inlined functions; and the open calls that shim has recorded.\n"
	"The program needs no preparation.  Each thread is stopped for a moment only.\n\n"
	"      --every TIME   repeat at this interval: 100ms, 1s; until the process ends or Ctrl-C\n"
	"      --count N      with --every: only N times\n"
	"      --folded       one line per different stack, with its count, for flame graphs\n"
	"      --json         an object for each round, for programs\n"
	"      --running      only threads that have a processor, wait for one, or for a disk\n"
	"      --names FORM   full, short, mangled: the form of names of C++, Rust and D (full)\n"
	"  -o, --output FILE  write to FILE\n"
	"  -h, --help         show this text\n";

enum {
	OPTION_EVERY = 256,
	OPTION_COUNT,
	OPTION_FOLDED,
	OPTION_JSON,
	OPTION_RUNNING,
	OPTION_NAMES
};

static void print_help(const char *text)
{
	output_open(NULL);
	fputs(text, stdout);
	output_close();
	exit(0);
}

static uint64_t parse_count(const char *option, const char *text)
{
	char *end;
	unsigned long long value;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (!isdigit((unsigned char)text[0]) || *end || errno || value == 0)
		die_usage("--%s: '%s' is not a number above 0", option, text);
	return value;
}

static double parse_period(const char *option, const char *text)
{
	double ns;

	if (!read_time(text, &ns) || ns < 1)
		die_usage("--%s: '%s' is not a time: 1.5s, 20ms, 300us", option,
			  text);
	return ns;
}

static enum named_form parse_form(const char *text)
{
	static const char *const forms[] = { [NAMED_FULL] = "full",
					     [NAMED_SHORT] = "short",
					     [NAMED_MANGLED] = "mangled" };
	size_t i;

	for (i = 0; i < sizeof(forms) / sizeof(*forms); i++)
		if (!strcmp(text, forms[i]))
			return (enum named_form)i;
	die_usage("--names: '%s' is not full, short or mangled", text);
}

/* Returns 0 if @text is no process id. */
static int parse_pid(const char *text)
{
	const char *digit = text;
	long pid;

	while (isdigit((unsigned char)*digit))
		digit++;
	if (digit == text || *digit)
		return 0;
	errno = 0;
	pid = strtol(text, NULL, 10);
	if (errno || pid <= 0 || pid > INT_MAX)
		die_usage("'%s' is not a process id", text);
	return (int)pid;
}

static int stack(int argc, char **argv)
{
	static const struct option long_options[] = {
		{ "every", required_argument, NULL, OPTION_EVERY },
		{ "count", required_argument, NULL, OPTION_COUNT },
		{ "folded", no_argument, NULL, OPTION_FOLDED },
		{ "json", no_argument, NULL, OPTION_JSON },
		{ "running", no_argument, NULL, OPTION_RUNNING },
		{ "names", required_argument, NULL, OPTION_NAMES },
		{ "output", required_argument, NULL, 'o' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct stack_options options = { .count = 0 };
	int option, pid;

	opterr = 0;
	while ((option = getopt_long(argc, argv, ":o:h", long_options, NULL)) !=
	       -1)
		switch (option) {
		case OPTION_EVERY:
			options.every_ns = parse_period("every", optarg);
			break;
		case OPTION_COUNT:
			options.count = parse_count("count", optarg);
			break;
		case OPTION_FOLDED: options.is_folded = true; break;
		case OPTION_JSON: options.is_json = true; break;
		case OPTION_RUNNING: options.only_running = true; break;
		case OPTION_NAMES: naming_choose(parse_form(optarg)); break;
		case 'o': options.output = optarg; break;
		case 'h': print_help(stack_help); break;
		case ':':
			die_usage("stack: %s: needs a value", argv[optind - 1]);
		default:
			die_usage("stack: unknown option %s", argv[optind - 1]);
		}
	if (argc - optind != 1)
		die_usage(argc == optind ?
				  "stack: needs a process id or a core file" :
				  "stack: takes only one process or core file");
	if (options.is_folded && options.is_json)
		die_usage("stack: --folded or --json, not both");
	if (options.count && options.every_ns <= 0)
		die_usage("stack: --count needs --every TIME");
	pid = parse_pid(argv[optind]);
	if (pid)
		return stack_process(&options, pid);
	if (options.every_ns > 0 || options.only_running)
		die_usage(
			"stack: --every and --running need a running process; '%s' "
			"is none",
			argv[optind]);
	return stack_core(&options, argv[optind]);
}

/* --- attach, detach, record --pid --- */

static const char attach_help[] =
	"Usage: profrun attach PID [OPTIONS]\n"
	"       profrun record --pid PID [--for TIME] [OPTIONS]\n\n"
	"Records a process that runs already.  Returns when it records; `record --pid`\n"
	"detaches after TIME, or at Ctrl-C.  After a detach, another recording begins with\n"
	"-o; without it, the last one goes on.\n\n"
	"  -p, --profile NAME[:ARGS]  what to record (repeat it); default: calltree\n"
	"  -o, --output DIR           default: profrun.NAME.PID; %p %n %h as for profrun\n"
	"  -F, --filter SPEC          which functions\n"
	"      --libcalls[=LIST]      record the program's calls of libraries' functions, or\n"
	"                             those that LIST chooses\n"
	"      --control              `profrun ctl PID` works\n"
	"      --force                also if the process filters its system calls\n"
	"      --for TIME             with record --pid: 1.5s, 20ms\n"
	"      --wait TIME            the longest wait for the process's locks (30s)\n"
	"  -q, --quiet                no messages\n"
	"  -h, --help                 show this text\n";

static const char detach_help[] =
	"Usage: profrun detach PID\n\n"
	"Ends the recording of a process that `profrun attach` has begun.  Returns when it\n"
	"is complete.  The program goes on, and can be attached to again.\n\n"
	"      --wait TIME  the longest wait for the process's locks (30s)\n"
	"  -q, --quiet      no messages\n"
	"  -h, --help       show this text\n";

enum {
	OPTION_PID = 512,
	OPTION_FOR,
	OPTION_WAIT,
	OPTION_CONTROL,
	OPTION_FORCE,
	OPTION_LIBRARY,
	OPTION_LIBCALLS
};

static volatile sig_atomic_t is_interrupted;

static void interrupt(int number)
{
	(void)number;
	is_interrupted = 1;
}

static char *join_items(char *items, const char *item)
{
	char *joined;

	if (asprintf(&joined, "%s%s%s", items ? items : "", items ? ";" : "",
		     item) < 0)
		die("%s", strerror(errno));
	free(items);
	return joined;
}

/* Its parent may not have waited for a process that has ended. */
static bool runs(int pid)
{
	const struct target target = { .pid = pid };

	return target_is_alive(&target);
}

/* Waits for @ns nanoseconds (0: without end), for a signal, or for the process's end. */
static void wait_for(double ns, int pid)
{
	static const struct timespec step = { 0, 20000000 };
	struct timespec now;
	double end;

	clock_gettime(CLOCK_MONOTONIC, &now);
	end = (double)now.tv_sec * 1e9 + (double)now.tv_nsec + ns;
	while (!is_interrupted && runs(pid)) {
		double left;

		clock_gettime(CLOCK_MONOTONIC, &now);
		left = end - (double)now.tv_sec * 1e9 - (double)now.tv_nsec;
		if (ns > 0 && left <= 0)
			break;
		if (ns > 0 && left < 20e6)
			nanosleep(&(struct timespec){ 0, (long)left }, NULL);
		else
			nanosleep(&step, NULL);
	}
}

static int record_for(const struct attach_options *options, int pid, double ns)
{
	struct sigaction action = { .sa_handler = interrupt };
	const char *directory;
	int status;

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	status = attach_begin(options, pid, &directory);
	if (status)
		return status;
	wait_for(ns, pid);
	if (!runs(pid))
		return 0;
	return attach_end(pid, options->is_quiet, options->wait_ns);
}

static int attach(int argc, char **argv)
{
	static const struct option long_options[] = {
		{ "profile", required_argument, NULL, 'p' },
		{ "output", required_argument, NULL, 'o' },
		{ "filter", required_argument, NULL, 'F' },
		{ "pid", required_argument, NULL, OPTION_PID },
		{ "for", required_argument, NULL, OPTION_FOR },
		{ "wait", required_argument, NULL, OPTION_WAIT },
		{ "control", no_argument, NULL, OPTION_CONTROL },
		{ "force", no_argument, NULL, OPTION_FORCE },
		{ "library", required_argument, NULL, OPTION_LIBRARY },
		{ "libcalls", optional_argument, NULL, OPTION_LIBCALLS },
		{ "quiet", no_argument, NULL, 'q' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	bool is_record = !strcmp(argv[0], "record");
	struct attach_options options = { .wait_ns = ATTACH_WAIT_NS };
	const char *process = NULL, *directory;
	char *items = NULL;
	double ns = 0;
	int option, pid;

	opterr = 0;
	while ((option = getopt_long(argc, argv, ":p:o:F:qh", long_options,
				     NULL)) != -1)
		switch (option) {
		case 'p': items = join_items(items, optarg); break;
		case 'o': options.output = optarg; break;
		case 'F': options.filter = optarg; break;
		case 'q': options.is_quiet = true; break;
		case OPTION_PID: process = optarg; break;
		case OPTION_FOR: ns = parse_period("for", optarg); break;
		case OPTION_WAIT:
			options.wait_ns = (uint64_t)parse_period("wait",
								 optarg);
			break;
		case OPTION_CONTROL: options.has_control = true; break;
		case OPTION_FORCE: options.is_forced = true; break;
		case OPTION_LIBRARY: options.library = optarg; break;
		case OPTION_LIBCALLS:
			options.libcalls = optarg ? optarg : "program";
			break;
		case 'h': print_help(attach_help); break;
		case ':':
			die_usage("%s: %s: needs a value", argv[0],
				  argv[optind - 1]);
		default:
			die_usage("%s: unknown option %s", argv[0],
				  argv[optind - 1]);
		}
	if (!is_record && (process || ns > 0))
		die_usage("attach: --pid and --for belong to `profrun record`");
	if (!process && optind < argc)
		process = argv[optind++];
	if (!process || optind < argc)
		die_usage(process ? "%s: takes one process" :
				    "%s: needs a process id",
			  argv[0]);
	pid = parse_pid(process);
	if (!pid)
		die_usage("%s: '%s' is not a process id", argv[0], process);
	if (options.output && !options.output[0])
		die_usage("%s: -o needs a name", argv[0]);
	if (options.libcalls && !options.libcalls[0])
		die_usage("%s: --libcalls= needs a list", argv[0]);
	options.profile = items;
	return is_record ? record_for(&options, pid, ns) :
			   attach_begin(&options, pid, &directory);
}

static int detach(int argc, char **argv)
{
	static const struct option long_options[] = {
		{ "wait", required_argument, NULL, OPTION_WAIT },
		{ "quiet", no_argument, NULL, 'q' },
		{ "library", required_argument, NULL, OPTION_LIBRARY },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	uint64_t wait_ns = ATTACH_WAIT_NS;
	bool is_quiet = false;
	int option, pid;

	opterr = 0;
	while ((option = getopt_long(argc, argv, ":qh", long_options, NULL)) !=
	       -1)
		switch (option) {
		case 'q': is_quiet = true; break;
		case OPTION_WAIT:
			wait_ns = (uint64_t)parse_period("wait", optarg);
			break;
		case OPTION_LIBRARY: break;
		case 'h': print_help(detach_help); break;
		default:
			die_usage("detach: unknown option %s",
				  argv[optind - 1]);
		}
	if (argc - optind != 1)
		die_usage("detach: needs a process id");
	pid = parse_pid(argv[optind]);
	if (!pid)
		die_usage("detach: '%s' is not a process id", argv[optind]);
	return attach_end(pid, is_quiet, wait_ns);
}

static int do_verb(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(int argc, char **argv);
	} verbs[] = {
		{ "stack", stack },
		{ "attach", attach },
		{ "record", attach },
		{ "detach", detach },
	};
	size_t i;

	for (i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
		if (argc > 1 && !strcmp(argv[1], verbs[i].name)) {
			usage_verb(verbs[i].name);
			return verbs[i].run(argc - 1, argv + 1);
		}
	die_usage("'%s' is not a verb", argc > 1 ? argv[1] : "");
}

int main(int argc, char **argv)
{
	descriptors_hold();
	symbols_begin();
	return stack_call(do_verb, argc, argv);
}
