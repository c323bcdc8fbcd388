#include "mutate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <shim/format.h>

#include "readers.h"

#define PATH_SIZE  4096
#define EXTRAS_MAX 2048
#define SHAPES_MAX 64

/* A file in its current state. */
struct now {
	unsigned char *data;
	uint64_t size, room;
	uint64_t apparent; /* its end, if a hole follows */
	bool is_changed, is_gone;
};

static const char *top;
static const struct recording_shape *shape;
static struct now *now;
static struct {
	const struct place *first;
	uint32_t count;
} by_shape[SHAPES_MAX];
static uint32_t shape_count;
/* paths that were created; the last one first */
static char *extras[EXTRAS_MAX];
static uint32_t extra_count;
static char *what;
static size_t what_used;

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void say(const char *format, ...)
{
	va_list arguments;
	int used;

	if (what_used >= WHAT_SIZE - 1)
		return;
	va_start(arguments, format);
	used = vsnprintf(what + what_used, WHAT_SIZE - what_used, format,
			 arguments);
	va_end(arguments);
	what_used += used > 0 ? (size_t)used : 0;
}

static bool one_in(uint64_t count)
{
	return any(count) == 0;
}

/* A random number, as likely below 10 as from 10 to 100, and so on. */
static uint64_t some(uint64_t most)
{
	uint64_t limit = 1;

	while (limit < most && !one_in(4))
		limit *= 4;
	return 1 + any(limit < most ? limit : most);
}

/* --- files in memory --- */

static struct now *touch(uint32_t file)
{
	struct now *to = &now[file];

	if (!to->is_changed) {
		memcpy(to->data, shape->files[file].data,
		       shape->files[file].size);
		to->size = to->apparent = shape->files[file].size;
		to->is_changed = true;
	}
	return to;
}

static void grow(struct now *to, uint64_t size)
{
	if (size > to->room) {
		to->data = realloc(to->data, size);
		if (!to->data)
			fail("memory");
		to->room = size;
	}
	if (size > to->size) {
		memset(to->data + to->size, 0, size - to->size);
		to->size = size;
	}
	if (to->apparent < to->size)
		to->apparent = to->size;
}

static uint64_t load(const struct now *from, uint64_t offset, uint32_t size)
{
	uint64_t value = 0;

	if (offset <= from->size && size <= from->size - offset)
		memcpy(&value, from->data + offset, size < 8 ? size : 8);
	return value;
}

static void store(struct now *to, uint64_t offset, uint64_t value,
		  uint32_t size)
{
	if (offset <= to->size && size <= to->size - offset)
		memcpy(to->data + offset, &value, size < 8 ? size : 8);
}

static const char *path_of(const char *name)
{
	static char path[2][PATH_SIZE];
	static int turn;

	turn = !turn;
	snprintf(path[turn], PATH_SIZE, "%s/%s", top, name);
	return path[turn];
}

static void write_file(const char *path, const unsigned char *data,
		       uint64_t size, uint64_t apparent)
{
	int fd = open(path,
		      O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
		      0600);

	if (fd < 0 || pwrite(fd, data, size, 0) != (ssize_t)size ||
	    ftruncate(fd, (off_t)apparent))
		fail(path);
	close(fd);
}

/* --- structures --- */

static const struct place *any_place(void)
{
	uint32_t i = (uint32_t)any(shape_count);

	return &by_shape[i].first[any(by_shape[i].count)];
}

static const struct place *any_of(const char *name)
{
	for (uint32_t i = 0; i < shape_count; i++)
		if (!strcmp(by_shape[i].first->shape->name, name))
			return &by_shape[i].first[any(by_shape[i].count)];
	return NULL;
}

/* A random structure that has an address; with probability 1/2 in the same
 * file. */
static const struct place *any_addressed(uint32_t file)
{
	for (int tries = 0; tries < 50; tries++) {
		const struct place *place = any_place();

		if (place->address && (place->file == file || one_in(4)))
			return place;
	}
	return NULL;
}

