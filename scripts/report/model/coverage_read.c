/*
 * Reads N.coverage: the reached code of a process, block by block, becomes
 * lines and functions of source files.  A line with several places in the code
 * is reached if one of them is; a function is reached if its first place is.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <shim/format.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/messages.h"
#include "base/names.h"
#include "base/search.h"
#include "model/coverage.h"
#include "model/coverage_read.h"
#include "model/functions.h"
#include "names/symbols.h"
#include "read/files.h"
#include "read/images.h"
#include "read/process.h"
#include "read/recording.h"

/* The limit of functions that begin between a line and the one before. */
#define FUNCTIONS_TRIED 64

struct block {
	const struct coverage_file *file;
	const struct process *process;
	struct coverage *coverage;
	uint32_t test;
	struct shim_coverage_lines head;
	const unsigned char *lines;
	const unsigned char *reached;
	uint32_t *files; /* by file of the block: number of its name */
	/* blocks of lines of the process so far */
	struct block *found;
	uint32_t found_count, found_room;
	struct names place_keys; /* of place_key(), with the same numbers */
	struct names images;	 /* place_key() of the process's images */
	uint32_t *image_numbers; /* numbers of those images */
	bool reads_points;	 /* this time */
	bool has_points;
};

static struct shim_coverage_line line_at(const struct block *block, uint32_t i)
{
	struct shim_coverage_line line;

	memcpy(&line, block->lines + i * sizeof(line), sizeof(line));
	return line;
}

/* Returns false, with a warning, if the block is shorter than its header
 * says. */
static bool is_whole(const struct block *block, uint64_t offset)
{
	const struct shim_coverage_lines *head = &block->head;
	uint64_t size = sizeof(*head) +
			(uint64_t)head->line_count *
				(sizeof(struct shim_coverage_line) + 1) +
			head->files_size + head->path_size;

	if (size <= head->size && head->path_size > 0)
		return true;
	warn("%s: at offset %" PRIu64 ": %u lines and %u bytes of names do not "
	     "fit into %" PRIu64 " bytes",
	     block->file->name, offset, head->line_count, head->files_size,
	     head->size);
	return false;
}

/* Reads the names, each with its NUL. */
static void read_files(struct block *block, const char *at, const char *end)
{
	uint32_t n;

	block->files = allocate(block->head.file_count + 1ull,
				sizeof(*block->files));
	for (n = 0; n < block->head.file_count; n++) {
		const char *name = at < end ?
					   keep_text(at, (size_t)(end - at)) :
					   "?";

		block->files[n] = names_add(&block->coverage->files, name);
		at += at < end ? strlen(name) + 1 : 0;
	}
}

static void add_lines(struct block *block)
{
	struct coverage *coverage = block->coverage;
	uint32_t i;

	for (i = 0; i < block->head.line_count; i++) {
		struct shim_coverage_line line = line_at(block, i);

		if (line.file >= block->head.file_count || line.line == 0)
			continue;
		if (block->reached[i] == SHIM_COVERAGE_UNKNOWN) {
			coverage->dropped++;
			continue;
		}
		GROW(coverage->lines, coverage->line_count,
		     coverage->line_room);
		coverage->lines[coverage->line_count++] = (struct covered){
			.test = block->test,
			.file = block->files[line.file],
			.line = line.line,
			.function = NONE,
			.count = block->reached[i] != 0,
		};
	}
}

/* A key for an object and its load address. */
static const char *place_key(uint64_t start, const char *path)
{
	return keep_format("%" PRIx64 "/%s", start, path);
}

static void list_images(struct block *block)
{
	const struct process *process = block->process;
	uint32_t i, before;

	block->image_numbers = allocate(process->image_count,
					sizeof(*block->image_numbers));
	for (i = 0; i < process->image_count; i++) {
		before = block->images.count;
		if (names_add(&block->images,
			      place_key(process->images[i].start,
					process->images[i].path)) == before)
			block->image_numbers[before] = i;
	}
}

static const struct image *find_image(struct block *block, const char *path)
{
	uint32_t number;

	if (!block->image_numbers)
		list_images(block);
	number = names_find(&block->images, place_key(block->head.start, path));
	return number == NONE ?
		       NULL :
		       &block->process->images[block->image_numbers[number]];
}

