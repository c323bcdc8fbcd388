/*
 * Reports in plain words why there is no data.  The main check is a probe: this same
 * program runs with the library preloaded and calls the hooks as instrumented code
 * does, and its recording is read.  The other checks find reasons why the probe or a
 * user's program would not work.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "built.h"
#include "doctor.h"
#include "filter.h"
#include "json_text.h"
#include "patch_list.h"
#include "preload.h"
#include "program.h"
#include "recording.h"
#include "say.h"
#include "trial.h"

#define ENOUGH_SPACE ((unsigned long long)64 << 20)
#define PROBE_CALLS  1000

void __cyg_profile_func_enter(void *function, void *site);
void __cyg_profile_func_exit(void *function, void *site);

static unsigned int problems;
static bool is_json, is_first = true;

static struct filter patch = { .option = "patch" };
static struct patch_list patch_list;

/* --- lines of the answer ------------------------------------------------ */

static void line(const char *kind, const char *format, va_list arguments)
{
	char text[3 * PATH_MAX];

	vsnprintf(text, sizeof(text), format, arguments);
	if (is_json) {
		printf("%s\n{\"kind\":\"%s\",\"text\":", is_first ? "" : ",",
		       kind);
		json_text(text);
		putchar('}');
		/* A probe is a child, which must not print it again. */
		fflush(stdout);
		is_first = false;
		return;
	}
	say_plainly("%-7s  %s", kind, text);
}

#define LINE __attribute__((format(printf, 1, 2))) static void

LINE ok(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	line("ok", format, arguments);
	va_end(arguments);
}

LINE warning(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	line("warning", format, arguments);
	va_end(arguments);
}

LINE hint(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	line("hint", format, arguments);
	va_end(arguments);
}

LINE problem(const char *format, ...)
{
	va_list arguments;

	problems++;
	va_start(arguments, format);
	line("problem", format, arguments);
	va_end(arguments);
}

/* --- the parts ---------------------------------------------------------- */

static void check_library(const char *library)
{
	static const char *const hooks[] = { "__cyg_profile_func_enter",
					     "__cyg_profile_func_exit" };
	bool is_good = true;

	if (access(library, R_OK) < 0) {
		problem("the library %s: %s", library, strerror(errno));
		return;
	}
	if (preload_error(library) != NULL)
		problem("the library %s: %s", library, preload_error(library));
	for (int i = 0; i < 2; i++) {
		switch (program_exports(library, hooks[i])) {
		case EXPORT_PLAIN: continue;
		case EXPORT_VERSIONED:
			problem("the library %s: %s has a symbol version:"
				" programs do not bind to it",
				library, hooks[i]);
			break;
		case EXPORT_MISSING:
			problem("the library %s: does not export %s", library,
				hooks[i]);
			break;
		}
		is_good = false;
	}
	if (is_good)
		ok("the library %s exports the hooks", library);
}

static void check_report(const char *report)
{
	if (access(report, X_OK) < 0)
		problem("the report program %s: %s", report, strerror(errno));
	else
		ok("the report program %s", report);
}

/* --- the probe ---------------------------------------------------------- */

int doctor_probe(void)
{
	for (int i = 0; i < PROBE_CALLS; i++) {
		__cyg_profile_func_enter(doctor_probe,
					 __builtin_return_address(0));
		__cyg_profile_func_exit(doctor_probe,
					__builtin_return_address(0));
	}
	return 0;
}

static void run_probe(const char *library, const char *directory)
{
	setenv("LD_PRELOAD", preload_entry(library), 1);
	setenv("SHIM_DIR", directory, 1);
	unsetenv("SHIM_PROFILE");
	unsetenv("SHIM_VERBOSE");
	execl("/proc/self/exe", "shim-run", "probe", library, directory,
	      (char *)NULL);
	_exit(STATUS_FAILED);
}

/* shim finds loaded objects there, and the probe its own program. */
static bool check_proc(void)
{
	if (access("/proc/self/maps", R_OK) == 0)
		return true;
	problem("/proc/self/maps cannot be read: functions have no names (mount"
		" /proc)");
	return false;
}

/* Records the probe in a new directory below the working directory. */
static void check_recording(const char *library)
{
	const char *path = trial_begin();
	int status = -1, room;
	pid_t child;

	if (path == NULL) {
		problem("a recording cannot be made in this directory: %s",
			strerror(errno));
		return;
	}
	child = trial_fork();
	if (child == 0)
		run_probe(library, path);
	if (child > 0)
		trial_wait(child, &status);
	recording_say_log(path, false);
	if (child < 0)
		problem("no process can be started: %s", strerror(errno));
	else if (WIFSIGNALED(status))
		problem("a probe with the library preloaded was killed: %s",
			strsignal(WTERMSIG(status)));
	else if (status != 0)
		problem("a probe with the library preloaded ended with status"
			" %d",
			WEXITSTATUS(status));
	else if (recording_content(path) == RECORDING_CALLS)
		ok("a probe was recorded in this directory");
	else if (recording_content(path) == RECORDING_NO_CALLS)
		problem("a probe was started but its calls were not recorded");
	else if ((room = recording_try_room(path)) < 0)
		problem("a recording cannot be written in this directory: %s"
			" (free space, or record elsewhere with -o DIR)",
			recording_error(room));
	else
		problem("the dynamic linker did not load the library into a"
			" probe");
	trial_end();
}

