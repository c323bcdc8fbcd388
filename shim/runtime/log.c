/*
 * The log of the recording.  Lines that shim logs before the recording exists wait in a
 * buffer.  If the recording cannot begin, shim prints them to standard error.
 */
#include "runtime/log.h"

#include "os/sys.h"
#include "os/text.h"
#include "os/trust.h"
#include "runtime/config.h"

#include <errno.h>
#include <shim/format.h>
#include <stdarg.h>

#include <shim/banned.h>

#define LOG_LINE 256
/* In SHIM_SPEAK, after the process. */
#define SPEAK_SETTINGS ":settings"

static char waiting[2048];
static uint32_t waiting_size;
static struct shim_meta *meta_of_log;
/* Lines about settings, kept until log_speak(). */
static char about_settings[2048];
static uint32_t about_settings_size;

/* The file of standard error at the start.  The program may close descriptor 2. */
static struct sys_status standard_error;
static bool is_started, is_silent;

void log_start(void)
{
	if (is_started)
		return;
	is_started = true;
	if (sys_get_status(2, &standard_error) < 0)
		standard_error = (struct sys_status){ .mode = 0 };
}

void log_be_silent(void)
{
	is_silent = true;
}

/* Whether descriptor 2 is still the same file, and a write would not wait for a reader. */
static bool has_standard_error(void)
{
	struct sys_status now;

	log_start();
	return standard_error.mode != 0 && sys_get_status(2, &now) == 0 &&
	       now.device == standard_error.device &&
	       now.inode == standard_error.inode && sys_is_writable(2);
}

static void print_line(const char *text, uint32_t size)
{
	static const char name[] = "shim: ";
	char memory[sizeof(name) + LOG_LINE];
	struct text line;

	if (is_silent || !has_standard_error())
		return;
	text_init(&line, memory, sizeof(memory));
	text_add(&line, name);
	text_add_part(&line, text, size);
	sys_write(2, line.start, line.length);
}

static void append_to_buffer(char *memory, uint32_t room, uint32_t *size,
			     const char *line, uint32_t length)
{
	uint32_t at = __atomic_fetch_add(size, length, __ATOMIC_RELAXED);

	for (uint32_t i = 0; i < length && at + i < room; i++)
		memory[at + i] = line[i];
}

static void add_line(const char *line, uint32_t length)
{
	if (meta_of_log)
		append_to_buffer(meta_of_log->log, sizeof(meta_of_log->log),
				 &meta_of_log->log_size, line, length);
	else
		append_to_buffer(waiting, sizeof(waiting), &waiting_size, line,
				 length);
	if (config.verbose[0] == '1')
		print_line(line, length);
}

static void log_arguments(const char *format, va_list arguments)
{
	char memory[LOG_LINE];
	struct text line;

	text_init(&line, memory, sizeof(memory) - 1);
	for (; *format; format++) {
		if (format[0] == '%' && format[1] == 's') {
			text_add_harmless(&line,
					  va_arg(arguments, const char *));
			format++;
		} else {
			text_add_part(&line, format, 1);
		}
	}
	memory[line.length++] = '\n';
	add_line(memory, (uint32_t)line.length);
}

void log_line(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	log_arguments(format, arguments);
	va_end(arguments);
}

uint32_t log_end(void)
{
	return meta_of_log ? meta_of_log->log_size : waiting_size;
}

static uint32_t smaller(size_t a, size_t b)
{
	return (uint32_t)(a < b ? a : b);
}

/* All lines; *@end is their size. */
static const char *all_lines(uint32_t *end)
{
	*end = meta_of_log ? smaller(meta_of_log->log_size,
				     sizeof(meta_of_log->log)) :
			     smaller(waiting_size, sizeof(waiting));
	return meta_of_log ? meta_of_log->log : waiting;
}

void log_copy(uint32_t since, struct text *text)
{
	uint32_t end;
	const char *lines = all_lines(&end);

	for (uint32_t at = since; at < end; at++)
		if (lines[at] != '\n')
			text_add_part(text, lines + at, 1);
		else if (at + 1 < end)
			text_add(text, "; ");
}

