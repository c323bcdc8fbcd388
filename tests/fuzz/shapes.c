#include "shapes.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <shim/format.h>
#include <shim/typetree.h>

#include "readers.h"

#define FILES_MAX 256

#define FIELD(type, field, kind) \
	{ \
#field, offsetof(struct type, field), \
			sizeof(((struct type *)0)->field), FIELD_##kind \
	}
#define SHAPE(name) \
	static const struct shape name##_shape = { \
		#name, name##_fields, \
		sizeof(name##_fields) / sizeof(*name##_fields) \
	}

/* --- all structures --- */

static const struct field meta_fields[] = {
	FIELD(shim_meta, magic, TEXT),
	FIELD(shim_meta, version, VERSION),
	FIELD(shim_meta, size, SIZE),
	FIELD(shim_meta, pid, NUMBER),
	FIELD(shim_meta, parent_pid, NUMBER),
	FIELD(shim_meta, clock, FLAG),
	FIELD(shim_meta, end, FLAG),
	FIELD(shim_meta, exit_status, NUMBER),
	FIELD(shim_meta, forked, FLAG),
	FIELD(shim_meta, first_clock, CLOCK),
	FIELD(shim_meta, first_mono_ns, CLOCK),
	FIELD(shim_meta, last_clock, CLOCK),
	FIELD(shim_meta, last_mono_ns, CLOCK),
	FIELD(shim_meta, clock_hz, NUMBER),
	FIELD(shim_meta, start_real_ns, CLOCK),
	FIELD(shim_meta, end_clock, CLOCK),
	FIELD(shim_meta, tick, NUMBER),
	FIELD(shim_meta, cost_coarse, NUMBER),
	FIELD(shim_meta, cost_exact, NUMBER),
	FIELD(shim_meta, orphans, NUMBER),
	FIELD(shim_meta, unwound, NUMBER),
	FIELD(shim_meta, strings_size, SIZE),
	FIELD(shim_meta, log_size, SIZE),
	FIELD(shim_meta, strings, TEXT),
	FIELD(shim_meta, log, TEXT),
	FIELD(shim_meta, lost_threads, COUNT),
	FIELD(shim_meta, lost, NUMBER),
	FIELD(shim_meta, switched, NUMBER),
	FIELD(shim_meta, sites, NUMBER),
	FIELD(shim_meta, has_self, FLAG),
	FIELD(shim_meta, cost_unseen, NUMBER),
	FIELD(shim_meta, budget, NUMBER),
	FIELD(shim_meta, throttle_failed, COUNT),
	FIELD(shim_meta, sample_period_ns, NUMBER),
	FIELD(shim_meta, sample_weight, NUMBER),
	FIELD(shim_meta, own_ns, CLOCK),
	FIELD(shim_meta, filter_items, COUNT),
	FIELD(shim_meta, filter_matches, NUMBER),
	FIELD(shim_meta, throttled, COUNT),
	FIELD(shim_meta, bursts, COUNT),
	FIELD(shim_meta, fine_tick, NUMBER),
	FIELD(shim_meta, is_cpu, FLAG),
	FIELD(shim_meta, waited, CLOCK),
	FIELD(shim_meta, images_ns, CLOCK),
};
SHAPE(meta);

static const struct field images_fields[] = {
	FIELD(shim_images, magic, TEXT),
	FIELD(shim_images, version, VERSION),
	FIELD(shim_images, header_size, SIZE),
	FIELD(shim_images, lost, COUNT),
};
SHAPE(images);

static const struct field image_fields[] = {
	FIELD(shim_image_record, size, SIZE),
	FIELD(shim_image_record, generation, NUMBER),
	FIELD(shim_image_record, start, LINK),
	FIELD(shim_image_record, end, LINK),
	FIELD(shim_image_record, bias, LINK),
	FIELD(shim_image_record, load_clock, CLOCK),
	FIELD(shim_image_record, unload_clock, CLOCK),
	FIELD(shim_image_record, device, NUMBER),
	FIELD(shim_image_record, inode, NUMBER),
	FIELD(shim_image_record, build_id_size, SIZE),
	FIELD(shim_image_record, path_size, SIZE),
};
SHAPE(image);

static const struct field text_fields[] = { { "text", 0, 0, FIELD_TEXT } };
SHAPE(text);

