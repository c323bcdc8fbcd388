/*
 * Reads one N.calltree file: finds which of its 64-byte slots are nodes, and
 * which node a pointer means.  The first word and the parent of each node are
 * read here exactly once, so a program that still runs cannot change what has
 * been checked.  Holes of the file are skipped: a file may be far larger than
 * its content.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <shim/format.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/messages.h"
#include "base/names.h"
#include "base/search.h"
#include "read/calltree.h"
#include "read/files.h"
#include "read/process.h"
#include "read/recording.h"

#define SLOT 64u

/* The context and the counts of one scan. */
struct scan {
	struct tree_file *file;
	struct recording *recording;
	uint32_t process;
	struct site_maps *sites;
	/* number of the group in this file: number in recording->groups */
	struct map groups;
	uint64_t lost_groups, lost_groups_offset;
	uint32_t entry_room, extent_room, memory_room, lock_room, throw_room;
	uint32_t snapshot_room, alive_room, throttled_room;
	uint64_t *parents; /* program addresses, parallel to file->entries */
	uint32_t parent_room;
	uint64_t slots;
	uint64_t garbage, garbage_offset;
	uint64_t lost_parents, lost_parents_offset;
	uint64_t end; /* of the last node, or begin of the chunk */
	uint64_t gaps, gaps_offset;
};

static uint64_t load(const unsigned char *at)
{
	uint64_t word;

	memcpy(&word, at, sizeof(word));
	return word;
}

static void blame(uint64_t *count, uint64_t *first, uint64_t offset)
{
	if ((*count)++ == 0)
		*first = offset;
}

static bool read_header(struct tree_file *file)
{
	struct shim_file header = { .version = 0 };
	size_t size = file->size < sizeof(header) ? file->size : sizeof(header);

	memcpy(&header, file->data, size);
	if (is_unfinished(file->name, header.version))
		return false;
	if (memcmp(header.magic, SHIM_FILE_MAGIC, sizeof(header.magic))) {
		warn("%s: at offset 0: not a shim_file", file->name);
		return false;
	}
	check_version(file->name, header.version);
	if (size < sizeof(header)) {
		warn("%s: cut at offset %zu, in its header", file->name, size);
		return false;
	}
	if (header.header_size < sizeof(header)) {
		warn("%s: at offset 12: header size %u, at least %zu expected",
		     file->name, header.header_size, sizeof(header));
		return false;
	}
	file->is_sampled = !strncmp(header.kind, "sampling",
				    sizeof(header.kind));
	if (!file->is_sampled &&
	    strncmp(header.kind, "calltree", sizeof(header.kind))) {
		warn("%s: at offset 16: kind \"%.16s\", not calltree",
		     file->name, header.kind);
		return false;
	}
	file->tid = header.tid;
	file->chunk_count = read_chunks(file->name, file->size, &header,
					file->chunks);
	for (uint32_t i = 0; i < file->chunk_count; i++)
		file->chunks[i].size -= file->chunks[i].size % SLOT;
	return true;
}

/*
 * Appends the parts of chunk @c that are not holes.  A node that begins before
 * a hole may end in it, so an extent limits only where its nodes begin.
 */
static void find_extents(struct scan *scan, int fd, uint32_t c)
{
	struct tree_file *file = scan->file;
	uint64_t at = file->chunks[c].offset;
	uint64_t end = at + file->chunks[c].size;
	struct extent extent = { .chunk = c };
	off_t data, hole;

	while (at < end) {
		data = lseek(fd, (off_t)at, SEEK_DATA);
		if (data < 0 && errno == ENXIO)
			return;
		hole = data < 0 ? -1 : lseek(fd, data, SEEK_HOLE);
		/* The file system does not report holes: treat all as data. */
		extent.begin = data < 0 || (uint64_t)data < at ? at :
								 (uint64_t)data;
		extent.end = hole < 0 || (uint64_t)hole > end ? end :
								(uint64_t)hole;
		extent.begin -= (extent.begin - file->chunks[c].offset) % SLOT;
		extent.end += (end - extent.end) % SLOT;
		if (extent.begin >= end || extent.end <= extent.begin)
			return;
		if (extent.begin < at)
			extent.begin = at;
		extent.first_slot = (uint32_t)scan->slots;
		scan->slots += (extent.end - extent.begin) / SLOT;
		GROW(file->extents, file->extent_count, scan->extent_room);
		file->extents[file->extent_count++] = extent;
		at = extent.end;
	}
}

