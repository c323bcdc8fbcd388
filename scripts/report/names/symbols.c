/*
 * Finds names for the addresses of objects.  Sandboxes read their files, one
 * for each file (names/sandbox.h, elf_names.c).  This file finds and opens the
 * files and checks the answers.
 *
 * A recording may name any file: it is used only if it is a regular file with
 * the recorded build-id.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/messages.h"
#include "base/names.h"
#include "names/demangle.h"
#include "names/elf_names.h"
#include "names/sandbox.h"
#include "names/symbols.h"

/* Limit of processes at a time: each holds the content of its file. */
#define OPEN_MAX 16
/* Limit for the answers about a file, in bytes: each name comes once, possibly
 * with the source's name. */
#define SAID_LEAST (64ull << 20)
#define SAID_TIMES 32
/* So many lines are requested one by one.  Beyond that, or if the process has
 * ended to make room for others, all lines of the object are requested. */
#define LINES_ALONE    64
#define DEMANGLERS_MAX 10

struct line {
	const char *file; /* NULL: unknown */
	int line;
	bool is_known; /* the line was requested already */
};

struct object_files {
	struct object *object;
	/* its fd is negative: the file must be opened again */
	struct sandbox sandbox;
	bool is_lost; /* reading the file failed */
	uint64_t said;
	uint64_t used;	    /* time of the last use, as a counter */
	const char **names; /* source files, by number */
	uint32_t name_count, name_room;
	struct line *lines; /* parallel to object->addresses */
	uint32_t lines_asked;
};

static bool network_allowed;

void symbols_allow_network(void)
{
	network_allowed = true;
}

void symbols_begin(void)
{
	sandbox_begin(elf_names_serve);
}

/* --- files --- */

/* Accepts ELF files only, because a recording could name a private file. */
static bool is_elf(int fd)
{
	char magic[4];

	return pread(fd, magic, sizeof(magic), 0) == sizeof(magic) &&
	       !memcmp(magic, "\177ELF", sizeof(magic));
}

/* A name that could be a device or a pipe is not opened for reading: opening
 * such a file may have an effect. */