void log_about_setting(uint32_t since)
{
	uint32_t end;
	const char *text = all_lines(&end);

	if (since < end)
		append_to_buffer(about_settings, sizeof(about_settings),
				 &about_settings_size, text + since,
				 end - since);
}

void log_setting(const char *format, ...)
{
	uint32_t since = log_end();
	va_list arguments;

	va_start(arguments, format);
	log_arguments(format, arguments);
	va_end(arguments);
	log_about_setting(since);
}

/* Whether this is the process that profrun has started; @rest is then what it has to say
 * beside the reason why it cannot record. */
static bool is_speaker(const char **rest)
{
	*rest = config.speak;
	return text_read_decimal(rest) == (uint64_t)sys_getpid();
}

/* Whether shim must print lines about settings.  profrun prints the log at the end, but
 * `profrun record` cannot, because it has become the program. */
static bool must_print_settings(void)
{
	const char *rest;

	if (config.verbose[0] == '1')
		return false;
	return config.dir[0] != '/' ||
	       (is_speaker(&rest) && text_equal(rest, SPEAK_SETTINGS));
}

/* What processes print that the program starts is the program's output. */
static bool must_print_reason(void)
{
	const char *rest;

	return config.speak[0] == '\0' || is_speaker(&rest);
}

static void print_lines(const char *text, uint32_t size)
{
	uint32_t length;

	for (uint32_t at = 0; at < size; at += length) {
		length = 0;
		while (at + length < size && text[at + length++] != '\n')
			continue;
		print_line(text + at, length);
	}
}

void log_speak(void)
{
	if (must_print_settings())
		print_lines(about_settings, smaller(about_settings_size,
						    sizeof(about_settings)));
	about_settings_size = 0;
}

void log_error(const char *format, const char *name, int error)
{
	char memory[224];
	struct text line;

	text_init(&line, memory, sizeof(memory));
	for (; *format; format++) {
		if (format[0] == '%' && format[1] == 's') {
			text_add(&line, name);
			format++;
		} else {
			text_add_part(&line, format, 1);
		}
	}
	log_line("%s: %s", memory, log_reason(error));
}

void log_to(struct shim_meta *meta)
{
	meta_of_log = meta;
	if (meta && waiting_size > 0) {
		uint32_t size = waiting_size < sizeof(waiting) ?
					waiting_size :
					(uint32_t)sizeof(waiting);

		append_to_buffer(meta->log, sizeof(meta->log), &meta->log_size,
				 waiting, size);
		waiting_size = 0;
	}
}

const char *log_waiting(size_t *size)
{
	*size = waiting_size < sizeof(waiting) ? waiting_size : sizeof(waiting);
	return waiting;
}

static void print_waiting(void)
{
	size_t size;
	const char *text = log_waiting(&size);

	if (config.verbose[0] != '1')
		print_lines(text, (uint32_t)size);
}

void log_give_up(void)
{
	if (is_silent)
		return;
	if (must_print_reason())
		print_waiting();
	waiting_size = 0;
	about_settings_size = 0;
}

void log_end_program(void)
{
	print_waiting();
	sys_end_process(127);
}

const char *log_reason(int error)
{
	if (trust_reason(error))
		return trust_reason(error);
	switch (-error) {
	case ENOSPC: return "no space left on the device";
	case EDQUOT: return "the disk quota is used up";
	case EFBIG: return "the file size limit (RLIMIT_FSIZE) is reached";
	case ENOMEM: return "no memory or address space left (RLIMIT_AS?)";
	case EACCES: return "permission denied";
	case EPERM: return "not permitted";
	case EROFS: return "the file system is read-only";
	case ENOENT: return "no such file or directory";
	case ENOTDIR: return "not a directory";
	case EEXIST: return "it exists already";
	case EMFILE: return "too many open files in this process";
	case ENFILE: return "too many open files in the system";
	case ENAMETOOLONG: return "the name is too long";
	case ELOOP: return "a symbolic link";
	case EAGAIN: return "resources are exhausted for now";
	case EIO: return "input/output error";
	default: return "unexpected error";
	}
}
