/*
 * Reads the parts of a process's N.trace, N.functions and N.values that every
 * reader needs first: the list of blocks, the meaning of numbers, and the end
 * of the program. trace/reader.c reads the records.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <shim/format.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/messages.h"
#include "base/numbers.h"
#include "read/files.h"
#include "read/process.h"
#include "read/recording.h"
#include "trace/clocks.h"
#include "trace/gaps.h"
#include "trace/messages.h"
#include "trace/reader.h"
#include "trace/trace.h"
#include "trace/values.h"

#define OTHER_FILES 64
#define BLOCKS_MAX  (1ull << 32)

/* "12.trace" */
static bool has_suffix(const char *name, const char *suffix)
{
	size_t digits = strspn(name, "0123456789");

	return digits && !strcmp(name + digits, suffix);
}

static bool is_trace_name(const char *name)
{
	return has_suffix(name, ".trace");
}

static bool is_functions_name(const char *name)
{
	return has_suffix(name, ".functions");
}

static bool is_values_name(const char *name)
{
	return has_suffix(name, ".values");
}

/* --- functions --- */

static uint32_t add_site(struct recording *recording, uint32_t process,
			 uint64_t word)
{
	GROW(recording->sites, recording->site_count, recording->site_room);
	recording->sites[recording->site_count] = (struct site){
		.address = word & SHIM_NODE_ADDRESS,
		.generation = SHIM_NODE_GENERATION(word),
		.process = process,
		.function = NONE,
	};
	return recording->site_count++;
}

static void add_number(struct site_table *table, uint32_t site)
{
	GROW(table->sites, table->count, table->room);
	table->sites[table->count++] = site;
}

/* Numbers are assigned in order, but a thread may die before it writes the word
 * of its number.  This many zeros in a row are the end: the file may be one
 * large hole. */
#define UNUSED_MAX 65536

/* Returns false at the end. */
static bool add_functions(struct trace *trace, uint32_t process,
			  const unsigned char *words, uint64_t count)
{
	struct site_table *table = &trace->tables[process];
	uint64_t word, i;

	for (i = 0; i < count; i++) {
		memcpy(&word, words + i * sizeof(word), sizeof(word));
		if (!word && ++table->unused > UNUSED_MAX)
			return false;
		if (!word)
			continue;
		for (; table->unused > 0; table->unused--)
			add_number(table, table->unknown);
		add_number(table, add_site(trace->recording, process, word));
	}
	return true;
}

static bool check_header(const char *name, const struct shim_file *header,
			 const char *kind)
{
	if (is_unfinished(name, header->version))
		return false;
	if (memcmp(header->magic, SHIM_FILE_MAGIC, sizeof(header->magic))) {
		warn("%s: at offset 0: not a shim_file", name);
		return false;
	}
	check_version(name, header->version);
	if (strncmp(header->kind, kind, sizeof(header->kind))) {
		warn("%s: at offset 16: kind \"%.16s\", not %s", name,
		     header->kind, kind);
		return false;
	}
	return true;
}

/* The words after the last one are 0. */
static void read_functions(struct trace *trace, uint32_t process,
			   const char *name, const unsigned char *data,
			   uint64_t size, const struct shim_file *header)
{
	struct shim_chunk chunks[SHIM_FILE_CHUNKS];
	uint32_t i, count = read_chunks(name, size, header, chunks);

	for (i = 0; i < count; i++)
		if (!add_functions(trace, process, data + chunks[i].offset,
				   chunks[i].size / sizeof(uint64_t)))
			return;
}

typedef void read_file(struct trace *trace, uint32_t process, const char *name,
		       const unsigned char *data, uint64_t size,
		       const struct shim_file *header);

/* Reads a file that exists once per process. */
static void read_one(struct trace *trace, uint32_t process, int directory,
		     const char *file, const char *kind, read_file *read)
{
	const char *path = trace->recording->path;
	const char *name = keep_format(
		"%s/%s/%s", path, trace->recording->processes[process].name,
		file);
	int fd = open_in(directory, file, name);
	const unsigned char *data;
	struct shim_file header;
	uint64_t size = 0;

	data = fd < 0 ? NULL : map_file(fd, name, &size);
	if (fd >= 0)
		close(fd);
	if (!data)
		return;
	if (size < sizeof(header)) {
		warn("%s: cut at offset %" PRIu64 ", in its header", name,
		     size);
	} else {
		memcpy(&header, data, sizeof(header));
		if (check_header(name, &header, kind))
			read(trace, process, name, data, size, &header);
	}
	unmap_file(data, size);
}

/* --- blocks --- */

static int compare_blocks(const void *left, const void *right)
{
	const struct trace_block *a = left, *b = right;

	if (a->sequence != b->sequence)
		return a->sequence < b->sequence ? -1 : 1;
	return a->offset < b->offset ? -1 : a->offset > b->offset;
}

/* A block that was being copied when the program died exists twice; the first
 * copy is complete. */