static int open_regular(const char *path, uint64_t *size)
{
	struct stat info;
	char link[64];
	int fd, place;

	if (path[0] != '/')
		return -1;
	place = open(path, O_PATH | O_CLOEXEC);
	if (place < 0)
		return -1;
	if (fstat(place, &info) != 0 || !S_ISREG(info.st_mode) ||
	    info.st_size == 0) {
		close(place);
		return -1;
	}
	snprintf(link, sizeof(link), "/proc/self/fd/%d", place);
	fd = open(link, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	/* Without /proc, the name may refer to another file by now, which is
	 * harmless. */
	if (fd < 0)
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	close(place);
	*size = (uint64_t)info.st_size;
	if (fd < 0 || is_elf(fd))
		return fd;
	close(fd);
	return -1;
}

#define DEBUG_DIRECTORY "/usr/lib/debug"

/* The path where distributions put debug information. */
static const char *debug_path(const unsigned char *id, size_t size)
{
	char path[sizeof(DEBUG_DIRECTORY "/.build-id/") + 2 * NAMES_ID_MAX +
		  sizeof("/.debug")] = DEBUG_DIRECTORY "/.build-id/";
	size_t length = strlen(path), i;

	if (size < 2 || size > NAMES_ID_MAX)
		return NULL;
	for (i = 0; i < size; i++) {
		length += (size_t)sprintf(path + length, "%02x", id[i]);
		if (i == 0)
			path[length++] = '/';
	}
	strcpy(path + length, ".debug");
	return keep_text(path, SIZE_MAX);
}

/* --- files from servers, if the user allows it --- */

/* The type of libdebuginfod's find_executable and find_debuginfo. */
typedef int find_by_id(void *client, const unsigned char *id, int size,
		       char **path);

/* The type of its find_source. */
typedef int find_by_name(void *client, const unsigned char *id, int size,
			 const char *name, char **path);

static void *library, *client;

/* A function of the library, or NULL. */
static uintptr_t find_in_library(const char *name)
{
	void *(*begin)(void);

	if (!library) {
		library = dlopen("libdebuginfod.so.1", RTLD_LAZY);
		begin = library ? (void *(*)(void))(uintptr_t)dlsym(
					  library, "debuginfod_begin") :
				  NULL;
		client = begin ? begin() : NULL;
		if (!client)
			warn("--debuginfod: there is no libdebuginfod");
	}
	return client ? (uintptr_t)dlsym(library, name) : 0;
}

static const char *close_fetched(int fd, const char *path)
{
	if (fd >= 0)
		close(fd);
	return fd >= 0 ? path : NULL;
}

static const char *fetch(const char *what, const unsigned char *id, size_t size)
{
	find_by_id *find;
	char *path = NULL;
	int fd;

	if (!network_allowed || size == 0)
		return NULL;
	find = (find_by_id *)find_in_library(what);
	fd = find ? find(client, id, (int)size, &path) : -1;
	return close_fetched(fd, path);
}

const char *symbols_fetch_source(const struct object *object, const char *name)
{
	find_by_name *find;
	char *path = NULL;
	int fd;

	if (!network_allowed || object->build_id_size == 0)
		return NULL;
	find = (find_by_name *)find_in_library("debuginfod_find_source");
	fd = find ? find(client, object->build_id, (int)object->build_id_size,
			 name, &path) :
		    -1;
	return close_fetched(fd, path);
}

static const char *fetch_executable(const struct object *object)
{
	return fetch("debuginfod_find_executable", object->build_id,
		     object->build_id_size);
}

/* --- files for the sandboxes --- */

static const char *by_id(uint32_t number, const unsigned char *id, size_t size)
{
	switch (number) {
	case 0: return debug_path(id, size);
	case 1: return fetch("debuginfod_find_debuginfo", id, size);
	default: return NULL;
	}
}

/* A debug file beside the object, or where distributions put it.  @name comes
 * from the object. */
static const char *by_name(const struct object *object, uint32_t number,
			   const char *name)
{
	const char *slash = strrchr(object->path, '/');
	const char *directory = slash ? keep_text(object->path,
						  (size_t)(slash -
							   object->path)) :
					"";

	if (!*name || strchr(name, '/') || !slash)
		return NULL;
	switch (number) {
	case 0: return keep_format("%s/%s", directory, name);
	case 1: return keep_format("%s/.debug/%s", directory, name);
	case 2: return keep_format(DEBUG_DIRECTORY "%s/%s", directory, name);
	default: return NULL;
	}
}

/* A file shared by several debug files; distributions refer to it as
 * "../../.dwz/". */
static const char *by_shared_name(const char *name)
{
	if (name[0] == '/')
		return name;
	while (!strncmp(name, "../", 3))
		name += 3;
	return strstr(name, "..") ? NULL :
				    keep_format(DEBUG_DIRECTORY "/%s", name);
}

static const char *wanted_path(const struct object *object,
			       const struct names_answer *want,
			       const char *name, const unsigned char *id)
{
	switch (want->a) {
	case NAMES_DEBUG_BY_ID: return by_id(want->number, id, want->more_size);
	case NAMES_DEBUG_BY_NAME: return by_name(object, want->number, name);
	case NAMES_DEBUG_SHARED:
		return want->number == 0 ? debug_path(id, want->more_size) :
		       want->number == 1 ? by_shared_name(name) :
					   NULL;
	default: return NULL;
	}
}

/* Further files follow only if this one might not be the last. */
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
		path = wanted_path(files->object, &next, name, id);
		fd = path ? open_regular(path, &size) : -1;
	} while (fd < 0 && path && next.number++ < 8);
	if (fd >= 0)
		sandbox_allow(&files->sandbox, size);
	sandbox_send(&files->sandbox, &answer, sizeof(answer), fd);
	if (fd >= 0)
		close(fd);
}

/* --- answers --- */

/* Valid until the next answer. */
struct answer {
	struct names_answer head;
	char text[NAMES_TEXT_MAX + 1];
	char more[NAMES_TEXT_MAX + 1];
};

static uint64_t said_most(const struct object_files *files)
{
	return SAID_LEAST + SAID_TIMES * files->sandbox.bytes;
}

/* Returns false if there is no valid answer. */
static bool read_answer(struct object_files *files, struct answer *answer)
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

/* Handles one answer other than DONE; returns whether it is valid. */
typedef bool take_answer(struct object_files *files,
			 const struct answer *answer, void *context);

static void lose(struct object_files *files)
{
	const char *why = sandbox_blame(&files->sandbox);

	files->is_lost = true;
	if (files->object->path)
		warn("%s: %s: functions of it that have no name yet are shown "
		     "by address",
		     files->object->path, why);
}

