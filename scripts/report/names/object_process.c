/*
 * Talks to the sandboxes that read files of objects, one for each file (names/sandbox.h,
 * elf_names.c): opens them, sends requests, and checks the size of the answers.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <shim/attach.h>

#include "base/memory.h"
#include "base/messages.h"
#include "base/text.h"
#include "names/object_file.h"
#include "names/object_process.h"
#include "names/symbols.h"

/* Limit of processes at a time: each holds the content of its file. */
#define OPEN_MAX 16
/* Limit for the answers about a file, in bytes: each name comes once, possibly
 * with the source's name. */
#define SAID_LEAST (64ull << 20)
#define SAID_TIMES 32

/* --- files for the sandboxes --- */

/* Further files follow only if this one might not be the last. */
/* Below the other root directory, or by the name. */
static int open_either(const char *path, uint64_t *size)
{
	const char *below = object_file_below(path);
	int fd = below ? object_file_open(below, size) : -1;

	return fd >= 0 ? fd : object_file_open(path, size);
}

static void give_file(struct object_files *files,
		      const struct names_answer *want, const char *name,
		      const unsigned char *id)
{
	struct names_request answer = { .kind = NAMES_FILE };
	struct names_answer next = *want;
	const char *path;
	uint64_t size = 0;
	int fd = -1;

	do {
		path = object_file_wanted_path(files->object, &next, name, id);
		fd = path ? open_either(path, &size) : -1;
	} while (fd < 0 && path && next.number++ < 8);
	if (fd >= 0)
		sandbox_allow(&files->sandbox, size);
	sandbox_send(&files->sandbox, &answer, sizeof(answer), fd);
	if (fd >= 0)
		close(fd);
}

/* --- answers --- */

static uint64_t said_most(const struct object_files *files)
{
	return SAID_LEAST + SAID_TIMES * files->sandbox.bytes;
}

/* Returns false if there is no valid answer. */
static bool read_answer(struct object_files *files,
			struct object_answer *answer)
{
	const struct names_answer *head = &answer->head;
	FILE *in = files->sandbox.in;

	if (fread(&answer->head, sizeof(answer->head), 1, in) != 1 ||
	    head->text_size > NAMES_TEXT_MAX ||
	    head->more_size > NAMES_TEXT_MAX ||
	    fread(answer->text, 1, head->text_size, in) != head->text_size ||
	    fread(answer->more, 1, head->more_size, in) != head->more_size)
		return false;
	answer->text[head->text_size] = '\0';
	answer->more[head->more_size] = '\0';
	files->said += sizeof(*head) + head->text_size + head->more_size;
	return files->said <= said_most(files);
}

static void mark_lost(struct object_files *files)
{
	const char *why = sandbox_blame(&files->sandbox);

	files->is_lost = true;
	if (files->object->path)
		warn("%s: %s: functions of it that have no name yet are shown "
		     "by address",
		     files->object->path, why);
}

bool object_process_read(struct object_files *files, object_take_answer *take,
			 void *context, uint64_t *result)
{
	static struct object_answer answer;

	while (read_answer(files, &answer)) {
		switch (answer.head.kind) {
		case ANSWER_DONE: *result = answer.head.a; return true;
		case ANSWER_NOTE:
			warn("%s: %s: some functions may have no name or line",
			     files->object->path, answer.text);
			break;
		case ANSWER_WANT:
			give_file(files, &answer.head, answer.text,
				  (const unsigned char *)answer.more);
			break;
		default:
			if (!take || !take(files, &answer, context)) {
				mark_lost(files);
				return false;
			}
		}
	}
	mark_lost(files);
	return false;
}

/* --- sandboxes of objects --- */

static struct object_files *opened[OPEN_MAX];
static uint64_t now;

static void forget(unsigned i)
{
	sandbox_close(&opened[i]->sandbox);
	opened[i] = NULL;
}

/* If all sandboxes are in use, replaces the least recently used one. */
static void note_opened(struct object_files *files)
{
	unsigned i, oldest = 0;

	for (i = 0; i < OPEN_MAX; i++) {
		if (opened[i] && opened[i]->sandbox.fd < 0)
			opened[i] = NULL;
		if (!opened[i]) {
			opened[i] = files;
			return;
		}
		if (opened[i]->used < opened[oldest]->used)
			oldest = i;
	}
	forget(oldest);
	opened[oldest] = files;
}