/* --- values --- */

static uint64_t odd_number(uint64_t old)
{
	static const uint64_t known[] = {
		0,
		1,
		2,
		3,
		7,
		8,
		63,
		64,
		65,
		255,
		256,
		4095,
		4096,
		65535,
		65536,
		(1u << 24) - 1,
		0x7fffffff,
		0x80000000,
		0xffffffff,
		1ull << 32,
		1ull << 40,
		(1ull << 47) - 1,
		1ull << 48,
		INT64_MAX,
		1ull << 63,
		UINT64_MAX,
		UINT64_MAX - 1,
		UINT64_MAX - 7,
		UINT64_MAX - 63,
		UINT64_MAX / 2 - 63,
		1000000000,
		10000000000000000000u,
	};

	switch (any(8)) {
	case 0: return old + 1;
	case 1: return old - 1;
	case 2: return old * 2;
	case 3: return old ^ 1ull << any(64);
	case 4: return any(UINT64_MAX);
	default: return known[any(sizeof(known) / sizeof(*known))];
	}
}

static uint64_t odd_size(uint32_t file, uint64_t old)
{
	uint64_t size = shape->files[file].size;

	switch (any(8)) {
	case 0: return size;
	case 1: return size + any(17) - 8;
	case 2: return old + any(129) - 64;
	case 3: return any(size + 4096) & ~7ull;
	case 4: return any(512);
	case 5: return UINT64_MAX - any(4096);
	default: return odd_number(old);
	}
}

static uint64_t odd_link(uint32_t file, uint64_t old, uint64_t own)
{
	const struct place *other = any_addressed(file);

	switch (any(8)) {
	case 0: return 0;
	case 1: return own;
	case 2: return old + 64 * (any(9) - 4);
	case 3: return old + any(64);
	case 4: return odd_number(old);
	default: return other ? other->address : odd_number(old);
	}
}

static uint64_t odd_clock(uint64_t old)
{
	switch (any(8)) {
	case 0: return shape->first_clock - any(2);
	case 1: return shape->last_clock + any(3) - 1;
	case 2: return shape->last_clock - shape->first_clock;
	case 3: return old + any(1u << 30);
	case 4: return old - any(1u << 30);
	default: return odd_number(old);
	}
}

static uint64_t odd_word(uint64_t old)
{
	const struct place *other = any_place();
	const struct now *from = &now[other->file];

	switch (any(6)) {
	case 0: return (0xfff0ull + any(16)) << 48 | (old & SHIM_NODE_ADDRESS);
	case 1: return (0xfff0ull + any(16)) << 48 | any(70000);
	case 2: return (old & SHIM_NODE_ADDRESS) | any(32768) << 48;
	case 3:
		return from->is_changed ? load(from, other->offset, 8) :
					  odd_number(old);
	case 4: return (old & ~SHIM_NODE_ADDRESS) | any(1ull << 48);
	default: return odd_number(old);
	}
}

static uint64_t odd_head(uint64_t old)
{
	uint64_t kind = one_in(2) ? any(22) : any(64);

	switch (any(4)) {
	case 0: return kind << 2 | (old & 0xff00);
	case 1: return kind << 2 | any(256) << 8;
	case 2: return kind << 2;
	default: return any(65536);
	}
}