static uint32_t add_site(struct scan *scan, uint64_t function,
			 const char *group)
{
	struct recording *recording = scan->recording;

	GROW(recording->sites, recording->site_count, recording->site_room);
	recording->sites[recording->site_count] = (struct site){
		.address = function & SHIM_NODE_ADDRESS,
		.generation = SHIM_NODE_GENERATION(function),
		.process = scan->process,
		.group = group,
	};
	return recording->site_count++;
}

static uint32_t find_site(struct scan *scan, uint64_t function)
{
	uint32_t next = scan->recording->site_count;
	uint32_t site = map_add(&scan->sites->plain, function, next);

	return site == next ? add_site(scan, function, NULL) : site;
}

/* The site of one group of @function's calls.  Groups with equal names are one
 * group, whatever their numbers are. */
static uint32_t find_group_site(struct scan *scan, uint64_t function,
				uint16_t number, uint64_t offset)
{
	struct recording *recording = scan->recording;
	struct site_maps *sites = scan->sites;
	uint32_t group = map_get(&scan->groups, number), next, site;
	uint64_t id;

	if (group == NONE) {
		blame(&scan->lost_groups, &scan->lost_groups_offset, offset);
		group = names_add(&recording->groups,
				  keep_format("#%u", number));
		map_add(&scan->groups, number, group);
	}
	id = map_add(&sites->functions, function,
		     (uint32_t)sites->functions.count);
	next = recording->site_count;
	site = map_add(&sites->grouped, id << 32 | group, next);
	return site == next ?
		       add_site(scan, function, recording->groups.text[group]) :
		       site;
}

/* The site of a sampled frame. */
static uint32_t find_frame_site(struct scan *scan, uint64_t address)
{
	struct recording *recording = scan->recording;
	uint32_t next = recording->site_count, site;

	if (!(address & SHIM_NODE_ADDRESS))
		address = SHIM_SAMPLE_UNKNOWN;
	site = map_add(&scan->sites->frames, address, next);
	if (site == next) {
		add_site(scan, address, NULL);
		recording->sites[site].is_frame = true;
	}
	return site;
}

static void add_group(struct scan *scan, const unsigned char *at)
{
	struct shim_group_node group;
	uint32_t size;

	memcpy(&group, at, sizeof(group));
	size = group.text_size;
	if (size > sizeof(group.text))
		size = sizeof(group.text);
	map_add(&scan->groups, group.function & SHIM_NODE_ADDRESS,
		names_add(&scan->recording->groups,
			  keep_text(group.text, size)));
}

static void add_entry(struct scan *scan, uint64_t offset, uint32_t slot,
		      uint64_t parent, uint32_t site)
{
	struct tree_file *file = scan->file;

	GROW(scan->parents, file->entry_count, scan->parent_room);
	GROW(file->entries, file->entry_count, scan->entry_room);
	scan->parents[file->entry_count] = parent;
	file->entries[file->entry_count++] = (struct entry){
		.offset = offset,
		.parent = NONE,
		.site = site,
		.path = NONE,
		.thread = NONE,
	};
	file->slots[slot] = file->entry_count;
}

/* Returns 0 if there is no node.  The words of the last kinds contain no number. */
static uint64_t node_size(uint64_t function)
{
	bool has_number = function >> 48 > SHIM_NODE_SAMPLED >> 48;

	if ((function & SHIM_NODE_SPECIAL) == SHIM_NODE_SPECIAL &&
	    !has_number && (function & SHIM_NODE_ADDRESS) != 0)
		return 0;
	return shim_node_size(function);
}

/* A function of an interpreter.  Equal names of files have one address. */
static void add_code(struct scan *scan, struct process *process,
		     const unsigned char *at)
{
	struct shim_code_node node;
	uint32_t file;

	memcpy(&node, at, sizeof(node));
	if (node.name_size > sizeof(node.text) ||
	    node.file_size > sizeof(node.text) - node.name_size ||
	    node.lines == 0 || node.lines > INT_MAX ||
	    node.address + node.lines < node.address ||
	    node.first_line > INT_MAX - node.lines)
		return;
	file = names_add(&scan->recording->code_files,
			 keep_text(node.text + node.name_size, node.file_size));
	jit_map_add(&process->jit_map,
		    &(struct jit_code){
			    .begin = node.address,
			    .end = node.address + node.lines,
			    .name = keep_text(node.text, node.name_size),
			    .file = scan->recording->code_files.text[file],
			    .line = (int)node.first_line,
		    });
}