static void drop_copies(struct trace_file *file)
{
	uint32_t i, kept = 0;

	for (i = 0; i < file->block_count; i++)
		if (kept == 0 ||
		    file->blocks[kept - 1].sequence != file->blocks[i].sequence)
			file->blocks[kept++] = file->blocks[i];
	file->block_count = kept;
}

/* Blocks are numbered, and the file holds the number of the last block that was
 * begun.  A ring has overwritten its oldest blocks.  A number beyond any
 * possible file is itself damaged. */
static void count_missing(struct trace_file *file)
{
	uint64_t last = file->info.blocks, first = 1, there = 0;
	uint32_t i;

	if (file->info.ring_size && file->block_count)
		first = file->blocks[0].sequence;
	for (i = 0; i < file->block_count; i++)
		there += file->blocks[i].sequence <= last;
	if (last <= BLOCKS_MAX && last >= first && last - first + 1 > there)
		file->damage.missing = last - first + 1 - there;
}

static bool read_at(int fd, void *memory, size_t size, uint64_t offset)
{
	return pread(fd, memory, size, (off_t)offset) == (ssize_t)size;
}

/* The first block from @at on that is not in a hole; a hole has no blocks. */
static uint64_t skip_hole(int fd, uint64_t at)
{
	off_t data = lseek(fd, (off_t)at, SEEK_DATA);

	if (data < 0)
		return errno == ENXIO ? UINT64_MAX / 2 / SHIM_TRACE_BLOCK *
						SHIM_TRACE_BLOCK :
					at;
	return (uint64_t)data / SHIM_TRACE_BLOCK * SHIM_TRACE_BLOCK;
}

static void find_blocks(struct trace_file *file, int fd)
{
	struct shim_trace_block header;
	uint64_t at, begin;
	uint32_t room = 0;

	for (at = 0; at < file->size; at += SHIM_TRACE_BLOCK) {
		at = skip_hole(fd, at);
		begin = at ? at : SHIM_TRACE_FIRST;
		if (!read_at(fd, &header, sizeof(header), begin) ||
		    header.sequence == 0)
			continue;
		GROW(file->blocks, file->block_count, room);
		file->blocks[file->block_count++] = (struct trace_block){
			.sequence = header.sequence,
			.time = header.time,
			.calls_before = header.calls_before,
			.offset = begin,
			.end = at + SHIM_TRACE_BLOCK < file->size ?
				       at + SHIM_TRACE_BLOCK :
				       file->size,
		};
	}
	if (file->block_count)
		qsort(file->blocks, file->block_count, sizeof(*file->blocks),
		      compare_blocks);
	drop_copies(file);
	count_missing(file);
}

static bool read_info(struct trace_file *file, int fd)
{
	struct shim_file header;
	uint64_t lost = 0;
	unsigned i;

	if (!read_at(fd, &header, sizeof(header), 0) ||
	    file->size < SHIM_TRACE_FIRST ||
	    !read_at(fd, &file->info, sizeof(file->info), 4096)) {
		warn("%s: cut at offset %" PRIu64 ", in its header", file->name,
		     file->size);
		return false;
	}
	if (!check_header(file->name, &header, "trace"))
		return false;
	/* a block that was allocated but not begun */
	if (file->info.block_size == 0)
		return false;
	if (header.header_size != 4096 ||
	    file->info.block_size != SHIM_TRACE_BLOCK ||
	    file->info.time_shift > 16) {
		warn("%s: at offset 4096: blocks of %u bytes, times shifted by "
		     "%u: not what this reader knows",
		     file->name, file->info.block_size, file->info.time_shift);
		return false;
	}
	for (i = 0; i < SHIM_LOST_CAUSES; i++)
		lost += file->info.lost[i];
	file->calls_lost = lost;
	if (file->info.ring_size)
		read_at(fd, &file->ring_calls, sizeof(file->ring_calls),
			4096 + SHIM_TRACE_RING_CALLS);
	return true;
}

static void add_file(struct trace *trace, uint32_t process, int directory,
		     const char *name, uint32_t *room)
{
	struct recording *recording = trace->recording;
	struct trace_file file = { .process = process };
	struct stat info;
	int fd;

	file.name = keep_format("%s/%s/%s", recording->path,
				recording->processes[process].name, name);
	fd = open_in(directory, name, file.name);
	if (fd < 0)
		return;
	if (fstat(fd, &info) || !S_ISREG(info.st_mode)) {
		warn("%s: not a regular file", file.name);
		close(fd);
		return;
	}
	file.size = (uint64_t)info.st_size;
	if (read_info(&file, fd)) {
		find_blocks(&file, fd);
		GROW(trace->files, trace->file_count, *room);
		trace->files[trace->file_count++] = file;
	}
	close(fd);
}

/* --- opening --- */