/* Returns false if the process is lost; otherwise *@result is that of DONE. */
static bool read_answers(struct object_files *files, take_answer *take,
			 void *context, uint64_t *result)
{
	static struct answer answer;

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
				lose(files);
				return false;
			}
		}
	}
	lose(files);
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
	int fd = path ? open_regular(path, &size) : -1;

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
	if (!read_answers(files, NULL, NULL, &result))
		return NAMES_IS_NONE;
	if (result == NAMES_IS_RIGHT) {
		note_opened(files);
		return NAMES_IS_RIGHT;
	}
	sandbox_close(&files->sandbox);
	return result == NAMES_IS_OTHER ? NAMES_IS_OTHER : NAMES_IS_NONE;
}

/* If the object is gone, its debug file has the symbols, too. */
static enum names_opened open_any(struct object_files *files)
{
	const struct object *object = files->object;
	enum names_opened first = open_file(files, object->path),
			  result = first;

	if (result != NAMES_IS_RIGHT && !files->is_lost)
		result = open_file(files, debug_path(object->build_id,
						     object->build_id_size));
	if (result != NAMES_IS_RIGHT && !files->is_lost)
		result = open_file(files, fetch_executable(object));
	return result == NAMES_IS_RIGHT ? result : first;
}

static void open_object(struct object *object)
{
	struct object_files *files = allocate(1, sizeof(*files));
	enum names_opened result;

	object->opened = true;
	files->object = object;
	files->sandbox.fd = -1;
	if (!network_allowed)
		unsetenv("DEBUGINFOD_URLS");
	result = object->build_id_size <= NAMES_ID_MAX ? open_any(files) :
							 NAMES_IS_NONE;
	if (result == NAMES_IS_RIGHT) {
		object->files = files;
		return;
	}
	/* Memory without a file has no symbols, so no warning is needed. */
	if (!files->is_lost && object->path[0] == '/')
		warn("%s: %s: its functions are shown by address", object->path,
		     result == NAMES_IS_OTHER ?
			     "not the file that was recorded (its build-id differs)" :
			     "is not there, or no ELF file");
	free(files);
}

/* Returns false if the object's file has no sandbox. */
static bool is_open(struct object *object)
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

static void ask(struct object *object, enum names_kind kind,
		const uint64_t *addresses, uint32_t count, take_answer *take,
		void *context)
{
	struct object_files *files = object->files;
	struct names_request request = { .kind = kind,
					 .count = count,
					 .size = count * sizeof(*addresses) };
	uint64_t result;

	sandbox_send(&files->sandbox, &request, sizeof(request), -1);
	if (count)
		sandbox_send(&files->sandbox, addresses, request.size, -1);
	read_answers(files, take, context, &result);
}

/* Makes one request about the object; returns @unknown on failure. */
static uint64_t ask_one(struct object *object, enum names_kind kind,
			uint64_t number, take_answer *take, void *context,
			uint64_t unknown)
{
	struct object_files *files = object->files;
	struct names_request request = { .kind = kind, .size = number };
	uint64_t result;

	sandbox_send(&files->sandbox, &request, sizeof(request), -1);
	return read_answers(files, take, context, &result) ? result : unknown;
}

/* --- functions --- */

struct finding {
	struct symbol *symbols;
	size_t count;
};

static bool take_name(struct object_files *files, const struct answer *answer,
		      void *context)
{
	struct finding *finding = context;
	const struct names_answer *head = &answer->head;
	struct symbol *symbol = &finding->symbols[head->number];

	(void)files;
	if (head->kind != ANSWER_NAME || head->number >= finding->count ||
	    !*answer->text)
		return false;
	symbol->name = keep_text(answer->text, SIZE_MAX);
	symbol->source_name = *answer->more ?
				      keep_text(answer->more, SIZE_MAX) :
				      symbol->name;
	symbol->is_exact = head->a & NAMES_EXACT;
	symbol->is_global = head->a & NAMES_GLOBAL;
	symbol->has_others = head->a & NAMES_OTHERS;
	symbol->is_in_doubt = head->a & NAMES_DOUBT;
	return true;
}

static uint64_t *addresses_of(const void *records, size_t size, size_t count)
{
	uint64_t *addresses = allocate(count, sizeof(*addresses));
	size_t i;

	for (i = 0; i < count; i++)
		memcpy(&addresses[i], (const char *)records + i * size,
		       sizeof(*addresses));
	return addresses;
}