static void add_memory(struct scan *scan, uint64_t offset)
{
	struct tree_file *file = scan->file;

	GROW(file->memory, file->memory_count, scan->memory_room);
	file->memory[file->memory_count++] = offset;
}

/* Returns 0 if the slot cannot be a node. */
static uint64_t type_size(const unsigned char *at, uint64_t left)
{
	struct shim_type_node node;

	if (left < sizeof(node))
		return 0;
	memcpy(&node, at, sizeof(node));
	return node.text_size > SHIM_TYPE_TEXT ||
			       sizeof(node) + node.text_size > left ?
		       0 :
		       shim_type_node_size(node.text_size);
}

static void add_throw(struct scan *scan, uint64_t offset)
{
	struct tree_file *file = scan->file;

	GROW(file->throws, file->throw_count, scan->throw_room);
	file->throws[file->throw_count++] = offset;
}

static void add_snapshot(struct scan *scan, uint64_t offset)
{
	struct tree_file *file = scan->file;

	GROW(file->snapshots, file->snapshot_count, scan->snapshot_room);
	file->snapshots[file->snapshot_count++] = offset;
}

static void add_alive(struct scan *scan, uint64_t offset)
{
	struct tree_file *file = scan->file;

	GROW(file->alive, file->alive_count, scan->alive_room);
	file->alive[file->alive_count++] = offset;
}

static void add_throttled(struct scan *scan, uint64_t offset)
{
	struct tree_file *file = scan->file;
	uint32_t site;
	uint64_t function = load(file->data + offset +
				 offsetof(struct shim_throttled_node, address));

	GROW(file->throttled, file->throttled_count, scan->throttled_room);
	site = find_site(scan, function & ~SHIM_NODE_EXACT);
	scan->recording->sites[site].has_hooks = true;
	file->throttled[file->throttled_count++] = (struct throttled){
		.offset = offset, .site = site
	};
}

static void add_lock(struct scan *scan, uint64_t offset)
{
	struct tree_file *file = scan->file;
	uint64_t start;

	GROW(file->locks, file->lock_count, scan->lock_room);
	file->locks[file->lock_count++] = offset;
	start = load(file->data + offset +
		     offsetof(struct shim_lock_node, start));
	process_see_clock(&scan->recording->processes[scan->process], start);
}

/*
 * Nodes follow each other, so only damage leaves zeros before the node at @offset.
 * Other gaps begin with more than zeros: a node without its first word, which the
 * program did not finish or did not need, or one that the program has written since
 * it was read as unused.
 */
static void check_gap(struct scan *scan, uint64_t offset)
{
	static const unsigned char zeros[sizeof(struct shim_heap_node)];
	uint64_t size = offset - scan->end;

	if (size == 0)
		return;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (!memcmp(scan->file->data + scan->end, zeros,
		    size < sizeof(zeros) ? size : sizeof(zeros)))
		blame(&scan->gaps, &scan->gaps_offset, scan->end);
}

/* When the thread is known to have run last. */
static uint64_t last_clock_of(const struct scan *scan,
			      const unsigned char *root)
{
	return load(root +
		    (scan->file->is_sampled ?
			     offsetof(struct shim_sample_root, last_clock) :
			     offsetof(struct shim_thread_node, last)));
}

/* Takes for a time of the process when the node's last call began and, where every call
 * is timed, when it ended. */
static void see_clock_of_node(const struct tree_file *file,
			      struct process *process, uint64_t offset)
{
	struct shim_extra_node extra;
	struct shim_node node;

	memcpy(&node, file->data + offset, sizeof(node));
	process_see_clock(process, node.start);
	/* Few nodes have run so late. */
	if (!node.frame && node.start + node.time > process->latest_clock &&
	    calltree_extra(file, node.extra, offset, &extra))
		process_see_clock(process, node.start + extra.last);
}