static void put_text(struct now *to, uint64_t offset, uint64_t size)
{
	static const char *const texts[] = {
		"",
		"\x1b[31m\x1b]0;x\a",
		"a\nb\r\n\tc",
		"=cmd|' /C calc'!A0",
		"<script>alert(1)</script>",
		"\"',;\\%s%n%999999d",
		"../../../x",
		"/dev/stdin",
		"/dev/zero",
		"/etc/passwd",
		"/proc/self/mem",
		"\xe2\x80\xae\xc2\x9b\xff\xfe\xed\xa0\x80",
		"_ZN1aIiE1bEv",
		"_Z1fIiLi5EEvv",
		"profile=calltree;memory;locks;exceptions;trace",
		"profile=coverage:label=x;sampling",
		"status 9 mono-ns 9",
		"command=",
		"program=\x1b[1m",
		"SHIMFILE",
		"SHIMMETA",
		"9223372036854775807 1 1e308 x",
		"calltree",
		"sampling",
		"trace",
		"-1 -1 nan ",
		"+1",
		"@SUM(1)",
	};
	const char *text = texts[any(sizeof(texts) / sizeof(*texts))];
	size_t length = strlen(text);

	if (offset >= to->size)
		return;
	if (size > to->size - offset)
		size = to->size - offset;
	if (one_in(4)) {
		memset(to->data + offset, one_in(2) ? 'x' : 0xff, size);
		return;
	}
	if (length > size)
		length = size;
	memcpy(to->data + offset, text, length);
	if (length < size && !one_in(3))
		memset(to->data + offset + length, 0, size - length);
}

/* --- one field --- */

static void change_field(void)
{
	const struct place *place = any_place();
	const struct field *field =
		&place->shape->fields[any(place->shape->field_count)];
	struct now *to = touch(place->file);
	uint64_t at = place->offset + field->offset, old, value;
	uint32_t size = field->size ? field->size : place->size - field->offset;

	if (field->offset >= place->size)
		return;
	say("%s %s %s at %llu; ", shape->files[place->file].path,
	    place->shape->name, field->name, (unsigned long long)at);
	if (field->kind == FIELD_TEXT) {
		put_text(to, at, size);
		return;
	}
	if (size > 8) { /* this field is one of many numbers */
		at += 8 * any(size / 8);
		size = 8;
	}
	old = load(to, at, size);
	switch (field->kind) {
	case FIELD_COUNT:
		value = one_in(2) ? odd_number(old) :
				    odd_size(place->file, old);
		break;
	case FIELD_SIZE: value = odd_size(place->file, old); break;
	case FIELD_LINK:
		value = odd_link(place->file, old, place->address);
		break;
	case FIELD_CLOCK: value = odd_clock(old); break;
	case FIELD_WORD: value = odd_word(old); break;
	case FIELD_HEAD: value = odd_head(old); break;
	case FIELD_FLAG: value = one_in(3) ? odd_number(old) : any(12); break;
	case FIELD_VERSION: value = any(4); break;
	default: value = odd_number(old);
	}
	say("= %llx; ", (unsigned long long)value);
	store(to, at, value, size);
}

/* Copies a structure over another one of the same shape. */
static void copy_place(void)
{
	const struct place *from = any_place(), *to = any_of(from->shape->name);
	struct now *target = touch(to->file);
	uint32_t size = from->size < to->size ? from->size : to->size;

	say("%s: %llu is copied to %s %llu; ", shape->files[from->file].path,
	    (unsigned long long)from->offset, shape->files[to->file].path,
	    (unsigned long long)to->offset);
	if (to->offset <= target->size && size <= target->size - to->offset)
		memcpy(target->data + to->offset,
		       shape->files[from->file].data + from->offset, size);
}

/* Moves bytes, regardless of the structure. */
static void move_bytes(void)
{
	const struct place *from = any_place(), *to = any_place();
	struct now *target = touch(to->file);
	uint64_t size = 8 * some(64), most = shape->files[from->file].size;

	if (from->offset + size > most || to->offset + size > target->size)
		return;
	say("%llu bytes of %s %llu to %s %llu; ", (unsigned long long)size,
	    shape->files[from->file].path, (unsigned long long)from->offset,
	    shape->files[to->file].path, (unsigned long long)to->offset);
	memmove(target->data + to->offset,
		shape->files[from->file].data + from->offset, size);
}

/* Moves the bytes after a structure forward or backward. */
static void shift(void)
{
	const struct place *place = any_place();
	struct now *to = touch(place->file);
	uint64_t size = place->size, at = place->offset;

	if (at + 2 * size > to->size)
		return;
	if (one_in(2)) {
		memmove(to->data + at, to->data + at + size,
			to->size - at - size);
		say("a %s of %s is gone; ", place->shape->name,
		    shape->files[place->file].path);
	} else {
		memmove(to->data + at + size, to->data + at,
			to->size - at - size);
		say("a %s of %s is there twice; ", place->shape->name,
		    shape->files[place->file].path);
	}
}

