/*
 * Reads the dump of a JIT.  The program wrote it: the first record that cannot be is the
 * end of it.
 *
 * V8 has two peculiarities.  It adds the size of an ELF header to the addresses of all
 * lines, for the sake of perf.  And it writes names of files out of memory that it has
 * freed: their bytes are others, also zeros, but their length is right.  So a name ends
 * where the next address is one of the code.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/names.h"
#include "common/jitdump.h"
#include "read/files.h"
#include "read/jit_dump.h"

#define NAME_MOST  4096
#define ELF_HEADER 0x40

struct reading {
	struct jit_map *map;
	const unsigned char *at, *end;
	struct names files;
	struct map latest; /* address, to the code that was made there last */
	/* The lines before a load: their record, or NULL. */
	const unsigned char *lines;
	uint64_t shift; /* of the addresses of lines */
};

/* --- records --- */

/* The size of the record at @at, or 0: there is no whole one. */
static uint32_t record_size(const struct reading *reading)
{
	struct jitdump_record head;

	if ((size_t)(reading->end - reading->at) < sizeof(head))
		return 0;
	memcpy(&head, reading->at, sizeof(head));
	return head.size >= sizeof(head) &&
			       head.size <= reading->end - reading->at ?
		       head.size :
		       0;
}

static uint32_t record_kind(const unsigned char *record)
{
	struct jitdump_record head;

	memcpy(&head, record, sizeof(head));
	return head.kind;
}

/* Copies the fixed part of a record, if it is that large. */
static bool take(const unsigned char *record, void *fixed, size_t size)
{
	struct jitdump_record head;

	memcpy(&head, record, sizeof(head));
	if (head.size < size)
		return false;
	memcpy(fixed, record, size);
	return true;
}

/* --- lines --- */

struct line_walk {
	const unsigned char *at, *end;
	uint64_t left;
	uint64_t low, high; /* the addresses that can be right */
	const char
		*file; /* of the last line, in the record; NULL: unreadable */
	struct jitdump_line line;
};

static bool begin_lines(struct line_walk *walk, const unsigned char *record,
			uint64_t *address)
{
	struct jitdump_lines head;

	if (!take(record, &head, sizeof(head)))
		return false;
	*walk = (struct line_walk){ .at = record + sizeof(head),
				    .end = record + head.head.size,
				    .left = head.count,
				    .high = UINT64_MAX };
	*address = head.address;
	return true;
}

static bool is_line(const struct line_walk *walk, const unsigned char *at)
{
	uint64_t address;

	if ((size_t)(walk->end - at) <= sizeof(walk->line))
		return false;
	memcpy(&address, at, sizeof(address));
	return address >= walk->low && address < walk->high;
}

/* The end of the name at @name, with its NUL, or NULL. */
static const unsigned char *find_end(const struct line_walk *walk,
				     const unsigned char *name)
{
	const unsigned char *end = memchr(name, 0, (size_t)(walk->end - name));
	const unsigned char *last = name + NAME_MOST < walk->end ?
					    name + NAME_MOST :
					    walk->end;

	while (end && walk->left > 1 && end < last && !is_line(walk, end + 1))
		end++;
	return end && end < last ? end + 1 : NULL;
}

static bool next_line(struct line_walk *walk)
{
	const unsigned char *name = walk->at + sizeof(walk->line), *end;

	if (walk->left == 0 || !is_line(walk, walk->at))
		return false;
	end = find_end(walk, name);
	if (!end)
		return false;
	memcpy(&walk->line, walk->at, sizeof(walk->line));
	if (end - name != 2 || *name != 0xff)
		walk->file = *name < ' ' || name + strlen((char *)name) + 1 !=
						     end ?
				     NULL :
				     (const char *)name;
	walk->at = end;
	walk->left--;
	return true;
}

/* Whether the lines of every record begin so far behind its code. */
static uint64_t find_shift(struct reading reading)
{
	struct line_walk walk;
	uint64_t address;
	uint32_t size;
	bool is_shifted = false;

	for (; (size = record_size(&reading)) != 0; reading.at += size) {
		if (record_kind(reading.at) != JITDUMP_LINES ||
		    !begin_lines(&walk, reading.at, &address))
			continue;
		/* (The lowest address comes first in practice.) */
		if (!next_line(&walk))
			continue;
		if (walk.line.address - address < ELF_HEADER)
			return 0;
		is_shifted = true;
	}
	return is_shifted ? ELF_HEADER : 0;
}