static const struct field file_fields[] = {
	FIELD(shim_file, magic, TEXT),	     FIELD(shim_file, version, VERSION),
	FIELD(shim_file, header_size, SIZE), FIELD(shim_file, kind, TEXT),
	FIELD(shim_file, pid, NUMBER),	     FIELD(shim_file, number, NUMBER),
	FIELD(shim_file, tid, NUMBER),	     FIELD(shim_file, chunks, COUNT),
};
SHAPE(file);

static const struct field chunk_fields[] = {
	FIELD(shim_chunk, offset, SIZE),
	FIELD(shim_chunk, size, SIZE),
	FIELD(shim_chunk, address, LINK),
};
SHAPE(chunk);

static const struct field node_fields[] = {
	FIELD(shim_node, function, WORD), FIELD(shim_node, parent, LINK),
	FIELD(shim_node, calls, NUMBER),  FIELD(shim_node, time, CLOCK),
	FIELD(shim_node, start, CLOCK),	  FIELD(shim_node, frame, NUMBER),
	FIELD(shim_node, hits, NUMBER),	  FIELD(shim_node, coarse, FLAG),
	FIELD(shim_node, group, NUMBER),  FIELD(shim_node, extra, LINK),
};
SHAPE(node);

static const struct field thread_fields[] = {
	FIELD(shim_thread_node, function, WORD),
	FIELD(shim_thread_node, parent, LINK),
	FIELD(shim_thread_node, coroutine, FLAG),
	FIELD(shim_thread_node, memory, LINK),
	FIELD(shim_thread_node, start, CLOCK),
	FIELD(shim_thread_node, frame, NUMBER),
	FIELD(shim_thread_node, name, TEXT),
	FIELD(shim_thread_node, lost, NUMBER),
	FIELD(shim_thread_node, last, CLOCK),
};
SHAPE(thread);

static const struct field sample_root_fields[] = {
	FIELD(shim_sample_root, function, WORD),
	FIELD(shim_sample_root, last_node, LINK),
	FIELD(shim_sample_root, period_ns, NUMBER),
	FIELD(shim_sample_root, mode, FLAG),
	FIELD(shim_sample_root, name, TEXT),
	FIELD(shim_sample_root, lost, NUMBER),
	FIELD(shim_sample_root, last_clock, CLOCK),
};
SHAPE(sample_root);

static const struct field group_fields[] = {
	FIELD(shim_group_node, function, WORD),
	FIELD(shim_group_node, text_size, SIZE),
	FIELD(shim_group_node, text, TEXT),
};
SHAPE(group);

static const struct field extra_fields[] = {
	FIELD(shim_extra_node, function, WORD),
	FIELD(shim_extra_node, node, LINK),
	FIELD(shim_extra_node, min, CLOCK),
	FIELD(shim_extra_node, max, CLOCK),
	FIELD(shim_extra_node, short_bucket, NUMBER),
	FIELD(shim_extra_node, last, CLOCK),
	FIELD(shim_extra_node, bucket, NUMBER),
};
SHAPE(extra);

static const struct field memory_fields[] = {
	FIELD(shim_memory_node, function, WORD),
	FIELD(shim_memory_node, node, LINK),
	FIELD(shim_memory_node, allocations, NUMBER),
	FIELD(shim_memory_node, allocated_bytes, NUMBER),
	FIELD(shim_memory_node, reallocations, NUMBER),
	FIELD(shim_memory_node, releases, NUMBER),
	FIELD(shim_memory_node, released_bytes, NUMBER),
	FIELD(shim_memory_node, other_releases, NUMBER),
	FIELD(shim_memory_node, temporary, NUMBER),
	FIELD(shim_memory_node, epoch, NUMBER),
	FIELD(shim_memory_node, peak_bytes, NUMBER),
	FIELD(shim_memory_node, peak_blocks, NUMBER),
	FIELD(shim_memory_node, samples, NUMBER),
	FIELD(shim_memory_node, lives, LINK),
	FIELD(shim_memory_node, sizes, NUMBER),
	FIELD(shim_memory_node, lost_bytes, NUMBER),
	FIELD(shim_memory_node, lost_blocks, NUMBER),
	FIELD(shim_memory_node, mappings, NUMBER),
	FIELD(shim_memory_node, mapped_bytes, NUMBER),
	FIELD(shim_memory_node, self, CLOCK),
};
SHAPE(memory);

static const struct field lives_fields[] = {
	FIELD(shim_lives_node, function, WORD),
	FIELD(shim_lives_node, node, LINK),
	FIELD(shim_lives_node, unknown, NUMBER),
	FIELD(shim_lives_node, bucket, NUMBER),
};
SHAPE(lives);