_Static_assert(offsetof(struct symbol, address) == 0 &&
		       offsetof(struct data_symbol, address) == 0,
	       "addresses_of");

void symbols_find(struct object *object, struct symbol *symbols, size_t count)
{
	struct finding finding = { symbols, count };

	object->addresses = addresses_of(symbols, sizeof(*symbols), count);
	object->address_count = (uint32_t)count;
	if (is_open(object))
		ask(object, NAMES_FIND, object->addresses, (uint32_t)count,
		    take_name, &finding);
}

struct listing {
	struct function_symbol *all;
	size_t count, room;
};

static bool take_function(struct object_files *files,
			  const struct answer *answer, void *context)
{
	struct listing *listing = context;
	const struct function_symbol *last =
		listing->count ? &listing->all[listing->count - 1] : NULL;

	(void)files;
	if (answer->head.kind != ANSWER_FUNCTION ||
	    (last && last->address >= answer->head.a))
		return false;
	GROW(listing->all, listing->count, listing->room);
	listing->all[listing->count++] = (struct function_symbol){
		.address = answer->head.a,
		.size = answer->head.b,
		.name = keep_text(answer->text, SIZE_MAX),
	};
	return true;
}

struct function_symbol *symbols_list(struct object *object, size_t *count)
{
	struct listing listing = { .all = NULL };

	if (is_open(object))
		ask(object, NAMES_LIST, NULL, 0, take_function, &listing);
	*count = listing.count;
	return listing.all;
}

/* --- names by which functions are called --- */

struct taking {
	void (*take)(void *context, uint32_t number, const char *name,
		     const char *source_name);
	void *context;
	uint32_t count;
};

static bool take_any_name(struct object_files *files,
			  const struct answer *answer, void *context)
{
	struct taking *taking = context;
	const char *name;

	(void)files;
	if (answer->head.kind != ANSWER_NAME ||
	    answer->head.number >= taking->count)
		return false;
	name = keep_text(answer->text, SIZE_MAX);
	taking->take(taking->context, answer->head.number, name,
		     *answer->more ? keep_text(answer->more, SIZE_MAX) : name);
	return true;
}

void symbols_names_at(struct object *object, const uint64_t *addresses,
		      uint32_t count,
		      void (*take)(void *context, uint32_t number,
				   const char *name, const char *source_name),
		      void *context)
{
	struct taking taking = { take, context, count };

	if (is_open(object))
		ask(object, NAMES_ALL, addresses, count, take_any_name,
		    &taking);
}

static bool take_called(struct object_files *files, const struct answer *answer,
			void *context)
{
	struct names *called = context;

	(void)files;
	if (answer->head.kind != ANSWER_NAME)
		return false;
	if (names_find(called, answer->text) == NONE)
		names_add(called, keep_text(answer->text, SIZE_MAX));
	return true;
}

void symbols_called_by_table(struct object *object, struct names *called)
{
	if (is_open(object))
		ask_one(object, NAMES_CALLED_BY_TABLE, 0, take_called, called,
			0);
}

void symbols_called_by_sites(struct object *object, struct names *called,
			     uint64_t *steps)
{
	uint64_t left;

	if (!is_open(object))
		return;
	left = ask_one(object, NAMES_CALLED_BY_SITES, *steps, take_called,
		       called, 0);
	*steps = left < *steps ? left : *steps;
}

/* --- contents of the file --- */

bool symbols_are_stripped(struct object *object)
{
	return object->files && is_open(object) &&
	       ask_one(object, NAMES_IS_STRIPPED, 0, NULL, NULL, 0);
}

bool symbols_have_lines(struct object *object)
{
	return !object->files || !is_open(object) ||
	       ask_one(object, NAMES_HAS_LINES, 0, NULL, NULL, 1);
}

/* --- variables --- */

struct finding_data {
	struct data_symbol *symbols;
	size_t count;
};

static bool take_variable(struct object_files *files,
			  const struct answer *answer, void *context)
{
	struct finding_data *finding = context;
	const struct names_answer *head = &answer->head;
	struct data_symbol *symbol = &finding->symbols[head->number];

	(void)files;
	if (head->kind != ANSWER_DATA || head->number >= finding->count ||
	    head->a > symbol->address)
		return false;
	symbol->start = head->a;
	symbol->name = keep_text(answer->text, SIZE_MAX);
	symbol->source_name = *answer->more ?
				      keep_text(answer->more, SIZE_MAX) :
				      symbol->name;
	return true;
}

