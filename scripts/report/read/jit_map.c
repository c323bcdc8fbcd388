/*
 * Reads the map that profrun kept of a process with a JIT, and what it kept of the dump
 * (jit_dump.c).  The program wrote them: lines that are none are left out.  Code that was
 * made later may use the addresses of earlier code.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "read/files.h"
#include "read/jit_dump.h"
#include "read/jit_map.h"

#define NAME_MOST 4096
/* Code that overlaps more pieces of other code is not found. */
#define OVERLAPS 64

static int compare_code(const void *left, const void *right)
{
	const struct jit_code *a = left, *b = right;

	if (a->begin != b->begin)
		return a->begin < b->begin ? -1 : 1;
	return (a->order > b->order) - (a->order < b->order);
}

/* Reads a hexadecimal number before a space; NULL: there is none. */
static const char *read_number(const char *at, const char *end,
			       uint64_t *number)
{
	const char *begin = at;

	*number = 0;
	for (; at < end && at - begin < 18; at++) {
		int digit = *at >= '0' && *at <= '9' ? *at - '0' :
			    *at >= 'a' && *at <= 'f' ? *at - 'a' + 10 :
			    *at >= 'A' && *at <= 'F' ? *at - 'A' + 10 :
						       -1;

		/* "0x" is written by some. */
		if (at == begin + 1 && (*at == 'x' || *at == 'X'))
			continue;
		if (digit < 0)
			break;
		*number = *number << 4 | (uint64_t)digit;
	}
	return at > begin && at < end && *at == ' ' ? at + 1 : NULL;
}

void jit_map_add(struct jit_map *map, const struct jit_code *code)
{
	GROW(map->code, map->count, map->room);
	map->code[map->count] = *code;
	map->code[map->count].order = map->count;
	map->count++;
}

static void read_line(struct jit_map *map, const char *at, const char *end)
{
	uint64_t begin, size;

	at = read_number(at, end, &begin);
	at = at ? read_number(at, end, &size) : NULL;
	if (!at || at == end || end - at > NAME_MOST || size == 0 ||
	    memchr(at, '\0', (size_t)(end - at)) || begin + size < begin)
		return;
	jit_map_add(map, &(struct jit_code){
				 .begin = begin,
				 .end = begin + size,
				 .name = keep_text(at, (size_t)(end - at)),
			 });
}

static void read_map(struct jit_map *map, int directory, const char *name)
{
	const char *data, *at, *end, *next;
	uint64_t size;
	int fd;

	if (!has_file(directory, "jit-map"))
		return;
	fd = open_in(directory, "jit-map", name);
	if (fd < 0)
		return;
	data = (const char *)map_file(fd, name, &size);
	close(fd);
	if (!data)
		return;
	for (at = data, end = data + size; at < end; at = next) {
		next = memchr(at, '\n', (size_t)(end - at));
		read_line(map, at, next ? next : end);
		next = next ? next + 1 : end;
	}
	unmap_file((const unsigned char *)data, size);
}

void jit_map_read(struct jit_map *map, int directory, const char *path)
{
	read_map(map, directory, keep_format("%s/jit-map", path));
	jit_dump_read(map, directory, keep_format("%s/jit-dump", path));
}

void jit_map_sort(struct jit_map *map)
{
	if (map->count)
		qsort(map->code, map->count, sizeof(*map->code), compare_code);
}

const struct jit_code *jit_map_find(const struct jit_map *map, uint64_t address)
{
	uint32_t low = 0, high = map->count, middle, i;
	const struct jit_code *found = NULL;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (map->code[middle].begin <= address)
			low = middle + 1;
		else
			high = middle;
	}
	for (i = low; i > 0 && low - i < OVERLAPS; i--)
		if (address < map->code[i - 1].end &&
		    (!found || map->code[i - 1].order > found->order))
			found = &map->code[i - 1];
	return found;
}

bool jit_map_line(const struct jit_map *map, const struct jit_code *code,
		  uint64_t address, struct jit_line *line)
{
	const struct jit_line *lines = map->lines + code->first_line;
	uint32_t low = 0, high = code->line_count, middle;

	if (code->file) {
		*line = (struct jit_line){
			.file = code->file,
			.line = code->line + (int)(address - code->begin),
		};
		return true;
	}
	while (low < high) {
		middle = low + (high - low) / 2;
		if (lines[middle].offset <= address - code->begin)
			low = middle + 1;
		else
			high = middle;
	}
	if (low)
		*line = lines[low - 1];
	return low > 0;
}