static const struct field heap_fields[] = {
	FIELD(shim_heap_node, function, WORD),
	FIELD(shim_heap_node, live_bytes, NUMBER),
	FIELD(shim_heap_node, peak_bytes, NUMBER),
	FIELD(shim_heap_node, peak_clock, CLOCK),
	FIELD(shim_heap_node, epoch, NUMBER),
	FIELD(shim_heap_node, is_rising, FLAG),
	FIELD(shim_heap_node, inherited, NUMBER),
	FIELD(shim_heap_node, calls, FLAG),
	FIELD(shim_heap_node, period, NUMBER),
	FIELD(shim_heap_node, has_lives, FLAG),
	FIELD(shim_heap_node, leaks, FLAG),
	FIELD(shim_heap_node, leaks_clock, CLOCK),
	FIELD(shim_heap_node, untold, NUMBER),
	FIELD(shim_heap_node, unknown, NUMBER),
	FIELD(shim_heap_node, early_lost, NUMBER),
};
SHAPE(heap);

static const struct field points_fields[] = {
	FIELD(shim_points_node, function, WORD),
	FIELD(shim_points_node, active, FLAG),
	FIELD(shim_points_node, count, COUNT),
	FIELD(shim_points_node, interval, CLOCK),
	FIELD(shim_points_node, half, CLOCK),
};
SHAPE(points);

static const struct field snapshot_fields[] = {
	FIELD(shim_snapshot_node, function, WORD),
	FIELD(shim_snapshot_node, clock, CLOCK),
	FIELD(shim_snapshot_node, duration, CLOCK),
	FIELD(shim_snapshot_node, leaks, FLAG),
	FIELD(shim_snapshot_node, missing, NUMBER),
	FIELD(shim_snapshot_node, is_complete, FLAG),
};
SHAPE(snapshot);

static const struct field alive_fields[] = {
	FIELD(shim_alive_node, function, WORD),
	FIELD(shim_alive_node, node, LINK),
	FIELD(shim_alive_node, bytes, NUMBER),
	FIELD(shim_alive_node, blocks, NUMBER),
	FIELD(shim_alive_node, lost_bytes, NUMBER),
	FIELD(shim_alive_node, below_blocks, NUMBER),
};
SHAPE(alive);

static const struct field sampled_fields[] = {
	FIELD(shim_sampled_node, function, WORD),
	FIELD(shim_sampled_node, parent, LINK),
	FIELD(shim_sampled_node, address, WORD),
	FIELD(shim_sampled_node, samples, NUMBER),
	FIELD(shim_sampled_node, own, NUMBER),
};
SHAPE(sampled);

static const struct field throttled_fields[] = {
	FIELD(shim_throttled_node, function, WORD),
	FIELD(shim_throttled_node, address, WORD),
	FIELD(shim_throttled_node, weight, NUMBER),
	FIELD(shim_throttled_node, state, FLAG),
	FIELD(shim_throttled_node, bursts, NUMBER),
	FIELD(shim_throttled_node, calls, NUMBER),
	FIELD(shim_throttled_node, ns, CLOCK),
	FIELD(shim_throttled_node, rates, NUMBER),
	FIELD(shim_throttled_node, squares, NUMBER),
	FIELD(shim_throttled_node, slopes, NUMBER),
};
SHAPE(throttled);

static const struct field lock_fields[] = {
	FIELD(shim_lock_node, function, WORD),
	FIELD(shim_lock_node, node, LINK),
	FIELD(shim_lock_node, lock, WORD),
	FIELD(shim_lock_node, holder, LINK),
	FIELD(shim_lock_node, kind, FLAG),
	FIELD(shim_lock_node, waits, NUMBER),
	FIELD(shim_lock_node, time, CLOCK),
	FIELD(shim_lock_node, max, CLOCK),
	FIELD(shim_lock_node, failures, NUMBER),
	FIELD(shim_lock_node, refusals, NUMBER),
	FIELD(shim_lock_node, start, CLOCK),
};
SHAPE(lock);

static const struct field throw_fields[] = {
	FIELD(shim_throw_node, function, WORD),
	FIELD(shim_throw_node, node, LINK),
	FIELD(shim_throw_node, type, LINK),
	FIELD(shim_throw_node, catcher, LINK),
	FIELD(shim_throw_node, count, NUMBER),
};
SHAPE(throw);

static const struct field type_fields[] = {
	FIELD(shim_type_node, function, WORD),
	FIELD(shim_type_node, text_size, SIZE),
	FIELD(shim_type_node, is_cut, FLAG),
};
SHAPE(type);

