/*
 * Memory, messages and the hash map.  A report belongs to nobody else's process,
 * so what cannot go on ends here, in die().
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "util.h"

/* A damaged recording may have something wrong in every file. */
#define WARNINGS_MAX 100

static const char **warnings;
static size_t warnings_count, warnings_room;
static bool progress_shown, dies_at_once;
static const char *verb = "";

static void say(const char *format, va_list arguments)
{
	char *text = NULL;

	progress_end();
	if (vasprintf(&text, format, arguments) < 0)
		text = NULL;
	fputs("profrun: ", stderr);
	put_text(stderr, text ? text : format);
	fputc('\n', stderr);
	free(text);
}

void die_at_once(void)
{
	dies_at_once = true;
}

void die(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	say(format, arguments);
	va_end(arguments);
	if (dies_at_once)
		_exit(1);
	output_discard();
	exit(1);
}

void die_usage(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	say(format, arguments);
	va_end(arguments);
	fprintf(stderr, "Try 'profrun%s%s --help'.\n", *verb ? " " : "", verb);
	exit(2);
}

void usage_verb(const char *name)
{
	verb = name;
}

/* Some outputs read a recording more than once. */
static bool was_said(const char *text)
{
	size_t i;

	for (i = 0; i < warnings_count; i++)
		if (!strcmp(warnings[i], text))
			return true;
	return false;
}

void warn(const char *format, ...)
{
	va_list arguments;
	char *text;

	if (warnings_count == WARNINGS_MAX)
		return;
	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) < 0)
		text = NULL;
	va_end(arguments);
	if (was_said(text ? text : format)) {
		free(text);
		return;
	}
	GROW(warnings, warnings_count, warnings_room);
	if (warnings_count == WARNINGS_MAX - 1)
		warnings[warnings_count] = "more is wrong than is said here";
	else
		warnings[warnings_count] = keep_text(text ? text : format,
						     SIZE_MAX);
	free(text);
	progress_end();
	fputs("profrun: ", stderr);
	put_text(stderr, warnings[warnings_count++]);
	fputc('\n', stderr);
}

size_t warning_count(void)
{
	return warnings_count;
}

const char *warning_text(size_t i)
{
	return warnings[i];
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void progress(const char *what, uint64_t done, uint64_t all)
{
	static double first, last;
	static int is_terminal = -1;
	double now;

	if (is_terminal < 0) {
		is_terminal = isatty(STDERR_FILENO);
		first = seconds();
	}
	if (!is_terminal || all == 0)
		return;
	now = seconds();
	if (now - first < 1 || now - last < 0.1)
		return;
	last = now;
	progress_shown = true;
	fprintf(stderr, "\r%s %3.0f%%\033[K", what,
		100.0 * (double)done / (double)all);
}

void progress_end(void)
{
	if (progress_shown)
		fputs("\r\033[K", stderr);
	progress_shown = false;
}

void *allocate(size_t count, size_t size)
{
	void *memory = calloc(count ? count : 1, size);

	if (!memory)
		die("out of memory");
	return memory;
}

void *grow(void *memory, size_t count, size_t size)
{
	memory = reallocarray(memory, count, size);
	if (!memory)
		die("out of memory");
	return memory;
}

const char *keep_text(const char *text, size_t size)
{
	static char *block;
	static size_t left;
	size_t length = strnlen(text, size);
	char *copy;

	if (length + 1 > left) {
		left = length + 1 > 65536 ? length + 1 : 65536;
		block = allocate(left, 1);
	}
	copy = block;
	memcpy(copy, text, length);
	copy[length] = '\0';
	block += length + 1;
	left -= length + 1;
	return copy;
}

const char *keep_format(const char *format, ...)
{
	va_list arguments;
	const char *kept;
	char *text;
	int length;

	va_start(arguments, format);
	length = vasprintf(&text, format, arguments);
	va_end(arguments);
	if (length < 0)
		die("out of memory");
	kept = keep_text(text, SIZE_MAX);
	free(text);
	return kept;
}

/* Keys come from the recording: a seed keeps anybody from choosing them so
 * that all of them collide. */
static uint64_t seed(void)
{
	static uint64_t value;
	struct timespec now;

	if (!value) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		value = ((uint64_t)now.tv_nsec << 32 ^ (uintptr_t)&value) | 1;
	}
	return value;
}

