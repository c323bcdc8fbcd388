/*
 * Parses PROFDIR and PROFFLAGS, and makes the names of files.  An invalid switch is
 * logged and ignored, because the program must run in any case.
 */
#define _GNU_SOURCE
#include "monitor/monitor.h"

#include "image/soname.h"
#include "os/sys.h"
#include "os/text.h"
#include "runtime/config.h"
#include "runtime/log.h"
#include "sampling/sample.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>

#include <shim/banned.h>

#define INSTRUCTION 4 /* bytes; the unit of -stride, an instruction of Alpha */

static char words[8192]; /* the words of PROFFLAGS, each with a NUL */

/* --- words --- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n';
}

/* Copies the word at *@at to *@to, without its quotes; NULL at the end. */
static const char *next_word(const char **at, char **to)
{
	const char *word = *to;
	char quote = '\0';

	while (is_blank(**at))
		(*at)++;
	if (!**at)
		return NULL;
	for (; **at && (quote || !is_blank(**at)); (*at)++) {
		if (quote ? **at == quote : **at == '"' || **at == '\'')
			quote = quote ? '\0' : **at;
		else
			*(*to)++ = **at;
	}
	*(*to)++ = '\0';
	return word;
}

/* --- signals --- */

static const struct {
	const char *name;
	int number;
} signals[] = {
	{ "HUP", SIGHUP },   { "INT", SIGINT },	    { "QUIT", SIGQUIT },
	{ "ILL", SIGILL },   { "TRAP", SIGTRAP },   { "ABRT", SIGABRT },
	{ "BUS", SIGBUS },   { "FPE", SIGFPE },	    { "USR1", SIGUSR1 },
	{ "SEGV", SIGSEGV }, { "USR2", SIGUSR2 },   { "PIPE", SIGPIPE },
	{ "ALRM", SIGALRM }, { "TERM", SIGTERM },   { "CHLD", SIGCHLD },
	{ "CONT", SIGCONT }, { "TSTP", SIGTSTP },   { "TTIN", SIGTTIN },
	{ "TTOU", SIGTTOU }, { "URG", SIGURG },	    { "XCPU", SIGXCPU },
	{ "XFSZ", SIGXFSZ }, { "WINCH", SIGWINCH }, { "IO", SIGIO },
	{ "POLL", SIGPOLL }, { "PWR", SIGPWR },	    { "SYS", SIGSYS },
};

/* The real-time signals that libc leaves to programs. */
#define REALTIME_FIRST 34
#define REALTIME_LAST  64

static int read_realtime_signal(const char *name)
{
	const char *plus = text_after(name, "RTMIN"), *digits;
	const char *minus = text_after(name, "RTMAX");
	uint64_t number = 0;

	digits = plus ? plus : minus;
	if (!digits)
		return 0;
	if (*digits) {
		if (*digits++ != (plus ? '+' : '-') || !*digits)
			return 0;
		number = text_read_decimal(&digits);
		if (*digits || number > REALTIME_LAST - REALTIME_FIRST)
			return 0;
	}
	return plus ? REALTIME_FIRST + (int)number :
		      REALTIME_LAST - (int)number;
}