static const struct field trace_info_fields[] = {
	FIELD(shim_trace_info, block_size, SIZE),
	FIELD(shim_trace_info, time_shift, FLAG),
	FIELD(shim_trace_info, ring_size, SIZE),
	FIELD(shim_trace_info, blocks, COUNT),
	FIELD(shim_trace_info, min_duration, CLOCK),
	FIELD(shim_trace_info, too_short, NUMBER),
	FIELD(shim_trace_info, filtered, NUMBER),
	FIELD(shim_trace_info, lost, NUMBER),
	FIELD(shim_trace_info, waiting, COUNT),
};
SHAPE(trace_info);

static const struct field block_fields[] = {
	FIELD(shim_trace_block, sequence, NUMBER),
	FIELD(shim_trace_block, time, CLOCK),
	FIELD(shim_trace_block, tid, NUMBER),
	FIELD(shim_trace_block, track, NUMBER),
	FIELD(shim_trace_block, thread, NUMBER),
	FIELD(shim_trace_block, name, TEXT),
};
SHAPE(block);

/* Of any record: its head, and what may be behind it. */
static const struct field record_fields[] = {
	{ "head", 0, 2, FIELD_HEAD },  { "size", 2, 2, FIELD_COUNT },
	{ "word", 2, 4, FIELD_COUNT }, { "time", 2, 6, FIELD_CLOCK },
	{ "rest", 4, 0, FIELD_TEXT },
};
SHAPE(record);

static const struct field word_fields[] = { { "word", 0, 8, FIELD_WORD } };
SHAPE(word);

static const struct field value_type_fields[] = {
	FIELD(shim_value_type, kind, FLAG),
	FIELD(shim_value_type, size, SIZE),
	FIELD(shim_value_type, number, COUNT),
};
SHAPE(value_type);

static const struct field tree_fields[] = {
	FIELD(shim_typetree, size, SIZE),
	FIELD(shim_typetree, node_count, COUNT),
	FIELD(shim_typetree, part_count, COUNT),
	FIELD(shim_typetree, text_size, SIZE),
};
SHAPE(tree);

static const struct field tree_node_fields[] = {
	FIELD(shim_typetree_node, size, SIZE),
	FIELD(shim_typetree_node, name, SIZE),
	FIELD(shim_typetree_node, inner, FLAG),
	FIELD(shim_typetree_node, first, FLAG),
	FIELD(shim_typetree_node, count, FLAG),
	FIELD(shim_typetree_node, elements, COUNT),
	FIELD(shim_typetree_node, kind, FLAG),
	FIELD(shim_typetree_node, form, FLAG),
	FIELD(shim_typetree_node, format, FLAG),
	FIELD(shim_typetree_node, is_flags, FLAG),
};
SHAPE(tree_node);

static const struct field tree_part_fields[] = {
	FIELD(shim_typetree_part, value, SIZE),
	FIELD(shim_typetree_part, name, SIZE),
	FIELD(shim_typetree_part, node, FLAG),
	FIELD(shim_typetree_part, bit, FLAG),
	FIELD(shim_typetree_part, bits, FLAG),
	FIELD(shim_typetree_part, flags, FLAG),
};
SHAPE(tree_part);

static const struct field value_list_fields[] = {
	FIELD(shim_value_list, kind, FLAG),
	FIELD(shim_value_list, size, SIZE),
	FIELD(shim_value_list, number, COUNT),
	FIELD(shim_value_list, function, COUNT),
	FIELD(shim_value_list, count, COUNT),
	FIELD(shim_value_list, more, FLAG),
	{ "type", sizeof(struct shim_value_list), 4, FIELD_COUNT },
	{ "name", sizeof(struct shim_value_list) + 4, 4, FIELD_SIZE },
};
SHAPE(value_list);

static const struct field lines_fields[] = {
	FIELD(shim_coverage_lines, kind, FLAG),
	FIELD(shim_coverage_lines, size, SIZE),
	FIELD(shim_coverage_lines, start, LINK),
	FIELD(shim_coverage_lines, end, LINK),
	FIELD(shim_coverage_lines, state, FLAG),
	FIELD(shim_coverage_lines, line_count, COUNT),
	FIELD(shim_coverage_lines, file_count, COUNT),
	FIELD(shim_coverage_lines, files_size, SIZE),
	FIELD(shim_coverage_lines, path_size, SIZE),
	FIELD(shim_coverage_lines, dropped, NUMBER),
};
SHAPE(lines);