static uint32_t find_offset(const struct block *block, uint64_t offset)
{
	return FIRST_NOT(i, block->head.line_count,
			 line_at(block, i).offset < offset);
}

/* Objects whose symbols were read before, for other processes or runs. */
static struct listed {
	struct object object;
	struct function_symbol *functions;
	size_t count;
} * listed;
static size_t listed_count, listed_room;

static struct listed *list_functions(const struct image *image)
{
	static struct names image_keys; /* with the same numbers */
	uint32_t number = names_add(&image_keys, image_key(image));
	struct listed *made;

	if (number < listed_count)
		return &listed[number];
	GROW(listed, listed_count, listed_room);
	made = &listed[listed_count++];
	*made = (struct listed){ .object = {
					 .path = image->path,
					 .build_id = image->build_id,
					 .build_id_size = image->build_id_size,
				 } };
	made->functions = symbols_list(&made->object, &made->count);
	return made;
}

static void add_function(struct block *block,
			 const struct function_symbol *function, uint32_t at)
{
	struct coverage *coverage = block->coverage;
	struct shim_coverage_line line = line_at(block, at);

	if (line.file >= block->head.file_count || line.line == 0)
		return;
	GROW(coverage->functions, coverage->function_count,
	     coverage->function_room);
	coverage->functions[coverage->function_count++] = (struct covered){
		.test = block->test,
		.file = block->files[line.file],
		.line = line.line,
		.function = names_add(&coverage->names, function->name),
		.count = block->reached[at] == 1,
	};
}

/* The first function that begins after @address. */
static size_t function_behind(const struct listed *all, uint64_t address)
{
	return FIRST_NOT(i, all->count, all->functions[i].address <= address);
}

/* Adds the functions whose first place is number @at: they begin after the
 * previous place.  There is one, or several nested ones; a table with more is
 * wrong. */
static void add_functions_at(struct block *block, const struct listed *all,
			     uint64_t shift, uint32_t at)
{
	uint64_t offset = line_at(block, at).offset;
	uint64_t before = at ? line_at(block, at - 1).offset : 0;
	size_t i = function_behind(all, offset + shift), tries;

	if (at && before == offset)
		return;
	for (tries = 0; i > 0 && tries < FUNCTIONS_TRIED; tries++) {
		const struct function_symbol *function = &all->functions[--i];
		uint64_t begin = function->address - shift;

		if (begin > offset || (at && begin <= before))
			return;
		if (offset - begin < function->size)
			add_function(block, function, at);
	}
}

static void add_functions(struct block *block, const struct image *image)
{
	struct coverage *coverage = block->coverage;
	const struct listed *all = list_functions(image);
	size_t first = coverage->function_count;
	uint32_t i;

	for (i = 0; i < block->head.line_count; i++)
		add_functions_at(block, all, image->start - image->bias, i);
	coverage->function_count = first +
				   coverage_sum_up(coverage->functions + first,
						   coverage->function_count -
							   first,
						   false);
}

static struct uncovered *find_object(struct coverage *coverage,
				     const char *path)
{
	uint32_t number = names_add(&coverage->object_names, path);

	if (number < coverage->object_count)
		return &coverage->objects[number];
	GROW(coverage->objects, coverage->object_count, coverage->object_room);
	coverage->objects[coverage->object_count] = (struct uncovered){
		.path = path
	};
	return &coverage->objects[coverage->object_count++];
}