/* The file in a name of V8, "JS:*work /home/me/app.js:10:2", or NULL. */
static const char *file_in_name(const char *name)
{
	const char *file = strrchr(name, ' '), *end = name + strlen(name);
	int colons = 0;

	while (file && end > file && colons < 2) {
		end--;
		if (*end == ':')
			colons++;
		else if (*end < '0' || *end > '9')
			return NULL;
	}
	return colons == 2 ? keep_text(file + 1, (size_t)(end - file - 1)) :
			     NULL;
}

/* (The names are in the dump, which will be unmapped.) */
static const char *file_of(struct reading *reading, const struct jit_code *code,
			   const char *name)
{
	uint32_t file;

	if (!name)
		name = file_in_name(code->name);
	if (!name || !*name)
		return NULL;
	file = names_find(&reading->files, name);
	if (file == NONE)
		file = names_add(&reading->files, keep_text(name, SIZE_MAX));
	return reading->files.text[file];
}

static int compare_lines(const void *left, const void *right)
{
	const struct jit_line *a = left, *b = right;

	return (a->offset > b->offset) - (a->offset < b->offset);
}

static void add_lines(struct reading *reading, struct jit_code *code)
{
	struct jit_map *map = reading->map;
	uint32_t first = map->line_count;
	struct line_walk walk;
	uint64_t address;

	if (!reading->lines || !begin_lines(&walk, reading->lines, &address) ||
	    address != code->begin)
		return;
	walk.low = code->begin + reading->shift;
	walk.high = code->end + reading->shift;
	while (next_line(&walk)) {
		if (walk.line.line > INT32_MAX)
			continue;
		GROW(map->lines, map->line_count, map->line_room);
		map->lines[map->line_count++] = (struct jit_line){
			.offset = walk.line.address - walk.low,
			.file = file_of(reading, code, walk.file),
			.line = (int)walk.line.line,
		};
	}
	code->first_line = first;
	code->line_count = map->line_count - first;
	if (code->line_count)
		qsort(map->lines + first, code->line_count, sizeof(*map->lines),
		      compare_lines);
}

/* --- code --- */

static void add_code(struct reading *reading, const struct jit_code *code)
{
	map_set(&reading->latest, code->begin, reading->map->count);
	jit_map_add(reading->map, code);
}

static void read_load(struct reading *reading, const unsigned char *record)
{
	struct jitdump_load load;
	struct jit_code code;
	const char *name, *end;

	if (!take(record, &load, sizeof(load)) || load.size == 0 ||
	    load.address + load.size < load.address)
		return;
	name = (const char *)record + sizeof(load);
	end = memchr(name, '\0', load.head.size - sizeof(load));
	if (!end || end == name || end - name > NAME_MOST)
		return;
	code = (struct jit_code){
		.begin = load.address,
		.end = load.address + load.size,
		.name = keep_text(name, SIZE_MAX),
	};
	add_lines(reading, &code);
	add_code(reading, &code);
}

static void read_move(struct reading *reading, const unsigned char *record)
{
	struct jitdump_move move;
	struct jit_code code;
	uint32_t from;

	if (!take(record, &move, sizeof(move)))
		return;
	from = map_get(&reading->latest, move.from);
	if (from == NONE)
		return;
	code = reading->map->code[from];
	code.end = move.to + (code.end - code.begin);
	code.begin = move.to;
	if (code.end > code.begin)
		add_code(reading, &code);
}

static bool read_head(struct reading *reading)
{
	struct jitdump_head head;

	if ((size_t)(reading->end - reading->at) < sizeof(head))
		return false;
	memcpy(&head, reading->at, sizeof(head));
	if (head.magic != JITDUMP_MAGIC || head.version != JITDUMP_VERSION ||
	    head.size < sizeof(head) || head.size > reading->end - reading->at)
		return false;
	reading->at += head.size;
	return true;
}

static void read_records(struct reading *reading)
{
	uint32_t size;

	reading->shift = find_shift(*reading);
	for (; (size = record_size(reading)) != 0; reading->at += size)
		switch (record_kind(reading->at)) {
		case JITDUMP_LINES: reading->lines = reading->at; break;
		case JITDUMP_LOAD:
			read_load(reading, reading->at);
			reading->lines = NULL;
			break;
		case JITDUMP_MOVE: read_move(reading, reading->at); break;
		}
}

void jit_dump_read(struct jit_map *map, int directory, const char *name)
{
	struct reading reading = { .map = map };
	const unsigned char *data;
	uint64_t size;
	int fd;

	if (!has_file(directory, "jit-dump"))
		return;
	fd = open_in(directory, "jit-dump", name);
	if (fd < 0)
		return;
	data = map_file(fd, name, &size);
	close(fd);
	if (!data)
		return;
	reading.at = data;
	reading.end = data + size;
	if (read_head(&reading))
		read_records(&reading);
	unmap_file(data, size);
	map_free(&reading.latest);
	names_free(&reading.files);
}