static const struct field line_fields[] = {
	FIELD(shim_coverage_line, offset, SIZE),
	FIELD(shim_coverage_line, line, NUMBER),
	FIELD(shim_coverage_line, file, COUNT),
};
SHAPE(line);

static const struct field coverage_points_fields[] = {
	FIELD(shim_coverage_points, kind, FLAG),
	FIELD(shim_coverage_points, size, SIZE),
	FIELD(shim_coverage_points, start, LINK),
	FIELD(shim_coverage_points, count, COUNT),
	FIELD(shim_coverage_points, has_offsets, FLAG),
	FIELD(shim_coverage_points, path_size, SIZE),
};
SHAPE(coverage_points);

static const struct field coverage_functions_fields[] = {
	FIELD(shim_coverage_functions, kind, FLAG),
	FIELD(shim_coverage_functions, size, SIZE),
	FIELD(shim_coverage_functions, room, COUNT),
	FIELD(shim_coverage_functions, count, COUNT),
};
SHAPE(coverage_functions);

static const struct field histogram_fields[] = {
	FIELD(shim_histogram, range_count, COUNT),
	FIELD(shim_histogram, is_done, FLAG),
	FIELD(shim_histogram, is_gmon, FLAG),
	FIELD(shim_histogram, rate_hz, NUMBER),
	FIELD(shim_histogram, thread, NUMBER),
	FIELD(shim_histogram, is_partial, FLAG),
	FIELD(shim_histogram, outside, NUMBER),
	FIELD(shim_histogram, file, TEXT),
};
SHAPE(histogram);

static const struct field range_fields[] = {
	FIELD(shim_histogram_range, low, LINK),
	FIELD(shim_histogram_range, high, LINK),
	FIELD(shim_histogram_range, base, LINK),
	FIELD(shim_histogram_range, end, LINK),
	FIELD(shim_histogram_range, bias, LINK),
	FIELD(shim_histogram_range, entry, LINK),
	FIELD(shim_histogram_range, bins, COUNT),
	FIELD(shim_histogram_range, counters, LINK),
	FIELD(shim_histogram_range, path, TEXT),
};
SHAPE(range);

static const struct field arc_fields[] = {
	FIELD(shim_arc, from, LINK),
	FIELD(shim_arc, self, LINK),
	FIELD(shim_arc, calls, NUMBER),
};
SHAPE(arc);

static const struct field gaps_fields[] = {
	FIELD(shim_gaps, magic, TEXT),
	FIELD(shim_gaps, version, VERSION),
	FIELD(shim_gaps, header_size, SIZE),
	FIELD(shim_gaps, lost, NUMBER),
};
SHAPE(gaps);

static const struct field switch_fields[] = {
	FIELD(shim_switch, mono_ns, CLOCK),
	FIELD(shim_switch, pid, NUMBER),
	FIELD(shim_switch, tid, NUMBER),
	FIELD(shim_switch, processor, NUMBER),
	FIELD(shim_switch, kind, FLAG),
};
SHAPE(switch);

/* --- where they are --- */

struct unwind {
	struct recording_shape *to;
	uint32_t file, room;
	const struct file *at;
};

static void add(struct unwind *walk, const struct shape *shape, uint64_t offset,
		uint64_t size, uint64_t address)
{
	struct recording_shape *to = walk->to;

	if (offset > walk->at->size || size > walk->at->size - offset ||
	    size == 0)
		return;
	if (to->place_count == walk->room) {
		walk->room = walk->room ? walk->room * 2 : 256;
		to->places = realloc(to->places,
				     walk->room * sizeof(*to->places));
		if (!to->places)
			fail("memory");
	}
	to->places[to->place_count++] = (struct place){ shape, walk->file,
							(uint32_t)size, offset,
							address };
}

#define LOAD(walk, type, offset) \
	({ \
		struct type loaded = { 0 }; \
		uint64_t from = (offset); \
		if (from <= (walk)->at->size && \
		    sizeof(loaded) <= (walk)->at->size - from) \
			memcpy(&loaded, (walk)->at->data + from, \
			       sizeof(loaded)); \
		loaded; \
	})

static void walk_meta(struct unwind *walk)
{
	struct shim_meta meta = LOAD(walk, shim_meta, 0);
	uint64_t at = offsetof(struct shim_meta, strings);
	uint64_t end = at + meta.strings_size;

	add(walk, &meta_shape, 0, sizeof(meta), 0);
	walk->to->first_clock = meta.first_clock;
	walk->to->last_clock = meta.last_clock;
	while (at < end) {
		size_t length = strnlen((char *)walk->at->data + at, end - at);

		add(walk, &text_shape, at, length, 0);
		at += length + 1;
	}
}