void symbols_find_data(struct object *object, struct data_symbol *symbols,
		       size_t count)
{
	uint64_t *addresses = addresses_of(symbols, sizeof(*symbols), count);
	struct finding_data finding = { symbols, count };

	if (is_open(object))
		ask(object, NAMES_DATA, addresses, (uint32_t)count,
		    take_variable, &finding);
	free(addresses);
}

/* --- lines --- */

struct finding_lines {
	struct line *lines;
	size_t count;
};

/* Numbers the file if it is new; false: it cannot be. */
static bool read_line(struct object_files *files, const struct answer *answer,
		      size_t count, struct line *line)
{
	const struct names_answer *head = &answer->head;

	if (head->kind != ANSWER_LINE || head->number >= count ||
	    head->a > INT32_MAX || head->b > files->name_count ||
	    (head->b == files->name_count) != (*answer->text != '\0'))
		return false;
	if (*answer->text) {
		GROW(files->names, files->name_count, files->name_room);
		files->names[files->name_count++] = keep_text(answer->text,
							      SIZE_MAX);
	}
	line->file = files->names[head->b];
	line->line = (int)head->a;
	return true;
}

static bool take_line(struct object_files *files, const struct answer *answer,
		      void *context)
{
	struct finding_lines *finding = context;
	struct line line;

	if (!read_line(files, answer, finding->count, &line))
		return false;
	finding->lines[answer->head.number].file = line.file;
	finding->lines[answer->head.number].line = line.line;
	return true;
}

static void ask_lines(struct object *object, uint32_t first, uint32_t count)
{
	struct object_files *files = object->files;
	struct finding_lines finding = { files->lines + first, count };
	uint32_t i;

	if (is_open(object))
		ask(object, NAMES_LINES, object->addresses + first, count,
		    take_line, &finding);
	for (i = first; i < first + count; i++)
		files->lines[i].is_known = true;
}