/* --- the machine -------------------------------------------------------- */

static void check_space(void)
{
	unsigned long long free_bytes;
	struct statvfs fs;

	if (statvfs(".", &fs) < 0) {
		problem("this directory: %s", strerror(errno));
		return;
	}
	free_bytes = (unsigned long long)fs.f_bavail * fs.f_frsize;
	if (free_bytes < ENOUGH_SPACE)
		warning("there is only %llu MiB of free space in this"
			" directory",
			free_bytes >> 20);
	else
		ok("there is %llu MiB of free space in this directory",
		   free_bytes >> 20);
}

static void check_limit(int resource, const char *name, const char *meaning)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
		ok("%s is not limited", meaning);
	else if (limit.rlim_cur < ENOUGH_SPACE)
		warning("%s is limited to %llu KiB (%s): a larger recording"
			" stops there",
			meaning, (unsigned long long)limit.rlim_cur >> 10,
			name);
	else
		ok("%s is limited to %llu MiB (%s)", meaning,
		   (unsigned long long)limit.rlim_cur >> 20, name);
}

static bool read_text(const char *path, char *text, size_t size)
{
	ssize_t n;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, size - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return n > 0;
}

static void check_clock(void)
{
	char name[64];

	if (!read_text("/sys/devices/system/clocksource/clocksource0/"
		       "current_clocksource",
		       name, sizeof(name)))
		warning("the system's clock source is unknown");
	else if (strcmp(name, "tsc") == 0 ||
		 strcmp(name, "arch_sys_counter") == 0)
		ok("the system's clock is the processor's own (%s)", name);
	else if (strcmp(name, "kvm-clock") == 0)
		ok("the system's clock is %s, which the processor's own drives",
		   name);
	else
		warning("the system's clock is %s: reading the time may be"
			" slow, and with it calltree:exact",
			name);
}

static void check_preload(void)
{
	const char *value = getenv("LD_PRELOAD");

	if (value != NULL && *value != '\0')
		ok("LD_PRELOAD is set already (%s); it is kept, in front",
		   value);
}

/* --- the program -------------------------------------------------------- */

static void check_hooks(const struct program *program)
{
	char text[128];

	if (program->has_hooks)
		problem("it defines __cyg_profile_func_enter itself, which"
			" goes before ours: remove that");
	else if (program->is_marked)
		ok("calls of its functions are marked: %s",
		   marks_text(&program->marks, text, sizeof(text)));
	else if (patch.list == NULL)
		problem("it is not compiled with -finstrument-functions: add"
			" -finstrument-functions and -g to its compiler flags"
			" (or clang's -fxray-instrument"
			" -fxray-instruction-threshold=1), or record it as it"
			" is with --patch '*' (`profrun doctor --patch '*'`"
			" tells which functions that can)."
			" Without, only the libraries it uses can be seen, if"
			" they are; or its functions as they are, with --patch"
			" '*', and its calls of libraries, with --libcalls");
}

/* Templates and accessors of the C++ library are instrumented like all functions, and
 * recording their calls takes longer than the calls. */
static void advise_on_cxx(const struct built *built)
{
	if (!built->is_cxx || built->has_exclusions)
		return;
	if (built->is_clang)
		hint("it is C++: compiled with"
		     " -finstrument-functions-after-inlining instead of"
		     " -finstrument-functions, it runs several times faster"
		     " (what clang has inlined is not recorded)");
	else
		hint("it is C++: compiled with"
		     " -finstrument-functions-exclude-file-list=/usr/include as"
		     " well, it runs several times faster (the C++ library's"
		     " own functions are not recorded)");
}

static void check_built(const struct program *program)
{
	struct built built;

	built_read(&built, program->path, &program->marks);
	if (!built.is_known)
		return;
	if (built.missing[0])
		warning("its %s in %s, which is not here: install it (on Debian, the"
			" package that ends in -dbgsym or -dbg), or %s",
			built.has_symbols ? "debug information is" :
					    "symbols are",
			built.missing,
			built.has_symbols ? "source lines will be unknown" :
					    "its functions will be shown by "
					    "address");
	else if (!built.has_symbols)
		warning("it is stripped: its functions will be shown by address;"
			" keep its symbols (no -s, no strip)");
	else if (!built.has_debug)
		warning("it has no debug information: source lines will be"
			" unknown; compile with -g");
	else if (built.has_zstd)
		warning("its debug information is compressed with zstd, which"
			" libdw reads since version 0.189: with an older one,"
			" source lines will be unknown; compile with -gz=zlib");
	else
		ok("it has symbols and debug information");
	if (program->calls_hooks)
		advise_on_cxx(&built);
}