/* The number of the signal @name, or 0. */
static int find_signal(const char *name)
{
	const char *rest = text_after(name, "SIG");
	int number = read_realtime_signal(rest ? rest : name);

	for (unsigned i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		if (text_equal(rest ? rest : name, signals[i].name))
			number = signals[i].number;
	return number;
}

/* --- switches --- */

static void read_stride(struct monitor_flags *flags, const char *number)
{
	static const char *const strides[] = { "0", "1", "2", "4", "8" };

	for (unsigned i = 0; i < 5; i++)
		if (text_equal(number, strides[i])) {
			flags->step = INSTRUCTION * (uint32_t)(*number - '0');
			return;
		}
	log_line("PROFFLAGS: -stride is 0, 1, 2, 4 or 8, not '%s': shim uses 2",
		 number);
	flags->step = 2 * INSTRUCTION;
}

static void read_signal(struct monitor_flags *flags, const char *name)
{
	flags->signal = find_signal(name);
	if (flags->signal == 0)
		log_line("PROFFLAGS: there is no signal '%s': -sigdump is "
			 "ignored",
			 name);
}

static void add_name(const char **names, uint32_t *count, const char *name)
{
	if (*count < MONITOR_NAMES_MAX)
		names[(*count)++] = name;
	else
		log_line("PROFFLAGS: too many objects: '%s' is ignored", name);
}

static bool read_switch(struct monitor_flags *flags, const char *word)
{
	if (text_equal(word, "-disable_default") ||
	    text_equal(word, "-disable_defaults"))
		flags->disable_default = true;
	else if (text_equal(word, "-threads"))
		flags->threads = true;
	else if (text_equal(word, "-all"))
		flags->all = true;
	else if (text_equal(word, "-pids"))
		flags->pids = MONITOR_PIDS_ON;
	else if (text_equal(word, "-nopids"))
		flags->pids = MONITOR_PIDS_OFF;
	else
		return false;
	return true;
}

static bool takes_value(const char *word)
{
	return text_equal(word, "-incobj") || text_equal(word, "-excobj") ||
	       text_equal(word, "-stride") || text_equal(word, "-sigdump") ||
	       text_equal(word, "-dirname");
}

static void read_valued(struct monitor_flags *flags, const char *word,
			const char *value)
{
	switch (word[1]) {
	case 'i':
		add_name(flags->included, &flags->included_count, value);
		break;
	case 'e':
		add_name(flags->excluded, &flags->excluded_count, value);
		break;
	case 'd': flags->directory = value; break;
	default:
		if (word[2] == 't')
			read_stride(flags, value);
		else
			read_signal(flags, value);
	}
}

static void read_words(struct monitor_flags *flags, const char *at)
{
	char *to = words;
	const char *word;

	while ((word = next_word(&at, &to))) {
		const char *value;

		if (read_switch(flags, word))
			continue;
		if (!takes_value(word)) {
			log_line("PROFFLAGS: '%s' is not a switch: it is "
				 "ignored",
				 word);
			continue;
		}
		value = next_word(&at, &to);
		if (value && *value)
			read_valued(flags, word, value);
		else
			log_line("PROFFLAGS: %s needs a value: it is ignored",
				 word);
	}
}

void monitor_read_flags(struct monitor_flags *flags)
{
	const char *variable = config_variable("PROFFLAGS");

	*flags = (struct monitor_flags){
		.is_given = variable,
		.step = 2 * INSTRUCTION,
	};
	/* A word is never longer than in the variable, where a blank or the end follows
	 * it. */
	if (variable && text_length(variable) >= sizeof(words))
		log_line("%s", "PROFFLAGS is too long: it is ignored");
	else if (variable)
		read_words(flags, variable);
	if (flags->threads && flags->signal) {
		log_line("%s", "PROFFLAGS: -threads is ignored, because of "
			       "-sigdump");
		flags->threads = false;
	}
}

bool monitor_is_named(const char *const *names, uint32_t count,
		      const struct image_entry *image)
{
	char soname[SONAME_SIZE];
	bool has_soname = count > 0 && soname_read(image, soname);

	for (uint32_t i = 0; i < count; i++)
		if (text_equal(names[i], image->path) ||
		    text_equal(names[i], text_base(image->path)) ||
		    (has_soname && text_equal(names[i], soname)))
			return true;
	return false;
}

/* --- names --- */

void monitor_read_directory(struct monitor_directory *directory)
{
	const char *variable = config_variable("PROFDIR");
	struct text text;

	directory->is_set = variable;
	text_init(&text, directory->path, sizeof(directory->path));
	text_add(&text, variable ? variable : "");
	if (text.cut) {
		log_line("%s", "PROFDIR is too long: it is ignored");
		directory->path[0] = '\0';
	}
}

static char program[256];

/* Adds the last part of argv[0], which a program may overwrite later. */
static void add_argument(struct text *text)
{
	char memory[MONITOR_PATH_SIZE];
	int fd = sys_open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC, 0);
	long length;

	if (fd < 0)
		return;
	length = sys_read(fd, memory, sizeof(memory) - 1);
	sys_close(fd);
	memory[length > 0 ? length : 0] = '\0';
	text_add(text, text_base(memory));
}

void monitor_remember_program(void)
{
	char path[MONITOR_PATH_SIZE];
	struct text text;
	long length;

	text_init(&text, program, sizeof(program));
	add_argument(&text);
	if (text.length > 0)
		return;
	length = sys_read_link("/proc/self/exe", path, sizeof(path) - 1);
	path[length > 0 ? length : 0] = '\0';
	text_add(&text, length > 0 ? text_base(path) : "program");
}

static bool is_child;

void monitor_name_child(void)
{
	is_child = true;
}

int monitor_name(const struct monitor_flags *flags,
		 const struct monitor_directory *directory, bool is_gmon,
		 uint64_t thread, char name[MONITOR_PATH_SIZE])
{
	bool has_directory = directory->path[0];
	bool has_pid = flags->pids == MONITOR_PIDS_ON ||
		       (flags->pids == MONITOR_PIDS_DEFAULT &&
			(has_directory || thread || is_child));
	struct text text;

	text_init(&text, name, MONITOR_PATH_SIZE);
	if (flags->directory || has_directory) {
		text_add(&text,
			 flags->directory ? flags->directory : directory->path);
		text_add(&text, "/");
	}
	if (!has_pid && !thread && !has_directory) {
		text_add(&text, is_gmon ? "gmon.out" : "mon.out");
		return text.cut ? -ENAMETOOLONG : 0;
	}
	if (has_pid) {
		text_add_number(&text, (uint64_t)sys_getpid());
		text_add(&text, ".");
	}
	if (thread) {
		text_add_number(&text, thread);
		text_add(&text, ".");
	}
	text_add(&text, program);
	return text.cut ? -ENAMETOOLONG : 0;
}