static int compare_addresses(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

bool symbols_line(struct object *object, uint64_t address, const char **file,
		  int *line)
{
	struct object_files *files = object->files;
	const uint64_t *found;
	uint32_t i;

	if (!files || !object->address_count)
		return false;
	found = bsearch(&address, object->addresses, object->address_count,
			sizeof(address), compare_addresses);
	if (!found)
		return false;
	if (!files->lines)
		files->lines = allocate(object->address_count,
					sizeof(*files->lines));
	i = (uint32_t)(found - object->addresses);
	/* With many objects, reading the file again for each line would take
	 * long. */
	if (!files->lines[i].is_known && files->sandbox.fd >= 0 &&
	    files->lines_asked++ < LINES_ALONE)
		ask_lines(object, i, 1);
	if (!files->lines[i].is_known)
		ask_lines(object, 0, object->address_count);
	*file = files->lines[i].file;
	*line = files->lines[i].line;
	return *file != NULL;
}

/* --- frames --- */

struct taking_frames {
	void (*take)(void *context, uint32_t number, uint32_t id,
		     const struct frame_symbol *function);
	void *context;
	uint32_t count;
	struct frame_symbol *functions;
	uint32_t function_count, function_room;
};

static bool take_frame_function(struct taking_frames *taking,
				const struct answer *answer)
{
	const struct names_answer *head = &answer->head;

	if (head->b > INT32_MAX || (head->a == 0) != (*answer->text != '\0'))
		return false;
	GROW(taking->functions, taking->function_count, taking->function_room);
	taking->functions[taking->function_count++] = (struct frame_symbol){
		.start = head->a,
		.name = *answer->text ? keep_text(answer->text, SIZE_MAX) :
					NULL,
		.file = *answer->more ? keep_text(answer->more, SIZE_MAX) :
					NULL,
		.line = (int)head->b,
	};
	return true;
}

static bool take_frame(struct object_files *files, const struct answer *answer,
		       void *context)
{
	struct taking_frames *taking = context;
	const struct names_answer *head = &answer->head;

	(void)files;
	if (head->kind == ANSWER_FRAME_FUNCTION)
		return take_frame_function(taking, answer);
	if (head->kind != ANSWER_FRAME || head->number >= taking->count ||
	    head->a >= taking->function_count)
		return false;
	taking->take(taking->context, head->number, (uint32_t)head->a,
		     &taking->functions[head->a]);
	return true;
}

void symbols_frames(struct object *object, const uint64_t *addresses,
		    uint32_t count,
		    void (*take)(void *context, uint32_t number, uint32_t id,
				 const struct frame_symbol *function),
		    void *context)
{
	struct taking_frames taking = { .take = take,
					.context = context,
					.count = count };

	if (is_open(object))
		ask(object, NAMES_FRAMES, addresses, count, take_frame,
		    &taking);
	free(taking.functions);
}

/* --- places --- */

struct taking_places {
	void (*take)(void *context, uint32_t number, const char *file,
		     int line);
	void *context;
	uint32_t count;
};

static bool take_place(struct object_files *files, const struct answer *answer,
		       void *context)
{
	struct taking_places *taking = context;
	struct line line;

	if (!read_line(files, answer, taking->count, &line))
		return false;
	taking->take(taking->context, answer->head.number,
		     line.line > 0 ? line.file : NULL, line.line);
	return true;
}

void symbols_places(struct object *object, const uint64_t *addresses,
		    uint32_t count,
		    void (*take)(void *context, uint32_t number,
				 const char *file, int line),
		    void *context)
{
	struct taking_places taking = { take, context, count };

	if (is_open(object))
		ask(object, NAMES_PLACES, addresses, count, take_place,
		    &taking);
}

/* --- code --- */

struct taking_code {
	struct instruction *instructions;
	uint32_t count, room;
	uint64_t begin, end;
};

/* (Addresses rise, so that there cannot be more than bytes.) */
static bool take_instruction(struct object_files *files,
			     const struct answer *answer, void *context)
{
	struct taking_code *taking = context;
	const struct names_answer *head = &answer->head;

	(void)files;
	if (head->kind != ANSWER_INSTRUCTION || head->a < taking->begin ||
	    head->a >= taking->end)
		return false;
	taking->begin = head->a + 1;
	GROW(taking->instructions, taking->count, taking->room);
	taking->instructions[taking->count++] = (struct instruction){
		head->a, head->b, keep_text(answer->text, SIZE_MAX)
	};
	return true;
}

enum symbols_code symbols_code(struct object *object, uint64_t begin,
			       uint64_t end, struct instruction **instructions,
			       uint32_t *count)
{
	struct taking_code taking = { .begin = begin, .end = end };
	const uint64_t addresses[2] = { begin, end };
	struct names_request request = { .kind = NAMES_CODE,
					 .count = 2,
					 .size = sizeof(addresses) };
	uint64_t result = NAMES_CODE_IS_MISSING;

	*instructions = NULL;
	*count = 0;
	if (!is_open(object))
		return CODE_MISSING;
	sandbox_send(&object->files->sandbox, &request, sizeof(request), -1);
	sandbox_send(&object->files->sandbox, addresses, sizeof(addresses), -1);
	read_answers(object->files, take_instruction, &taking, &result);
	*instructions = taking.instructions;
	*count = taking.count;
	return taking.count			? CODE_READ :
	       result == NAMES_CODE_IS_NOT_READ ? CODE_NO_READER :
						  CODE_MISSING;
}

/* --- names from the recording --- */

static bool take_source_name(struct object_files *files,
			     const struct answer *answer, void *context)
{
	const char **name = context;

	(void)files;
	if (answer->head.kind != ANSWER_NAME)
		return false;
	if (*answer->more)
		*name = keep_text(answer->more, SIZE_MAX);
	return true;
}

const char *demangle(const char *name)
{
	static struct object nothing;
	static struct object_files files = { .object = &nothing,
					     .sandbox = { .fd = -1 } };
	static unsigned begun;
	struct names_request request = { .kind = NAMES_DEMANGLE,
					 .size = strlen(name) };
	uint64_t result;

	if (!is_mangled(name) || request.size > NAMES_TEXT_MAX)
		return name;
	if (files.sandbox.fd < 0 &&
	    (begun++ == DEMANGLERS_MAX || !sandbox_open(&files.sandbox)))
		return name;
	files.said = 0;
	sandbox_send(&files.sandbox, &request, sizeof(request), -1);
	sandbox_send(&files.sandbox, name, request.size, -1);
	if (!read_answers(&files, take_source_name, &name, &result))
		warn("%s: the demangler was ended: %s", name,
		     "names like it are shown as they are");
	return name;
}