/* Reads the node at @offset, @left bytes before the end of its chunk, and
 * returns its size. */
static uint64_t scan_node(struct scan *scan, uint64_t function, uint64_t offset,
			  uint64_t left, uint32_t slot)
{
	const unsigned char *at = scan->file->data + offset;
	struct process *process = &scan->recording->processes[scan->process];
	uint64_t size = node_size(function);
	uint32_t site;
	uint16_t group;

	if (function >> 48 == SHIM_NODE_TYPE >> 48)
		size = type_size(at, left);
	/* Files of the sampling profiler have no such nodes. */
	if (scan->file->is_sampled &&
	    (function == SHIM_NODE_THROTTLED || function == SHIM_NODE_COUNTERS))
		size = 0;
	if (size == 0 || size > left) {
		blame(&scan->garbage, &scan->garbage_offset, offset);
		return SLOT;
	}
	if (function >> 48 == SHIM_NODE_LOCK >> 48) {
		add_lock(scan, offset);
		return size;
	}
	if (function >> 48 == SHIM_NODE_THROW >> 48) {
		add_throw(scan, offset);
		return size;
	}
	if (function >> 48 == SHIM_NODE_TYPE >> 48)
		return size;
	if (function == SHIM_NODE_THROTTLED) {
		add_throttled(scan, offset);
		return size;
	}
	if (function == SHIM_NODE_COUNTERS) {
		scan->file->counters = offset;
		return size;
	}
	if (function == SHIM_NODE_CODE) {
		add_code(scan, process, at);
		return size;
	}
	if (function == SHIM_NODE_SAMPLED) {
		const size_t parent = offsetof(struct shim_sampled_node,
					       parent),
			     address = offsetof(struct shim_sampled_node,
						address);

		scan->file->has_guesses |= load(at + address) >> 63;
		add_entry(scan, offset, slot, load(at + parent),
			  find_frame_site(scan, load(at + address) &
							~SHIM_NODE_EXACT));
		return size;
	}
	if (function >> 48 == SHIM_NODE_SNAPSHOT >> 48) {
		add_snapshot(scan, offset);
		return size;
	}
	if (function >> 48 == SHIM_NODE_ALIVE >> 48) {
		add_alive(scan, offset);
		return size;
	}
	if (function >> 48 == SHIM_NODE_POINTS >> 48)
		scan->file->points = offset;
	if (size == sizeof(struct shim_thread_node)) {
		add_entry(scan, offset, slot, 0, NONE);
		process_see_clock(process, last_clock_of(scan, at));
	}
	if (size == sizeof(struct shim_group_node))
		add_group(scan, at);
	if (size == sizeof(struct shim_memory_node))
		add_memory(scan, offset);
	if (size == sizeof(struct shim_heap_node))
		scan->file->heap = offset;
	if (size != sizeof(struct shim_node))
		return size;
	memcpy(&group, at + offsetof(struct shim_node, group), sizeof(group));
	function &= ~SHIM_NODE_EXACT;
	site = group ? find_group_site(scan, function, group, offset) :
		       find_site(scan, function);
	if (!scan->file->is_sampled)
		scan->recording->sites[site].has_hooks = true;
	add_entry(scan, offset, slot,
		  load(at + offsetof(struct shim_node, parent)), site);
	see_clock_of_node(scan->file, process, offset);
	return size;
}

/* Returns the size of what is at @offset: a node, or an unused slot. */
static uint64_t scan_slot(struct scan *scan, uint64_t offset, uint64_t left,
			  uint32_t slot)
{
	uint64_t function = load(scan->file->data + offset), size;

	if (function == 0)
		return SLOT;
	check_gap(scan, offset);
	size = scan_node(scan, function, offset, left, slot);
	scan->end = offset + size;
	return size;
}

static void scan_extents(struct scan *scan)
{
	struct tree_file *file = scan->file;
	const struct extent *extent = file->extents;
	const struct shim_chunk *chunk;
	uint64_t at = 0;
	uint32_t i, slot;

	for (i = 0; i < file->extent_count; i++, extent++) {
		chunk = &file->chunks[extent->chunk];
		if (i == 0 || extent->chunk != extent[-1].chunk)
			scan->end = chunk->offset;
		/* The last node of the previous extent may reach into this
		 * one. */
		if (at < extent->begin)
			at = extent->begin;
		while (at < extent->end) {
			slot = (uint32_t)((at - extent->begin) / SLOT);
			at += scan_slot(scan, at,
					chunk->offset + chunk->size - at,
					extent->first_slot + slot);
			if (slot % 65536 == 0)
				progress("reading", at, file->size);
		}
	}
}