static void open_files(struct trace *trace, uint32_t process, int directory,
		       uint32_t *room)
{
	char **names;
	size_t count, i;

	trace->tables[process].unknown = add_site(trace->recording, process, 0);
	names = list_names(directory, is_functions_name, &count);
	if (count)
		read_one(trace, process, directory, names[0], "functions",
			 read_functions);
	free(names);
	names = list_names(directory, is_values_name, &count);
	if (count)
		read_one(trace, process, directory, names[0], SHIM_VALUES_KIND,
			 trace_values_read);
	free(names);
	names = list_names(directory, is_trace_name, &count);
	for (i = 0; i < count; i++)
		add_file(trace, process, directory, names[i], room);
	free(names);
}

bool trace_is_there(const struct recording *recording)
{
	int directory = recording_directory(recording->path), fd;
	bool found = false;
	char **names;
	size_t count;
	uint32_t i;

	for (i = 0; i < recording->process_count && !found; i++) {
		fd = try_directory(directory, recording->processes[i].name);
		if (fd < 0)
			continue;
		names = list_names(fd, is_trace_name, &count);
		found = count > 0;
		free(names);
		close(fd);
	}
	if (directory >= 0)
		close(directory);
	return found;
}

/* If the end of a process is otherwise unknown, its last records define it. */
static void find_ends(struct trace *trace)
{
	struct process *process;
	uint32_t i;

	for (i = 0; i < trace->file_count; i++) {
		process = &trace->recording->processes[trace->files[i].process];
		if (process->end_source != END_UNKNOWN || !process->has_meta)
			continue;
		process_see_clock(process, trace_last_clock(trace, i));
		process->end_clock = process->latest_clock;
	}
	trace->thread_count = 0; /* the threads were found in reverse order */
	map_free(&trace->by_ordinal);
}

/* The block stores the low half of the number; the ring holds fewer calls than
 * 2^32. */
static uint64_t calls_overwritten(const struct trace_file *file)
{
	return file->ring_calls - (uint32_t)((uint32_t)file->ring_calls -
					     file->blocks[0].calls_before);
}

/* Reports calls that the user's options left out. */
static void say_what_is_missing(const struct trace *trace)
{
	uint64_t too_short = 0, filtered = 0, overwritten = 0, calls = 0;
	char text[SHORT_TEXT], more[SHORT_TEXT];
	uint32_t i;

	for (i = 0; i < trace->file_count; i++) {
		const struct trace_file *file = &trace->files[i];

		too_short += file->info.too_short;
		filtered += file->info.filtered;
		if (file->block_count && file->blocks[0].sequence > 1) {
			overwritten += file->blocks[0].sequence - 1;
			calls += calls_overwritten(file);
		}
	}
	trace->recording->has_left_out = too_short || filtered;
	if (too_short)
		warn("%s: %s calls were too short to be traced (min=)",
		     trace->recording->path, human_count(text, too_short));
	if (filtered)
		warn("%s: %s calls were not to be traced (depth=, every=, "
		     "trigger=)",
		     trace->recording->path, human_count(text, filtered));
	if (overwritten)
		warn("%s: only the last calls are there (ring=): %s before them, "
		     "%s MiB, were overwritten",
		     trace->recording->path, human_count(more, calls),
		     human_count(text, (overwritten + 15) / 16));
}

bool trace_open(struct trace *trace, struct recording *recording)
{
	struct rlimit limit;
	uint32_t i, room = 0;
	int directory, fd;

	*trace = (struct trace){ .recording = recording };
	trace_clocks_open(trace);
	/* Each reader keeps its file open while descriptors last; the other
	 * files get some of them. */
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
		getrlimit(RLIMIT_NOFILE, &limit);
		if (limit.rlim_cur > OTHER_FILES)
			trace->open_max = limit.rlim_cur - OTHER_FILES;
	}
	trace->tables = allocate(recording->process_count,
				 sizeof(*trace->tables));
	trace->values = allocate(recording->process_count,
				 sizeof(*trace->values));
	directory = recording_directory(recording->path);
	if (directory < 0)
		die("%s: %s", recording->path, strerror(errno));
	for (i = 0; i < recording->process_count; i++) {
		const struct process *process = &recording->processes[i];

		fd = open_directory(directory, recording->path, process->name);
		if (fd < 0)
			continue;
		open_files(trace, i, fd, &room);
		close(fd);
	}
	close(directory);
	find_ends(trace);
	trace_gaps_open(trace);
	say_what_is_missing(trace);
	return trace->file_count > 0;
}

void trace_close(struct trace *trace)
{
	uint32_t i;

	for (i = 0; i < trace->file_count; i++)
		free(trace->files[i].blocks);
	for (i = 0; i < trace->recording->process_count; i++) {
		free(trace->tables[i].sites);
		trace_values_close(trace->values[i]);
	}
	free(trace->tables);
	free(trace->values);
	free(trace->files);
	free(trace->threads);
	free(trace->gaps);
	trace_messages_free(trace->messages);
	trace_clocks_close(trace);
	map_free(&trace->by_ordinal);
	*trace = (struct trace){ .recording = NULL };
}