/* --- chunks --- */

#define CHUNK_AT(i) \
	(offsetof(struct shim_file, chunk) + (i) * sizeof(struct shim_chunk))

static struct shim_chunk chunk_of(const struct now *from, uint32_t i)
{
	struct shim_chunk chunk;

	memcpy(&chunk, from->data + CHUNK_AT(i), sizeof(chunk));
	return chunk;
}

static void put_chunk(struct now *to, uint32_t i, struct shim_chunk chunk)
{
	memcpy(to->data + CHUNK_AT(i), &chunk, sizeof(chunk));
}

static struct now *any_chunked(uint32_t *file, uint32_t *chunks)
{
	const struct place *place = any_of("file");
	struct now *to;

	if (!place)
		return NULL;
	*file = place->file;
	to = touch(place->file);
	*chunks = (uint32_t)load(to, offsetof(struct shim_file, chunks), 4);
	return *chunks > 0 && *chunks <= SHIM_FILE_CHUNKS ? to : NULL;
}

static void change_chunks(void)
{
	uint32_t file, count, i;
	struct now *to = any_chunked(&file, &count);
	struct shim_chunk chunk;

	if (!to)
		return;
	chunk = chunk_of(to, (uint32_t)any(count));
	switch (any(4)) {
	case 0: /* the same again and again */
		for (i = 0; i < SHIM_FILE_CHUNKS; i++)
			put_chunk(to, i, chunk);
		store(to, offsetof(struct shim_file, chunks), SHIM_FILE_CHUNKS,
		      4);
		break;
	case 1: /* the whole file, whatever it contains */
		chunk.offset = any(3) * 8;
		chunk.size = to->size - chunk.offset;
		put_chunk(to, (uint32_t)any(count), chunk);
		break;
	case 2: /* chunks that overlap in memory */
		chunk.address += 64 * any(100);
		put_chunk(to, (uint32_t)any(SHIM_FILE_CHUNKS), chunk);
		store(to, offsetof(struct shim_file, chunks),
		      count + any(SHIM_FILE_CHUNKS - count + 1), 4);
		break;
	default: /* followed by a hole */
		to->apparent = 1ull << (20 + any(22));
		chunk.size = to->apparent - chunk.offset;
		put_chunk(to, count - 1, chunk);
	}
	say("the chunks of %s; ", shape->files[file].path);
}

/* Makes room for @size bytes at the end of the file, and extends its last chunk
 * to there. */
static uint64_t append(struct now *to, uint64_t size)
{
	uint32_t count = (uint32_t)load(to, offsetof(struct shim_file, chunks),
					4);
	struct shim_chunk chunk;
	uint64_t at = to->size;

	grow(to, to->size + size);
	if (count == 0 || count > SHIM_FILE_CHUNKS)
		return at;
	chunk = chunk_of(to, count - 1);
	if (chunk.offset < at)
		chunk.size = at + size - chunk.offset;
	put_chunk(to, count - 1, chunk);
	return at;
}

/* --- many copies --- */

static const char *const linear[] = {
	"node",	 "thread", "group", "extra", "memory",	    "lives", "snapshot",
	"alive", "lock",   "throw", "word",  "sample_root", "arc",
};

static uint64_t how_many(uint32_t size)
{
	uint64_t most = (one_in(40) ? 8u << 20 : 1u << 19) / size;

	return some(most);
}