static void check_elf(const struct program *program)
{
	if (program->is_foreign) {
		problem("it is built for %s, the library for %s",
			program_machine(program->path),
			program_machine("/proc/self/exe"));
		return;
	}
	if (program->is_static)
		problem("it is statically linked: nothing can be preloaded"
			" into it; link it dynamically");
	else
		ok("it is dynamically linked");
	if (program->sanitizer[0] != '\0')
		ok("it needs %s, which profrun preloads in front",
		   program->sanitizer);
	if (program->is_static)
		return;
	check_hooks(program);
	check_built(program);
}

static void check_patch(const char *library, const struct program *program)
{
	if (program->is_foreign || program->is_static || program->is_privileged)
		return;
	if (!patch_list_read(&patch_list, library, program, &patch))
		problem("--patch: %s", patch_list.error);
	for (unsigned int i = 0; i < patch_list.count; i++)
		ok("--patch: %u of %u functions of %s can be patched",
		   patch_list.objects[i].patched,
		   patch_list.objects[i].patched + patch_list.objects[i].left,
		   patch_list.objects[i].path);
}

static void check_program(const char *library, const char *name)
{
	struct program program;

	if (program_find(&program, name) != 0) {
		problem("%s cannot be run", name);
		return;
	}
	program_inspect(&program);
	ok("%s is %s", name, program.path);
	if (program.is_privileged)
		problem("it runs with the rights of another user, so the"
			" dynamic linker preloads nothing: run it as that"
			" user, or a copy without setuid and setgid");
	if (program.is_elf)
		check_elf(&program);
	else if (program.interpreter[0] != '\0')
		ok("it is a script for %s; programs that it runs can be "
		   "profiled",
		   program.interpreter);
	else
		ok("it is a script; programs that it runs can be profiled");
	if (patch.list != NULL && program.is_elf)
		check_patch(library, &program);
}

/* --- the command line ---------------------------------------------------- */

static void print_help(void)
{
	puts("Usage: profrun doctor [--json] [--patch LIST] [PROGRAM]\n\n"
	     "Check that profiling works here, in this directory, and with"
	     " PROGRAM.\n"
	     "--patch: tell of each function that `profrun run --patch LIST`"
	     " would record\nwhether it can, or why not; PROGRAM is loaded for"
	     " that, and its main does not\nrun.\n"
	     "--json: for programs.  The exit status is 1 if there is a"
	     " problem.");
}

static int add_patch(const char *text)
{
	if (filter_add(&patch, text))
		return 0;
	say("--patch: %s", patch.error);
	return STATUS_USAGE;
}

/* Reads the options and the program, whose name is *@name.  Returns a status; -1: go on. */
static int read_words(int words, char **word, const char **name)
{
	static const struct option options[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "json", no_argument, NULL, 'j' },
		{ "patch", required_argument, NULL, 'P' },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	opterr = 0;
	while ((option = getopt_long(words, word, ":", options, NULL)) != -1) {
		switch (option) {
		case 'h': print_help(); return 0;
		case 'j': is_json = true; break;
		case 'P':
			if (add_patch(optarg) != 0)
				return STATUS_USAGE;
			break;
		case ':':
			say("doctor: %s needs a value", word[optind - 1]);
			return STATUS_USAGE;
		default:
			say("doctor: unknown option '%s'; there are --json and"
			    " --patch",
			    word[optind - 1]);
			return STATUS_USAGE;
		}
	}
	if (words - optind > 1) {
		say("doctor: one program at a time");
		return STATUS_USAGE;
	}
	*name = word[optind];
	if (patch.list != NULL && *name == NULL) {
		say("doctor: --patch needs a program");
		return STATUS_USAGE;
	}
	return -1;
}

int doctor(const char *library, const char *report, int words, char **word)
{
	const char *name = NULL;
	char path[PATH_MAX];
	int status = read_words(words, word, &name);

	if (status >= 0)
		return status;
	/* With a small limit on file sizes, the answer may be cut, but profrun does not
	 * end. */
	signal(SIGXFSZ, SIG_IGN);
	if (is_json)
		fputs("{\"checks\":[", stdout);
	if (realpath(library, path) == NULL)
		snprintf(path, sizeof(path), "%s", library);
	check_library(path);
	check_report(report);
	if (check_proc() && access(path, R_OK) == 0)
		check_recording(path);
	check_space();
	check_limit(RLIMIT_FSIZE, "RLIMIT_FSIZE", "the size of files");
	check_limit(RLIMIT_AS, "RLIMIT_AS", "the address space");
	check_clock();
	check_preload();
	if (name != NULL)
		check_program(path, name);
	if (is_json && patch.list != NULL) {
		fputs("],\"patch\":", stdout);
		patch_list_print_json(&patch_list);
		printf(",\"problems\":%u}\n", problems);
	} else if (is_json) {
		printf("],\"problems\":%u}\n", problems);
	} else {
		patch_list_print(&patch_list);
	}
	return problems > 0 ? 1 : 0;
}