/* The file offset of the program's @address; 0 if the file has no such
 * address. */
static uint64_t find_offset(const struct tree_file *file, uint64_t address,
			    uint32_t *chunk)
{
	uint32_t i;

	for (i = 0; i < file->chunk_count; i++)
		if (address - file->chunks[i].address < file->chunks[i].size) {
			*chunk = i;
			return file->chunks[i].offset + address -
			       file->chunks[i].address;
		}
	return 0;
}

static const struct extent *find_extent(const struct tree_file *file,
					uint64_t offset)
{
	uint32_t low = FIRST_NOT(i, file->extent_count,
				 file->extents[i].end <= offset);

	if (low == file->extent_count || file->extents[low].begin > offset)
		return NULL;
	return &file->extents[low];
}

uint32_t calltree_find(const struct tree_file *file, uint64_t address)
{
	const struct extent *extent;
	uint64_t offset;
	uint32_t chunk;

	offset = find_offset(file, address, &chunk);
	if (!offset || (address - file->chunks[chunk].address) % SLOT)
		return NONE;
	extent = find_extent(file, offset);
	if (!extent)
		return NONE;
	/* 0, no entry, becomes NONE. */
	return file->slots[extent->first_slot +
			   (offset - extent->begin) / SLOT] -
	       1;
}

uint32_t calltree_find_path(const struct tree_file *file, uint64_t address)
{
	uint32_t entry = calltree_find(file, address);

	return entry == NONE ? NONE : file->entries[entry].path;
}

static void find_parents(struct scan *scan)
{
	struct tree_file *file = scan->file;
	struct entry *entry = file->entries;
	uint32_t i;

	for (i = 0; i < file->entry_count; i++, entry++) {
		if (entry->site == NONE)
			continue;
		entry->parent = calltree_find(file, scan->parents[i]);
		if (entry->parent == NONE)
			blame(&scan->lost_parents, &scan->lost_parents_offset,
			      entry->offset);
	}
}

static void say_damage(const struct scan *scan)
{
	if (scan->gaps)
		warn("%s: at offset %" PRIu64 ": zeros between nodes%s",
		     scan->file->name, scan->gaps_offset,
		     more_like_it(scan->gaps - 1));
	if (scan->garbage)
		warn("%s: at offset %" PRIu64 ": not a node%s",
		     scan->file->name, scan->garbage_offset,
		     more_like_it(scan->garbage - 1));
	if (scan->lost_parents)
		warn("%s: at offset %" PRIu64 ": the node's parent is not in "
		     "the file%s; shown without callers",
		     scan->file->name, scan->lost_parents_offset,
		     more_like_it(scan->lost_parents - 1));
	if (scan->lost_groups)
		warn("%s: at offset %" PRIu64 ": nothing in the file says what "
		     "the node's group is%s; shown by its number",
		     scan->file->name, scan->lost_groups_offset,
		     more_like_it(scan->lost_groups - 1));
}

bool calltree_open(struct tree_file *file, int fd, const char *name,
		   struct recording *recording, uint32_t process,
		   struct site_maps *sites)
{
	struct scan scan = { .file = file,
			     .recording = recording,
			     .process = process,
			     .sites = sites };
	uint32_t i;

	*file = (struct tree_file){ .name = name };
	file->data = map_file(fd, name, &file->size);
	if (!file->data || !read_header(file))
		return false;
	for (i = 0; i < file->chunk_count; i++)
		find_extents(&scan, fd, i);
	if (scan.slots >= NONE) {
		warn("%s: too large: %" PRIu64 " nodes", name, scan.slots);
		return false;
	}
	file->slots = allocate(scan.slots, sizeof(*file->slots));
	scan_extents(&scan);
	find_parents(&scan);
	say_damage(&scan);
	file->damaged = scan.garbage + scan.lost_parents + scan.gaps;
	if (file->damaged < scan.lost_groups)
		file->damaged = scan.lost_groups;
	free(scan.parents);
	map_free(&scan.groups);
	return true;
}