static void read_lines(struct block *block, uint64_t offset)
{
	const unsigned char *at = block->file->data + offset;
	const struct image *image;
	const char *names, *path;
	uint32_t number;

	memcpy(&block->head, at, sizeof(block->head));
	if (!is_whole(block, offset))
		return;
	block->lines = at + sizeof(block->head);
	block->reached = block->lines +
			 block->head.line_count *
				 sizeof(struct shim_coverage_line);
	names = (const char *)block->reached + block->head.line_count;
	path = keep_text(names + block->head.files_size, block->head.path_size);
	block->coverage->dropped += block->head.dropped;
	if (block->head.state != SHIM_COVERAGE_LINES) {
		find_object(block->coverage, path)->state =
			(enum shim_coverage_state)block->head.state;
		return;
	}
	/* There cannot be more names than bytes. */
	if (block->head.file_count > block->head.files_size)
		block->head.file_count = block->head.files_size;
	read_files(block, names, names + block->head.files_size);
	add_lines(block);
	image = find_image(block, path);
	if (image)
		add_functions(block, image);
	number = names_add(&block->place_keys,
			   place_key(block->head.start, path));
	/* the object was loaded there again */
	if (number < block->found_count) {
		free(block->files);
		return;
	}
	GROW(block->found, block->found_count, block->found_room);
	block->found[block->found_count++] = *block;
}

/* Finds the block of lines of the same object, in any file of the process. */
static bool find_lines(const struct block *points,
		       const struct shim_coverage_points *head,
		       const char *path, struct block *lines)
{
	uint32_t number = names_find(&points->place_keys,
				     place_key(head->start, path));

	if (number == NONE)
		return false;
	*lines = points->found[number];
	return true;
}

/* The place in the code with the byte at @offset: the last place that begins at
 * or before it, or NONE. */
static uint32_t find_place(const struct block *lines, uint64_t offset)
{
	uint32_t at = find_offset(lines, offset + 1);

	return at ? at - 1 : NONE;
}

/* The size of the call instruction that counts. */
#define COUNTER_SIZE 5

static void add_count(struct block *lines, uint64_t offset, uint64_t count)
{
	struct coverage *coverage = lines->coverage;
	uint32_t at = find_place(lines, offset);
	struct shim_coverage_line line;

	if (at == NONE)
		return;
	line = line_at(lines, at);
	if (line.file >= lines->head.file_count || line.line == 0)
		return;
	/* gcc gives no line to the counter at a join of branches: it seems to
	 * belong to the line before, which may not have been reached. */
	if (!lines->reached[at] && offset - line.offset >= COUNTER_SIZE)
		return;
	GROW(coverage->lines, coverage->line_count, coverage->line_room);
	coverage->lines[coverage->line_count++] = (struct covered){
		.test = lines->test,
		.file = lines->files[line.file],
		.line = line.line,
		.function = NONE,
		.count = count,
	};
	coverage->is_counted = true;
}

static void read_points(struct block *block, uint64_t offset, uint64_t size)
{
	const unsigned char *at = block->file->data + offset;
	struct shim_coverage_points head;
	const unsigned char *offsets;
	struct block lines;
	uint64_t i, each;

	memcpy(&head, at, sizeof(head));
	each = head.has_offsets ? 12 : 8;
	if (head.count > (size - sizeof(head)) / each ||
	    head.path_size > size - sizeof(head) - head.count * each ||
	    head.path_size == 0) {
		warn("%s: at offset %" PRIu64 ": %" PRIu64 " counts do not fit",
		     block->file->name, offset, head.count);
		return;
	}
	at += sizeof(head);
	offsets = at + head.count * 8;
	if (!find_lines(block, &head,
			keep_text((const char *)at + head.count * each,
				  head.path_size),
			&lines))
		return;
	for (i = 0; i < head.count; i++) {
		uint64_t count;
		uint32_t place = (uint32_t)(4 * i - 1);

		memcpy(&count, at + i * 8, sizeof(count));
		if (head.has_offsets)
			memcpy(&place, offsets + i * 4, sizeof(place));
		if (count)
			add_count(&lines, place, count);
	}
}

static const char *image_path(const struct process *process, uint64_t word)
{
	const struct image *image = process_image(
		process, word & SHIM_NODE_ADDRESS, SHIM_NODE_GENERATION(word));

	return image ? image->path : NULL;
}

/* Objects with lines need no functions here. */
static void read_functions(struct block *block, uint64_t offset, uint64_t size)
{
	struct shim_coverage_functions head;
	uint64_t i, word;

	memcpy(&head, block->file->data + offset, sizeof(head));
	if (head.count > (size - sizeof(head)) / sizeof(word)) {
		warn("%s: at offset %" PRIu64 ": %" PRIu64 " functions do not "
		     "fit",
		     block->file->name, offset, head.count);
		return;
	}
	for (i = 0; i < head.count; i++) {
		const char *path;

		memcpy(&word,
		       block->file->data + offset + sizeof(head) +
			       i * sizeof(word),
		       sizeof(word));
		path = image_path(block->process, word);
		if (path)
			find_object(block->coverage, path)->functions++;
	}
}