/* Appends many copies of one node, equal or different. */
static void repeat_node(void)
{
	const struct place *place = any_of(
		linear[any(sizeof(linear) / sizeof(*linear))]);
	bool has_words, has_links, is_chain;
	uint64_t count, at, i, address;
	struct now *to;

	if (!place)
		return;
	count = how_many(place->size);
	to = touch(place->file);
	at = append(to, count * place->size);
	has_words = one_in(2);
	has_links = one_in(3);
	is_chain = one_in(3);
	address = chunk_of(to, 0).address + at - chunk_of(to, 0).offset;
	for (i = 0; i < count; i++, at += place->size) {
		memcpy(to->data + at,
		       shape->files[place->file].data + place->offset,
		       place->size);
		if (has_words)
			store(to, at, load(to, at, 8) + i, 8);
		if (has_links)
			store(to, at + 8, odd_link(place->file, 0, 0), 8);
		if (is_chain && i > 0)
			store(to, at + 8, address + (i - 1) * place->size, 8);
	}
	say("%llu more of %s in %s%s%s%s; ", (unsigned long long)count,
	    place->shape->name, shape->files[place->file].path,
	    has_words ? ", each another" : "", has_links ? ", with links" : "",
	    is_chain ? ", in a chain" : "");
}

/* The parents of all nodes in a file. */
static void change_parents(void)
{
	const struct place *place = any_of("node"), *first;
	uint64_t kind = any(5), last, count = 0, i;
	struct now *to;

	if (!place)
		return;
	to = touch(place->file);
	for (first = place;
	     first > shape->places && first[-1].shape == place->shape &&
	     first[-1].file == place->file;
	     first--)
		;
	for (i = 0;
	     first + i < shape->places + shape->place_count &&
	     first[i].shape == place->shape && first[i].file == place->file;
	     i++)
		count++;
	last = first[count - 1].address;
	for (i = 0; i < count; i++) {
		uint64_t parent = kind == 0 ? last :		/* a circle */
				  kind == 1 ? first[0].address : /* a star */
				  kind == 2 ? first[any(count)].address :
				  kind == 3 ? first[(i + 1) % count].address :
					      0;

		store(to, first[i].offset + 8, parent, 8);
		last = first[i].address;
	}
	say("the parents of %s; ", shape->files[place->file].path);
}

static void repeat_image(void)
{
	const struct place *place = any_of("image");
	uint64_t record, count, at, i;
	bool is_elsewhere = one_in(2), is_other = one_in(2);
	struct now *to;

	if (!place)
		return;
	to = touch(place->file);
	record = load(to, place->offset, 4);
	if (record < sizeof(struct shim_image_record) || record > 8192)
		return;
	count = how_many((uint32_t)record);
	for (at = place->offset; load(to, at, 4); at += load(to, at, 4))
		;
	if (at > to->size) /* an earlier change made it smaller */
		return;
	grow(to, at + (count + 1) * record);
	for (i = 0; i < count; i++, at += record) {
		memcpy(to->data + at,
		       shape->files[place->file].data + place->offset, record);
		if (is_elsewhere) {
			store(to, at + 8, load(to, at + 8, 8) + i * 4096, 8);
			store(to, at + 16, load(to, at + 16, 8) + i * 4096, 8);
		}
		if (is_other) /* the build-id, or the path */
			store(to, at + sizeof(struct shim_image_record),
			      any(UINT64_MAX), 8);
	}
	say("%llu more images in %s; ", (unsigned long long)count,
	    shape->files[place->file].path);
}

/* --- traces --- */

/* Repeats one record up to the end of its block. */
static void repeat_record(void)
{
	const struct place *place = any_of("record");
	uint64_t at, end, i = 0, size;
	uint32_t head;
	struct now *to;

	if (!place)
		return;
	to = touch(place->file);
	at = place->offset;
	end = (at / SHIM_TRACE_BLOCK + 1) * SHIM_TRACE_BLOCK;
	head = one_in(2) ? (uint32_t)load(to, at, 4) :
	       one_in(2) ? 2 | (uint32_t)any(1u << 30) << 2 :
			   SHIM_TRACE_HEAD(any(20), 8);
	size = head & SHIM_TRACE_ENTER ? 4 : one_in(2) ? 8 : place->size;
	if (head & SHIM_TRACE_LEAVE)
		size = 2;
	if (one_in(4))
		end = at + size * some((end - at) / size + 1);
	for (; at + size <= end && at + 8 <= to->size; at += size, i++) {
		store(to, at, head, size < 4 ? 2 : 4);
		if (size >= 8)
			store(to, at + 2, i, 4);
	}
	say("%llu records %x in %s; ", (unsigned long long)i, head,
	    shape->files[place->file].path);
}