void calltree_close(struct tree_file *file)
{
	unmap_file(file->data, file->size);
	free(file->extents);
	free(file->slots);
	free(file->entries);
	free(file->memory);
	free(file->snapshots);
	free(file->alive);
	free(file->locks);
	free(file->throws);
	free(file->throttled);
}

/* Adds the duration of the last call, which the program had no time to add. */
static void count_last(struct shim_extra_node *extra)
{
	unsigned bucket = 0;

	while (bucket < SHIM_BUCKETS - 1 && extra->last >> bucket > 1)
		bucket++;
	++*shim_bucket(extra, bucket);
	if (extra->last < extra->min)
		extra->min = extra->last;
	if (extra->last > extra->max)
		extra->max = extra->last;
}

const char *calltree_type(const struct tree_file *file, uint64_t address)
{
	struct shim_type_node node;
	uint32_t c;
	uint64_t at = find_offset(file, address, &c), left;

	if (!at)
		return NULL;
	left = file->chunks[c].offset + file->chunks[c].size - at;
	if (left < sizeof(node) ||
	    load(file->data + at) >> 48 != SHIM_NODE_TYPE >> 48 ||
	    !type_size(file->data + at, left))
		return NULL;
	memcpy(&node, file->data + at, sizeof(node));
	return keep_format(
		"%s%s",
		keep_text((const char *)file->data + at + sizeof(node),
			  node.text_size),
		node.is_cut ? "..." : "");
}

uint64_t calltree_address(const struct tree_file *file, uint64_t offset)
{
	uint32_t i;

	for (i = 0; i < file->chunk_count; i++)
		if (offset - file->chunks[i].offset < file->chunks[i].size)
			return file->chunks[i].address + offset -
			       file->chunks[i].offset;
	return 0;
}

bool calltree_is_memory(const struct tree_file *file, uint64_t address)
{
	uint32_t c;
	uint64_t at = find_offset(file, address, &c);

	return at && at + sizeof(uint64_t) <= file->size &&
	       load(file->data + at) == SHIM_NODE_MEMORY;
}

bool calltree_memory(const struct tree_file *file, uint64_t address,
		     struct shim_memory_node *memory)
{
	uint32_t c;
	uint64_t at = find_offset(file, address, &c);

	if (!at || at > file->size || file->size - at < sizeof(*memory))
		return false;
	memcpy(memory, file->data + at, sizeof(*memory));
	return memory->function == SHIM_NODE_MEMORY;
}

/* Ranges overlap only in a damaged recording.  Then any of the next few ranges
 * will do. */
#define RANGES_TRIED 4

static const struct tree_file *find_file(const struct process *process,
					 uint64_t address)
{
	const struct file_range *ranges = process->ranges;
	uint32_t low = FIRST_NOT(i, process->range_count,
				 ranges[i].begin <= address);
	uint32_t tries;

	for (tries = 0; low > 0 && tries < RANGES_TRIED; tries++) {
		low--;
		if (address - ranges[low].begin < ranges[low].size)
			return &process->files[ranges[low].file];
	}
	return NULL;
}

bool calltree_lives(const struct process *process, uint64_t address,
		    struct shim_lives_node *lives)
{
	const struct tree_file *file = find_file(process, address);
	uint32_t c;
	uint64_t at = file ? find_offset(file, address, &c) : 0;

	if (!at || at > file->size || file->size - at < sizeof(*lives))
		return false;
	memcpy(lives, file->data + at, sizeof(*lives));
	return lives->function == SHIM_NODE_LIVES;
}

bool calltree_extra(const struct tree_file *file, uint64_t address,
		    uint64_t offset, struct shim_extra_node *extra)
{
	const struct shim_chunk *chunk;
	uint64_t at, node;
	uint32_t c, node_chunk;

	at = find_offset(file, address, &c);
	if (!at)
		return false;
	chunk = &file->chunks[c];
	if (sizeof(*extra) > chunk->offset + chunk->size - at)
		return false;
	memcpy(extra, file->data + at, sizeof(*extra));
	count_last(extra);
	node = find_offset(file, extra->node, &node_chunk);
	return extra->function >> 48 == SHIM_NODE_EXTRA >> 48 && node == offset;
}