static void read_block(struct block *block, uint32_t kind, uint64_t at,
		       uint64_t size)
{
	if (block->reads_points) {
		if (kind == SHIM_COVERAGE_KIND_POINTS &&
		    size >= sizeof(struct shim_coverage_points))
			read_points(block, at, size);
	} else if (kind == SHIM_COVERAGE_KIND_POINTS) {
		block->has_points = true;
	} else if (kind == SHIM_COVERAGE_KIND_LINES &&
		   size >= sizeof(struct shim_coverage_lines)) {
		read_lines(block, at);
	} else if (kind == SHIM_COVERAGE_KIND_FUNCTIONS) {
		read_functions(block, at, size);
	}
}

static void read_chunk(struct block *block, const struct shim_chunk *chunk)
{
	uint64_t at = chunk->offset, end = chunk->offset + chunk->size;
	uint64_t head[2];

	while (end - at >= sizeof(struct shim_coverage_functions)) {
		memcpy(head, block->file->data + at, sizeof(head));
		if (head[0] == 0)
			return;
		if (head[1] < sizeof(struct shim_coverage_functions) ||
		    head[1] % 8 || head[1] > end - at) {
			warn("%s: at offset %" PRIu64 ": a block of %" PRIu64
			     " bytes cannot be",
			     block->file->name, at, head[1]);
			return;
		}
		read_block(block, (uint32_t)head[0], at, head[1]);
		at += head[1];
	}
}

static void read_file(struct block *block)
{
	const struct coverage_file *file = block->file;
	struct shim_chunk chunks[SHIM_FILE_CHUNKS];
	struct shim_file head;
	uint32_t i, count;

	if (file->size < sizeof(head)) {
		warn("%s: cut at offset %" PRIu64, file->name, file->size);
		return;
	}
	memcpy(&head, file->data, sizeof(head));
	if (is_unfinished(file->name, head.version))
		return;
	check_version(file->name, head.version);
	count = read_chunks(file->name, file->size, &head, chunks);
	for (i = 0; i < count; i++)
		read_chunk(block, &chunks[i]);
}

/* NAME of the profile "coverage:label=NAME", which may be one of several. */
static const char *find_label(const struct process *process)
{
	const char *profile = process_string(process, "profile");
	const char *at = profile ? strstr(profile, "coverage:label=") : NULL;

	if (!at)
		return "";
	at += strlen("coverage:label=");
	return keep_text(at, strcspn(at, ";"));
}

/* Reads lines first, then their counts.  All data come from one process, so of
 * two counts for the same line the larger one is right. */
static void read_process(struct block *block)
{
	struct coverage *coverage = block->coverage;
	size_t first = coverage->line_count;
	uint32_t n;

	for (int pass = 0; pass < 1 + block->has_points; pass++) {
		block->reads_points = pass == 1;
		for (n = 0; n < block->process->coverage_count; n++) {
			block->file = &block->process->coverage[n];
			read_file(block);
		}
	}
	coverage->line_count = first +
			       coverage_sum_up(coverage->lines + first,
					       coverage->line_count - first,
					       false);
	coverage_keep_small(coverage);
	for (n = 0; n < block->found_count; n++)
		free(block->found[n].files);
	free(block->found);
	names_free(&block->place_keys);
	names_free(&block->images);
	free(block->image_numbers);
}

void coverage_add(struct coverage *coverage, const struct recording *recording)
{
	uint32_t i;

	for (i = 0; i < recording->process_count; i++) {
		const struct process *process = &recording->processes[i];
		struct block block = {
			.process = process,
			.coverage = coverage,
			.test = names_add(&coverage->tests,
					  find_label(process)),
		};

		progress("reading", i, recording->process_count);
		read_process(&block);
	}
	progress_end();
}