/* Opens @path and finds out whether it is the object's file. */
static enum names_opened open_file(struct object_files *files, const char *path)
{
	const struct object *object = files->object;
	struct names_request request = { .kind = NAMES_OPEN,
					 .size = object->build_id_size };
	uint64_t size, result;
	int fd = path ? object_file_open(path, &size) : -1;

	if (fd < 0)
		return NAMES_IS_NONE;
	if (!sandbox_open(&files->sandbox)) {
		close(fd);
		return NAMES_IS_NONE;
	}
	files->said = 0;
	files->name_count = 0;
	sandbox_allow(&files->sandbox, size);
	sandbox_send(&files->sandbox, &request, sizeof(request), fd);
	sandbox_send(&files->sandbox, object->build_id, object->build_id_size,
		     -1);
	close(fd);
	if (!object_process_read(files, NULL, NULL, &result))
		return NAMES_IS_NONE;
	if (result == NAMES_IS_RIGHT) {
		note_opened(files);
		return NAMES_IS_RIGHT;
	}
	sandbox_close(&files->sandbox);
	return result == NAMES_IS_OTHER ? NAMES_IS_OTHER : NAMES_IS_NONE;
}

/* The same for the file below the other root directory and by the name; one of another
 * program is in the way. */
static enum names_opened open_each(struct object_files *files, const char *path)
{
	const char *below = path ? object_file_below(path) : NULL;
	enum names_opened first = open_file(files, below), result = first;

	if (first == NAMES_IS_OTHER)
		files->other = below;
	if (result != NAMES_IS_RIGHT && !files->is_lost)
		result = open_file(files, path);
	return result == NAMES_IS_NONE ? first : result;
}

/* If the object is gone, its debug file has the symbols, too. */
static enum names_opened open_any(struct object_files *files)
{
	const struct object *object = files->object;
	enum names_opened first = open_each(files, object->path),
			  result = first;

	if (result != NAMES_IS_RIGHT && !files->is_lost)
		result = open_each(
			files, object_file_debug_path(object->build_id,
						      object->build_id_size));
	if (result != NAMES_IS_RIGHT && !files->is_lost)
		result = open_file(files, object_file_fetch_executable(object));
	return result == NAMES_IS_RIGHT ? result : first;
}

static void open_object(struct object *object)
{
	struct object_files *files = allocate(1, sizeof(*files));
	enum names_opened result;

	object->opened = true;
	files->object = object;
	files->sandbox.fd = -1;
	if (!object_file_network_allowed())
		unsetenv("DEBUGINFOD_URLS");
	result = object->build_id_size <= NAMES_ID_MAX ? open_any(files) :
							 NAMES_IS_NONE;
	if (result == NAMES_IS_RIGHT) {
		object->files = files;
		return;
	}
	/* Memory without a file has no symbols.  shim's own library, whose name an attach
	 * may have deleted, is no part of the program. */
	if (!files->is_lost && object->path[0] == '/' &&
	    strncmp(base_name(object->path), SHIM_ATTACH_NAME,
		    strlen(SHIM_ATTACH_NAME)) != 0)
		warn("%s: %s: its functions are shown by address",
		     files->other ? files->other : object->path,
		     result == NAMES_IS_OTHER ?
			     "not the file that was recorded (its build-id differs)" :
			     "is not there, or no ELF file");
	free(files);
}

bool object_process_is_open(struct object *object)
{
	struct object_files *files;

	if (!object->opened)
		open_object(object);
	files = object->files;
	if (!files || files->is_lost)
		return false;
	files->used = ++now;
	return files->sandbox.fd >= 0 || open_any(files) == NAMES_IS_RIGHT;
}

void object_process_ask(struct object *object, enum names_kind kind,
			const uint64_t *addresses, uint32_t count,
			object_take_answer *take, void *context)
{
	struct object_files *files = object->files;
	struct names_request request = { .kind = kind,
					 .count = count,
					 .size = count * sizeof(*addresses) };
	uint64_t result;

	sandbox_send(&files->sandbox, &request, sizeof(request), -1);
	if (count)
		sandbox_send(&files->sandbox, addresses, request.size, -1);
	object_process_read(files, take, context, &result);
}

uint64_t object_process_ask_one(struct object *object, enum names_kind kind,
				uint64_t number, object_take_answer *take,
				void *context, uint64_t unknown)
{
	struct object_files *files = object->files;
	struct names_request request = { .kind = kind, .size = number };
	uint64_t result;

	sandbox_send(&files->sandbox, &request, sizeof(request), -1);
	return object_process_read(files, take, context, &result) ? result :
								    unknown;
}