/* Appends many copies of a block. */
static void repeat_block(void)
{
	const struct place *place = any_of("block");
	uint64_t count, from, at, i;
	bool has_sequence = !one_in(3);
	struct now *to;

	if (!place)
		return;
	count = some(one_in(40) ? 128 : 16);
	to = touch(place->file);
	from = place->offset / SHIM_TRACE_BLOCK * SHIM_TRACE_BLOCK;
	at = (to->size + SHIM_TRACE_BLOCK - 1) / SHIM_TRACE_BLOCK *
	     SHIM_TRACE_BLOCK;
	grow(to, at + count * SHIM_TRACE_BLOCK);
	for (i = 0; i < count; i++, at += SHIM_TRACE_BLOCK) {
		uint64_t begin = from ? from : SHIM_TRACE_FIRST;
		uint64_t size = from + SHIM_TRACE_BLOCK - begin;

		if (begin + size > to->size)
			break;
		memcpy(to->data + at, to->data + begin, size);
		if (has_sequence)
			store(to, at, 1000 + i, 8);
		if (one_in(3))
			store(to, at + 16, any(1000), 4);
	}
	if (one_in(8))
		to->apparent = 1ull << (24 + any(18));
	say("%llu more blocks in %s; ", (unsigned long long)count,
	    shape->files[place->file].path);
}

/* --- files --- */

static void note_extra(const char *path)
{
	if (extra_count < EXTRAS_MAX)
		extras[extra_count++] = strdup(path);
}

/* Links the file to further names, of its kind or of another. */
static void link_file(void)
{
	static const char *const kinds[] = { "calltree", "sampling",
					     "trace",	 "functions",
					     "values",	 "coverage",
					     "pchist",	 "arcs" };
	const struct file *file = &shape->files[any(shape->file_count)];
	const char *slash = strrchr(file->path, '/'), *kind = file->kind;
	uint64_t count = some(one_in(20) ? 1000 : 30), first = any(2000);
	char name[PATH_SIZE];

	if (!slash)
		return;
	if (one_in(3))
		kind = kinds[any(sizeof(kinds) / sizeof(*kinds))];
	for (uint64_t i = 0; i < count && extra_count < EXTRAS_MAX; i++) {
		snprintf(name, sizeof(name), "%.*s/%llu.%s",
			 (int)(slash - file->path), file->path,
			 (unsigned long long)(first + i), kind);
		if (link(path_of(file->path), path_of(name)) == 0)
			note_extra(path_of(name));
	}
	say("%s %llu times as %s; ", file->path, (unsigned long long)count,
	    kind);
}

/* Links a process with all of its files to a further name. */
static void link_process(void)
{
	const struct file *one = &shape->files[any(shape->file_count)];
	const char *slash = strrchr(one->path, '/');
	uint64_t count = some(one_in(20) ? 100 : 6), first = any(5000);
	char name[PATH_SIZE], directory[64];
	size_t length;

	if (!slash)
		return;
	length = (size_t)(slash - one->path) + 1;
	for (uint64_t i = 0;
	     i < count && extra_count + shape->file_count + 1 < EXTRAS_MAX;
	     i++) {
		snprintf(directory, sizeof(directory), "%llu.%llu",
			 (unsigned long long)(first + i),
			 (unsigned long long)any(3));
		if (mkdir(path_of(directory), 0700))
			continue;
		note_extra(path_of(directory));
		for (uint32_t n = 0; n < shape->file_count; n++) {
			if (strncmp(shape->files[n].path, one->path, length))
				continue;
			snprintf(name, sizeof(name), "%s/%s", directory,
				 shape->files[n].path + length);
			if (link(path_of(shape->files[n].path),
				 path_of(name)) == 0)
				note_extra(path_of(name));
		}
	}
	say("%.*s %llu times; ", (int)length, one->path,
	    (unsigned long long)count);
}