static uint64_t mix(uint64_t key)
{
	key = (key ^ seed()) * 0x9e3779b97f4a7c15ull;
	key = (key ^ key >> 32) * 0xd6e8feb86659fd93ull;
	return key ^ key >> 32;
}

static size_t find_slot(const struct map *map, uint64_t key)
{
	size_t mask = map->capacity - 1, i = mix(key) & mask;

	while (map->values[i] && map->keys[i] != key)
		i = (i + 1) & mask;
	return i;
}

uint32_t map_get(const struct map *map, uint64_t key)
{
	/* An empty slot holds 0: minus one, that is NONE. */
	return map->capacity ? map->values[find_slot(map, key)] - 1 : NONE;
}

static void map_grow(struct map *map)
{
	struct map new = { .capacity = map->capacity ? map->capacity * 2 : 64,
			   .count = map->count };
	size_t i, slot;

	new.keys = allocate(new.capacity, sizeof(*new.keys));
	new.values = allocate(new.capacity, sizeof(*new.values));
	for (i = 0; i < map->capacity; i++) {
		if (!map->values[i])
			continue;
		slot = find_slot(&new, map->keys[i]);
		new.keys[slot] = map->keys[i];
		new.values[slot] = map->values[i];
	}
	map_free(map);
	*map = new;
}

/* Where @key is, or is to be: then the value there is 0. */
static size_t make_slot(struct map *map, uint64_t key)
{
	size_t slot;

	if (map->count * 2 >= map->capacity)
		map_grow(map);
	slot = find_slot(map, key);
	if (!map->values[slot]) {
		map->keys[slot] = key;
		map->count++;
	}
	return slot;
}

uint32_t map_add(struct map *map, uint64_t key, uint32_t value)
{
	size_t slot = make_slot(map, key);

	if (!map->values[slot])
		map->values[slot] = value + 1;
	return map->values[slot] - 1;
}

void map_set(struct map *map, uint64_t key, uint32_t value)
{
	size_t slot = make_slot(map, key);	/* it may move the values */

	map->values[slot] = value + 1;
}

void map_free(struct map *map)
{
	free(map->keys);
	free(map->values);
	*map = (struct map){ 0 };
}

static uint64_t hash_text(const char *text)
{
	uint64_t hash = seed();

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3ull;
	return mix(hash);
}

static size_t find_name(const struct names *names, const char *text)
{
	size_t mask = names->capacity - 1, i = hash_text(text) & mask;

	while (names->slots[i] &&
	       strcmp(names->text[names->slots[i] - 1], text))
		i = (i + 1) & mask;
	return i;
}

uint32_t names_add(struct names *names, const char *text)
{
	size_t slot;
	uint32_t i;

	if ((size_t)names->count * 2 >= names->capacity) {
		names->capacity = names->capacity ? names->capacity * 2 : 64;
		free(names->slots);
		names->slots = allocate(names->capacity, sizeof(uint32_t));
		for (i = 0; i < names->count; i++)
			names->slots[find_name(names, names->text[i])] = i + 1;
	}
	slot = find_name(names, text);
	if (!names->slots[slot]) {
		GROW(names->text, names->count, names->room);
		names->text[names->count++] = text;
		names->slots[slot] = names->count;
	}
	return names->slots[slot] - 1;
}

uint32_t names_find(const struct names *names, const char *text)
{
	return names->capacity ? names->slots[find_name(names, text)] - 1 : NONE;
}

void names_free(struct names *names)
{
	free(names->text);
	free(names->slots);
	*names = (struct names){ 0 };
}