static void walk_images(struct unwind *walk)
{
	uint64_t at = LOAD(walk, shim_images, 0).header_size;
	struct shim_image_record image;

	add(walk, &images_shape, 0, sizeof(struct shim_images), 0);
	for (;; at += image.size) {
		image = LOAD(walk, shim_image_record, at);
		if (image.size == 0)
			return;
		add(walk, &image_shape, at, sizeof(image), 0);
		add(walk, &text_shape, at + sizeof(image) + image.build_id_size,
		    image.path_size, 0);
	}
}

static const struct shape *shape_of(uint64_t word, bool is_sampled)
{
	const struct {
		uint64_t word;
		const struct shape *shape;
	} known[] = {
		{ SHIM_NODE_EXTRA, &extra_shape },
		{ SHIM_NODE_GROUP, &group_shape },
		{ SHIM_NODE_MEMORY, &memory_shape },
		{ SHIM_NODE_HEAP, &heap_shape },
		{ SHIM_NODE_LIVES, &lives_shape },
		{ SHIM_NODE_LOCK, &lock_shape },
		{ SHIM_NODE_THROW, &throw_shape },
		{ SHIM_NODE_POINTS, &points_shape },
		{ SHIM_NODE_SNAPSHOT, &snapshot_shape },
		{ SHIM_NODE_ALIVE, &alive_shape },
		{ SHIM_NODE_SAMPLED, &sampled_shape },
		{ SHIM_NODE_THROTTLED, &throttled_shape },
		{ SHIM_NODE_THREAD,
		  is_sampled ? &sample_root_shape : &thread_shape },
	};

	if ((word & SHIM_NODE_SPECIAL) != SHIM_NODE_SPECIAL)
		return word ? &node_shape : NULL;
	for (unsigned i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (word >> 48 == known[i].word >> 48)
			return known[i].shape;
	return NULL;
}

static void walk_nodes(struct unwind *walk, const struct shim_chunk *chunk,
		       bool is_sampled)
{
	uint64_t at = chunk->offset, end = at + chunk->size, size;

	while (at + 64 <= end && at < walk->at->used) {
		uint64_t word = *(const uint64_t *)(walk->at->data + at);
		uint64_t address = chunk->address + at - chunk->offset;

		if (word >> 48 == SHIM_NODE_TYPE >> 48) {
			struct shim_type_node type = LOAD(walk, shim_type_node,
							  at);

			add(walk, &type_shape, at, sizeof(type), address);
			add(walk, &text_shape, at + sizeof(type),
			    type.text_size, 0);
			at += shim_type_node_size(type.text_size);
			continue;
		}
		const struct shape *shape = shape_of(word, is_sampled);

		size = shim_node_size(word);
		if (size == 0)
			size = sizeof(struct shim_node);
		if (shape)
			add(walk, shape, at, size, address);
		at += size;
	}
}

static void walk_types(struct unwind *walk, uint64_t at, uint64_t end)
{
	struct shim_typetree tree = LOAD(walk, shim_typetree, at);

	add(walk, &tree_shape, at, sizeof(tree), 0);
	at += sizeof(tree);
	for (uint32_t i = 0; i < tree.node_count && at < end; i++) {
		add(walk, &tree_node_shape, at,
		    sizeof(struct shim_typetree_node), 0);
		at += sizeof(struct shim_typetree_node);
	}
	for (uint32_t i = 0; i < tree.part_count && at < end; i++) {
		add(walk, &tree_part_shape, at,
		    sizeof(struct shim_typetree_part), 0);
		at += sizeof(struct shim_typetree_part);
	}
}

static void walk_values(struct unwind *walk, const struct shim_chunk *chunk)
{
	uint64_t at = chunk->offset, end = at + chunk->size;

	while (at < end) {
		struct shim_value_type entry = LOAD(walk, shim_value_type, at);

		if (entry.kind == 0 || entry.size == 0)
			return;
		if (entry.kind == SHIM_VALUES_KIND_TYPE) {
			add(walk, &value_type_shape, at, sizeof(entry), 0);
			walk_types(walk, at + sizeof(entry), at + entry.size);
		} else {
			add(walk, &value_list_shape, at, entry.size, 0);
		}
		at += entry.size;
	}
}

static void walk_lines(struct unwind *walk, uint64_t at)
{
	struct shim_coverage_lines head = LOAD(walk, shim_coverage_lines, at);

	add(walk, &lines_shape, at, sizeof(head), 0);
	at += sizeof(head);
	for (uint32_t i = 0; i < head.line_count; i++)
		add(walk, &line_shape,
		    at + i * sizeof(struct shim_coverage_line),
		    sizeof(struct shim_coverage_line), 0);
	at += head.line_count * (sizeof(struct shim_coverage_line) + 1ull);
	add(walk, &text_shape, at, head.files_size, 0);
	add(walk, &text_shape, at + head.files_size, head.path_size, 0);
}

static void walk_coverage(struct unwind *walk, const struct shim_chunk *chunk)
{
	uint64_t at = chunk->offset, end = at + chunk->size;

	while (at < end) {
		struct shim_coverage_functions head = LOAD(
			walk, shim_coverage_functions, at);

		if (head.kind == 0 || head.size == 0)
			return;
		if (head.kind == SHIM_COVERAGE_KIND_LINES)
			walk_lines(walk, at);
		else if (head.kind == SHIM_COVERAGE_KIND_POINTS)
			add(walk, &coverage_points_shape, at,
			    sizeof(struct shim_coverage_points), 0);
		else
			add(walk, &coverage_functions_shape, at, sizeof(head),
			    0);
		at += head.size;
	}
}

static void walk_words(struct unwind *walk, const struct shim_chunk *chunk)
{
	uint64_t end = chunk->offset + chunk->size;

	for (uint64_t at = chunk->offset; at < end && at < walk->at->used;
	     at += 8)
		add(walk, &word_shape, at, 8, 0);
}

static void walk_histogram(struct unwind *walk, const struct shim_chunk *chunk)
{
	struct shim_histogram head = LOAD(walk, shim_histogram, chunk->offset);
	uint64_t at = chunk->offset + sizeof(head);

	add(walk, &histogram_shape, chunk->offset, sizeof(head), 0);
	for (uint32_t i = 0; i < head.range_count && i < 64; i++) {
		add(walk, &range_shape, at, sizeof(struct shim_histogram_range),
		    0);
		at += sizeof(struct shim_histogram_range);
	}
}

static void walk_arcs(struct unwind *walk, const struct shim_chunk *chunk)
{
	uint64_t end = chunk->offset + chunk->size;

	for (uint64_t at = chunk->offset; at < end && at < walk->at->used;
	     at += sizeof(struct shim_arc))
		add(walk, &arc_shape, at, sizeof(struct shim_arc), 0);
}

static void walk_chunk(struct unwind *walk, const struct shim_chunk *chunk)
{
	const char *kind = walk->at->kind;

	if (!strcmp(kind, "calltree") || !strcmp(kind, "sampling"))
		walk_nodes(walk, chunk, *kind == 's');
	else if (!strcmp(kind, "functions"))
		walk_words(walk, chunk);
	else if (!strcmp(kind, "values"))
		walk_values(walk, chunk);
	else if (!strcmp(kind, "coverage"))
		walk_coverage(walk, chunk);
	else if (!strcmp(kind, "pchist"))
		walk_histogram(walk, chunk);
	else if (!strcmp(kind, "arcs"))
		walk_arcs(walk, chunk);
}

static uint64_t record_size(const struct unwind *walk, uint64_t at)
{
	uint16_t head[2];

	memcpy(head, walk->at->data + at, sizeof(head));
	if (head[0] == 0 || head[0] & SHIM_TRACE_LEAVE)
		return 2;
	if (head[0] & SHIM_TRACE_ENTER)
		return 4;
	return head[0] >> 8 ? (head[0] >> 8) * 2u : head[1] * 2u;
}

static void walk_block(struct unwind *walk, uint64_t at, uint64_t end)
{
	uint64_t size;

	add(walk, &block_shape, at, sizeof(struct shim_trace_block), 0);
	for (at += sizeof(struct shim_trace_block);
	     at + 4 <= end && at < walk->at->used; at += size) {
		size = record_size(walk, at);
		if (size == 0 || size > end - at)
			return;
		if (walk->at->data[at] || walk->at->data[at + 1])
			add(walk, &record_shape, at, size, 0);
	}
}

static void walk_trace(struct unwind *walk)
{
	uint64_t at;

	add(walk, &trace_info_shape, 4096, sizeof(struct shim_trace_info), 0);
	for (at = 0; at < walk->at->used; at += SHIM_TRACE_BLOCK)
		walk_block(walk, at ? at : SHIM_TRACE_FIRST,
			   at + SHIM_TRACE_BLOCK);
}

static void walk_chunked(struct unwind *walk)
{
	struct shim_file head = LOAD(walk, shim_file, 0);

	add(walk, &file_shape, 0, sizeof(head), 0);
	/* And the first that is not there. */
	for (uint32_t i = 0; i < SHIM_FILE_CHUNKS && i <= head.chunks; i++)
		add(walk, &chunk_shape,
		    offsetof(struct shim_file, chunk) +
			    i * sizeof(struct shim_chunk),
		    sizeof(struct shim_chunk), 0);
	if (!strcmp(walk->at->kind, "trace")) {
		walk_trace(walk);
		return;
	}
	for (uint32_t i = 0; i < SHIM_FILE_CHUNKS && i < head.chunks; i++)
		walk_chunk(walk, &head.chunk[i]);
}

static void walk_gaps(struct unwind *walk)
{
	uint64_t at = sizeof(struct shim_gaps);

	add(walk, &gaps_shape, 0, at, 0);
	for (; at < walk->at->used; at += sizeof(struct shim_switch))
		add(walk, &switch_shape, at, sizeof(struct shim_switch), 0);
}

static void walk_text(struct unwind *walk)
{
	const unsigned char *at = walk->at->data, *end = at + walk->at->size;

	while (at < end) {
		const unsigned char *line = memchr(at, '\n',
						   (size_t)(end - at));
		size_t size = (size_t)((line ? line : end) - at);

		add(walk, &text_shape, (uint64_t)(at - walk->at->data), size,
		    0);
		at += size + 1;
	}
}

static void walk_file(struct unwind *walk)
{
	const char *kind = walk->at->kind;

	if (!strcmp(kind, "meta"))
		walk_meta(walk);
	else if (!strcmp(kind, "images"))
		walk_images(walk);
	else if (!strcmp(kind, "gaps"))
		walk_gaps(walk);
	else if (!strcmp(kind, "end") || !strcmp(kind, "counters"))
		walk_text(walk);
	else
		walk_chunked(walk);
}

/* --- files --- */

static struct recording_shape *being_read;
static size_t path_start;

static void load(struct file *file, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	file->data = calloc(1, file->size + 64);
	if (fd < 0 || !file->data ||
	    read(fd, file->data, file->size) != (ssize_t)file->size)
		fail(path);
	close(fd);
	file->used = file->size;
	while (file->used > 0 && !file->data[file->used - 1])
		file->used--;
}

static int note_file(const char *path, const struct stat *about, int kind,
		     struct FTW *place)
{
	struct recording_shape *to = being_read;
	struct file *file = &to->files[to->file_count];
	const char *dot;

	(void)place;
	if (kind != FTW_F || about->st_size == 0 || to->file_count == FILES_MAX)
		return 0;
	file->path = strdup(path + path_start);
	dot = strrchr(file->path, '/');
	dot = dot ? dot + 1 : file->path;
	file->kind = dot + strspn(dot, "0123456789.");
	file->size = (uint64_t)about->st_size;
	load(file, path);
	to->file_count++;
	return 0;
}

static int compare_files(const void *left, const void *right)
{
	return strcmp(((const struct file *)left)->path,
		      ((const struct file *)right)->path);
}

static int compare_places(const void *left, const void *right)
{
	const struct place *a = left, *b = right;

	if (a->shape != b->shape)
		return strcmp(a->shape->name, b->shape->name);
	if (a->file != b->file)
		return a->file < b->file ? -1 : 1;
	return a->offset < b->offset ? -1 : a->offset > b->offset;
}

void shapes_read(struct recording_shape *recording, const char *path)
{
	struct unwind walk = { .to = recording };

	*recording = (struct recording_shape){ .place_count = 0 };
	recording->files = calloc(FILES_MAX, sizeof(*recording->files));
	if (!recording->files)
		fail("memory");
	being_read = recording;
	path_start = strlen(path) + 1;
	nftw(path, note_file, 16, FTW_PHYS);
	qsort(recording->files, recording->file_count,
	      sizeof(*recording->files), compare_files);
	for (; walk.file < recording->file_count; walk.file++) {
		walk.at = &recording->files[walk.file];
		walk_file(&walk);
	}
	if (recording->place_count)
		qsort(recording->places, recording->place_count,
		      sizeof(*recording->places), compare_places);
}