static void cut_file(void)
{
	uint32_t file = (uint32_t)any(shape->file_count);
	struct now *to = touch(file);
	uint64_t size = one_in(2) ? any(shape->files[file].used + 64) :
				    any(to->size + 1);

	to->size = to->apparent = size < to->size ? size : to->size;
	say("%s is cut at %llu; ", shape->files[file].path,
	    (unsigned long long)to->size);
}

/* Replaces a file with something else, or removes it. */
static void replace_file(void)
{
	uint32_t file = (uint32_t)any(shape->file_count);
	const char *path = path_of(shape->files[file].path);

	if (now[file].is_gone)
		return;
	touch(file);
	now[file].is_gone = true;
	unlink(path);
	switch (any(4)) {
	case 0: break;
	case 1:
		if (mkfifo(path, 0600))
			fail(path);
		break;
	case 2:
		if (symlink("/etc/passwd", path))
			fail(path);
		break;
	default:
		if (mkdir(path, 0700))
			fail(path);
	}
	say("%s is none; ", shape->files[file].path);
}

/* --- all mutations --- */

void mutate_begin(const char *path, const struct recording_shape *recording)
{
	for (uint32_t i = 0; now && i < shape->file_count; i++)
		free(now[i].data);
	free(now);
	top = path;
	shape = recording;
	shape_count = 0;
	now = calloc(shape->file_count, sizeof(*now));
	for (uint32_t i = 0; now && i < shape->file_count; i++) {
		now[i].room = shape->files[i].size;
		now[i].data = malloc(now[i].room);
		if (!now[i].data)
			fail("memory");
	}
	for (uint32_t i = 0; i < shape->place_count; i++) {
		if (i == 0 ||
		    shape->places[i].shape != shape->places[i - 1].shape) {
			by_shape[shape_count].count = 0;
			by_shape[shape_count++].first = &shape->places[i];
		}
		by_shape[shape_count - 1].count++;
	}
}

void mutate(char said[WHAT_SIZE])
{
	static const struct {
		void (*change)(void);
		unsigned weight;
	} changes[] = {
		{ change_field, 60 },  { copy_place, 4 },
		{ move_bytes, 3 },     { shift, 4 },
		{ change_chunks, 4 },  { repeat_node, 7 },
		{ change_parents, 3 }, { repeat_image, 3 },
		{ repeat_record, 6 },  { repeat_block, 2 },
		{ link_file, 2 },      { link_process, 2 },
		{ cut_file, 2 },       { replace_file, 1 },
	};
	unsigned count = one_in(2) ? 1 : 1 + (unsigned)any(6);

	what = said;
	what_used = 0;
	*what = '\0';
	while (count > 0 || !what_used) {
		unsigned at = (unsigned)any(103), i = 0;

		while (at >= changes[i].weight)
			at -= changes[i++].weight;
		changes[i].change();
		count -= count > 0;
	}
	for (uint32_t i = 0; i < shape->file_count; i++)
		if (now[i].is_changed && !now[i].is_gone)
			write_file(path_of(shape->files[i].path), now[i].data,
				   now[i].size, now[i].apparent);
}

void mutate_undo(void)
{
	while (extra_count > 0) {
		remove(extras[--extra_count]);
		free(extras[extra_count]);
	}
	for (uint32_t i = 0; i < shape->file_count; i++) {
		const char *path = path_of(shape->files[i].path);

		if (now[i].is_gone && remove(path) && errno != ENOENT)
			fail(path);
		if (now[i].is_changed)
			write_file(path, shape->files[i].data,
				   shape->files[i].size, shape->files[i].size);
		now[i].is_changed = now[i].is_gone = false;
	}
}
