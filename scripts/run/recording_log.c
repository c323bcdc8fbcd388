/*
 * What the library has logged in the processes.  A script executes the same program many
 * times, with the same messages: each is printed once.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "private.h"
#include "recording.h"
#include "recording_files.h"
#include "say.h"

#define COMMON_LOG_SIZE 65536
#define MESSAGES_MAX	50   /* those that are printed */
#define MESSAGES_KEPT	4096 /* those that are looked for among others */

/* A message, how many processes have logged it, and the last one. */
struct message {
	char *text;
	char process[32]; /* empty: in the text, or not needed */
	int count;
};

struct log {
	int processes;
	bool has_report;
	struct message *messages;
	size_t size, room;
	size_t others; /* for which there was no room */
};

static bool count_process(int directory, const char *name, void *data)
{
	(void)directory;
	(void)name;
	++*(int *)data;
	return true;
}

/* A full disk, missing debug information, names of a stripped program. */
static bool is_in_report(const char *line)
{
	static const char *const parts[] = {
		"no space left on the device: records may be lost",
		"no debug information, built without -g or stripped",
		" in the program or its libraries at the start",
	};

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		if (strstr(line, parts[i]) != NULL)
			return true;
	return false;
}

static struct message *find_message(struct log *log, const char *text)
{
	for (size_t i = 0; i < log->size; i++)
		if (strcmp(log->messages[i].text, text) == 0)
			return &log->messages[i];
	return NULL;
}

/* The place of the next one, or NULL. */
static struct message *new_message(struct log *log)
{
	size_t room = log->room > 0 ? 2 * log->room : 64;
	struct message *messages;

	if (log->size == MESSAGES_KEPT)
		return NULL;
	if (log->size == log->room) {
		messages = reallocarray(log->messages, room, sizeof(*messages));
		if (messages == NULL)
			return NULL;
		log->messages = messages;
		log->room = room;
	}
	return &log->messages[log->size];
}

static void note_process(struct message *message, const char *name)
{
	snprintf(message->process, sizeof(message->process), "%s", name);
}

/* Two directories may be of programs that one process has executed: PID.0, PID.1. */
static bool is_same_process(const char *one, const char *other)
{
	size_t length = strcspn(one, ".");

	return length == strcspn(other, ".") && !strncmp(one, other, length);
}

static void add_message(struct log *log, const char *name, const char *text)
{
	struct message *message = find_message(log, text);

	if (message != NULL) {
		message->count += !is_same_process(message->process, name);
		note_process(message, name);
		return;
	}
	message = new_message(log);
	text = message != NULL ? strdup(text) : NULL;
	if (text == NULL) {
		log->others++;
		return;
	}
	message->text = (char *)text;
	note_process(message, name);
	message->count = 1;
	log->size++;
}

/* @name is that of the process, or empty. */
static void add_lines(struct log *log, const char *name, char *line)
{
	char *next;

	for (; *line != '\0'; line = next) {
		next = strchrnul(line, '\n');
		if (*next != '\0')
			*next++ = '\0';
		if (*line != '\0' && !(log->has_report && is_in_report(line)))
			add_message(log, name, line);
	}
}

static bool add_process_log(int directory, const char *name, void *data)
{
	static struct shim_meta meta;
	struct log *log = data;
	size_t size;

	if (!recording_read_meta(directory, &meta))
		return true;
	size = meta.log_size;
	if (size > SHIM_META_LOG - 1)
		size = SHIM_META_LOG - 1;
	meta.log[size] = '\0';
	add_lines(log, log->processes > 1 ? name : "", meta.log);
	return true;
}

/* The messages of processes without a directory in the recording. */
static void add_common_log(struct log *log, const char *path)
{
	static char text[COMMON_LOG_SIZE];
	int above = private_open(AT_FDCWD, path), fd;

	if (above < 0)
		return;
	fd = recording_open_file(above, "log");
	close(above);
	if (fd < 0)
		return;
	text[recording_read_at(fd, text, sizeof(text) - 1, 0)] = '\0';
	close(fd);
	add_lines(log, "", text);
}

static void say_messages(const struct log *log)
{
	size_t more = log->others;

	for (size_t i = 0; i < log->size && i < MESSAGES_MAX; i++) {
		const struct message *message = &log->messages[i];

		if (message->process[0] == '\0')
			say("%s", message->text);
		else if (message->count > 1)
			say("%d processes: %s", message->count, message->text);
		else
			say("process %s: %s", message->process, message->text);
	}
	if (log->size > MESSAGES_MAX)
		more += log->size - MESSAGES_MAX;
	if (more > 0)
		say("... and %zu more messages; `profrun info` shows them",
		    more);
}

bool recording_say_log(const char *path, bool has_report)
{
	struct log log = { .has_report = has_report };
	size_t before;

	recording_each_process(path, count_process, &log.processes);
	recording_each_process(path, add_process_log, &log);
	before = log.size + log.others;
	add_common_log(&log, path);
	say_messages(&log);
	for (size_t i = 0; i < log.size; i++)
		free(log.messages[i].text);
	free(log.messages);
	return log.size + log.others > before;
}
