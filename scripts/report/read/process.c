/*
 * Reads what a process image recorded about itself in meta and images.  Bounds
 * are checked against the size of the file, not against the sizes that it
 * states; strings are copied and NUL-terminated.
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <shim/format.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/messages.h"
#include "base/numbers.h"
#include "read/files.h"
#include "read/images.h"
#include "read/process.h"

/* More than a process ever loads; the limit stops a damaged file from taking
 * forever. */
#define IMAGES_MAX 1000000
/* The time of day may be corrected by less while a host runs; a boot takes
 * longer. */
#define SAME_BOOT_NS 10000000000

const char *process_string(const struct process *process, const char *key)
{
	const char *at = process->meta.strings;
	const char *end = at + sizeof(process->meta.strings) - 1;
	size_t length = strlen(key);
	const char *value = NULL;

	if (process->meta.strings_size < sizeof(process->meta.strings))
		end = at + process->meta.strings_size;
	/* read_meta() has made sure that the last byte is NUL. */
	for (; at < end; at += strlen(at) + 1)
		if (!strncmp(at, key, length) && at[length] == '=')
			value = at + length + 1;
	return value;
}

bool process_string_is_cut(const struct process *process, const char *value)
{
	const char *end = process->meta.strings + sizeof(process->meta.strings);

	return value + strlen(value) + 1 == end;
}

bool process_has_profile(const struct process *process, const char *name)
{
	const char *at = process_string(process, "profile");
	size_t length = strlen(name);

	while (at && *at) {
		if (!strncmp(at, name, length) &&
		    (!at[length] || strchr(":;", at[length])))
			return true;
		at = strchr(at, ';');
		if (at)
			at++;
	}
	return false;
}

bool process_has_calls(const struct process *process)
{
	uint32_t i;

	for (i = 0; i < process->file_count; i++)
		if (!process->files[i].is_sampled)
			return true;
	return false;
}

bool meta_counts_calls_apart(const struct shim_meta *meta)
{
	return meta->size > offsetof(struct shim_meta, lost_more);
}

double process_ns(const struct process *process, uint64_t clock)
{
	return (double)clock * process->unit_ns;
}

uint64_t process_tick(const struct process *process)
{
	const struct shim_meta *meta = &process->meta;

	return meta->fine_tick ? meta->fine_tick : meta->tick;
}

bool process_has_boot(const struct process *process)
{
	return process->has_meta && process->meta.start_real_ns;
}

int64_t process_boot_ns(const struct process *process)
{
	return (int64_t)(process->meta.start_real_ns -
			 process->meta.first_mono_ns);
}

static bool is_same_host(const struct process *a, const struct process *b)
{
	const char *one = process_string(a, "host");
	const char *other = process_string(b, "host");

	return one == other || (one && other && !strcmp(one, other));
}

bool process_shares_clock(const struct process *a, const struct process *b)
{
	const char *one = process_string(a, "monotonic");
	const char *other = process_string(b, "monotonic");
	uint64_t distance = (uint64_t)process_boot_ns(a) -
			    (uint64_t)process_boot_ns(b);

	if (!is_same_host(a, b))
		return false;
	/* The time of day may have been set, and the host suspended, in between. */
	if (one && other)
		return !strcmp(one, other);
	return distance + SAME_BOOT_NS <= UINT64_C(2) * SAME_BOOT_NS;
}

bool process_has_cpu(const struct process *process)
{
	const struct shim_meta *meta = &process->meta;

	return process->has_meta && meta->end_clock &&
	       meta->last_cpu_ns > meta->first_cpu_ns;
}

double process_cpu_ns(const struct process *process)
{
	return (double)(process->meta.last_cpu_ns - process->meta.first_cpu_ns);
}

static void find_unit(struct process *process, const char *name)
{
	const struct shim_meta *meta = &process->meta;
	uint64_t clocks = meta->last_clock - meta->first_clock;
	uint64_t ns = meta->last_mono_ns - meta->first_mono_ns;
	bool is_pair = meta->last_clock > meta->first_clock &&
		       meta->last_mono_ns > meta->first_mono_ns;

	process->unit_is_measured = true;
	if (meta->clock == SHIM_CLOCK_MONOTONIC_NS) {
		process->unit_ns = 1;
		return;
	}
	if (meta->clock != SHIM_CLOCK_TSC)
		warn("%s: at offset 24: unknown clock %u", name, meta->clock);
	if (is_pair && ns >= 10000000) {
		process->unit_ns = (double)ns / (double)clocks;
	} else if (meta->clock_hz) {
		process->unit_ns = 1e9 / (double)meta->clock_hz;
		process->unit_is_measured = false;
	} else if (is_pair) {
		process->unit_ns = (double)ns / (double)clocks;
		warn("%s: too short to measure the clock: times may be "
		     "wrong by some percent",
		     name);
	} else {
		process->unit_ns = 1;
		process->unit_is_measured = false;
		warn("%s: nothing says how fast the clock is: times are in "
		     "its units, shown as ns",
		     name);
	}
	if (process->unit_ns < 1e-3 || process->unit_ns > 1e7) {
		warn("%s: a clock unit of %g ns cannot be: 1 ns assumed", name,
		     process->unit_ns);
		process->unit_ns = 1;
	}
}

/*
 * Finds the latest possible clock value.  The recording cannot be longer than
 * the time since it began (plus a day, for clocks that disagree).
 */
static void find_limit(struct process *process)
{
	const struct shim_meta *meta = &process->meta;
	struct timespec now;
	double ns;

	clock_gettime(CLOCK_REALTIME, &now);
	ns = ((double)now.tv_sec + 86400) * 1e9 - (double)meta->start_real_ns;
	process->limit_clock = UINT64_MAX;
	if (meta->start_real_ns && ns > 0)
		process->limit_clock = meta->first_clock +
				       whole(ns / process->unit_ns);
	if (process->limit_clock < meta->first_clock)
		process->limit_clock = UINT64_MAX;
}

/* Destructors may go on after the end that shim has seen. */
#define AFTER_END_NS 1e9

uint64_t process_count_limit(const struct process *process)
{
	const uint64_t most = 1ull << 58;
	uint64_t end = process->end_clock, limit;

	if (!process->has_meta || process->end_source == END_UNKNOWN)
		return most;
	if (process->latest_clock > end)
		end = process->latest_clock;
	limit = whole(process_ns(process, end - process->meta.first_clock) +
		      AFTER_END_NS);
	return limit < most ? limit : most;
}

void process_see_clock(struct process *process, uint64_t clock)
{
	if (clock > process->latest_clock && clock <= process->limit_clock)
		process->latest_clock = clock;
}

/* A file of a process, mapped while it is read. */
struct part {
	const char *name;
	const unsigned char *data;
	uint64_t size;
};

/* Maps @file and copies its header; false, with a warning, if the file is
 * unreadable. */
static bool open_part(struct part *part, const struct process *process,
		      int directory, const char *path, const char *file,
		      void *header, size_t header_size)
{
	int fd;

	part->name = keep_format("%s/%s/%s", path, process->name, file);
	fd = open_in(directory, file, part->name);
	if (fd < 0)
		return false;
	part->data = map_file(fd, part->name, &part->size);
	close(fd);
	if (part->data)
		memcpy(header, part->data,
		       part->size < header_size ? part->size : header_size);
	return part->data != NULL;
}

static void close_part(struct part *part)
{
	unmap_file(part->data, part->size);
}

/* Older programs write a shorter header; the rest is zero then. */
#define META_LEAST offsetof(struct shim_meta, lost_others)

static bool check_meta(const struct shim_meta *meta, const struct part *part)
{
	if (is_unfinished(part->name, meta->version))
		return false;
	if (memcmp(meta->magic, SHIM_META_MAGIC, sizeof(meta->magic))) {
		warn("%s: at offset 0: not a shim_meta; times of this "
		     "process are unknown",
		     part->name);
		return false;
	}
	check_version(part->name, meta->version);
	if (part->size < META_LEAST)
		warn("%s: cut at offset %" PRIu64 ", %zu expected", part->name,
		     part->size, sizeof(*meta));
	else if (meta->size < META_LEAST)
		warn("%s: at offset 12: size %u, %zu expected", part->name,
		     meta->size, sizeof(*meta));
	return true;
}

void read_meta(struct process *process, int directory, const char *path)
{
	struct shim_meta *meta = &process->meta;
	struct part part;

	if (!open_part(&part, process, directory, path, "meta", meta,
		       sizeof(*meta)))
		return;
	close_part(&part);
	if (!check_meta(meta, &part)) {
		memset(meta, 0, sizeof(*meta));
		return;
	}
	meta->strings[sizeof(meta->strings) - 1] = '\0';
	meta->log[sizeof(meta->log) - 1] = '\0';
	if (meta->log_size < sizeof(meta->log))
		meta->log[meta->log_size] = '\0';
	process->has_meta = true;
	find_unit(process, part.name);
	find_limit(process);
	process_see_clock(process, meta->first_clock);
	process_see_clock(process, meta->last_clock);
}

static int compare_images(const void *left, const void *right)
{
	const struct image *a = left, *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->generation < b->generation ? -1 :
					       a->generation > b->generation;
}

/* The record at @offset; false if there cannot be one. */
static bool read_image(struct image *image, const unsigned char *at,
		       uint64_t left)
{
	struct shim_image_record record;

	memcpy(&record, at, sizeof(record));
	if (record.size > left || record.size < sizeof(record) ||
	    record.size % 8 || record.path_size > record.size ||
	    record.build_id_size > 64 ||
	    sizeof(record) + record.build_id_size + record.path_size >
		    record.size)
		return false;
	at += sizeof(record);
	*image = (struct image){
		.generation = record.generation,
		.object = NONE,
		.data_object = NONE,
		.start = record.start,
		.end = record.end,
		.bias = record.bias,
		.load_clock = record.load_clock,
		.unload_clock = record.unload_clock,
		.build_id_size = record.build_id_size,
		.build_id = allocate(record.build_id_size, 1),
		.path = keep_text((const char *)at + record.build_id_size,
				  record.path_size),
	};
	memcpy((void *)image->build_id, at, record.build_id_size);
	return true;
}

static void read_image_records(struct process *process, const struct part *part,
			       uint32_t header_size)
{
	uint64_t offset = header_size;
	uint32_t room = 0, record_size;
	struct image image;

	if (header_size < sizeof(struct shim_images) || header_size % 8) {
		warn("%s: at offset 12: header size %u; functions of this "
		     "process have no names",
		     part->name, header_size);
		return;
	}
	while (offset + sizeof(struct shim_image_record) <= part->size) {
		memcpy(&record_size, part->data + offset, sizeof(record_size));
		if (record_size == 0)
			return;
		if (process->image_count == IMAGES_MAX ||
		    !read_image(&image, part->data + offset,
				part->size - offset)) {
			warn("%s: at offset %" PRIu64 ": not an image record; "
			     "images from here on are unknown",
			     part->name, offset);
			return;
		}
		if (image.start >= image.end)
			warn("%s: at offset %" PRIu64 ": an image that covers "
			     "nothing",
			     part->name, offset);
		GROW(process->images, process->image_count, room);
		process->images[process->image_count++] = image;
		process_see_clock(process, image.load_clock);
		process_see_clock(process, image.unload_clock);
		offset += record_size;
	}
}

static bool check_images(const struct shim_images *header,
			 const struct part *part)
{
	if (is_unfinished(part->name, header->version))
		return false;
	if (memcmp(header->magic, SHIM_IMAGES_MAGIC, sizeof(header->magic))) {
		warn("%s: at offset 0: not a shim_images; functions of this "
		     "process have no names",
		     part->name);
		return false;
	}
	if (part->size < sizeof(*header)) {
		warn("%s: cut at offset %" PRIu64, part->name, part->size);
		return false;
	}
	check_version(part->name, header->version);
	if (header->lost)
		warn("%s: %" PRIu64 " images are missing: some functions have "
		     "no name",
		     part->name, header->lost);
	return true;
}

void read_images(struct process *process, int directory, const char *path)
{
	struct shim_images header = { .version = 0 };
	struct part part;

	if (!open_part(&part, process, directory, path, "images", &header,
		       sizeof(header)))
		return;
	if (check_images(&header, &part)) {
		process->images_lost = header.lost;
		read_image_records(process, &part, header.header_size);
	}
	close_part(&part);
	if (process->image_count)
		qsort(process->images, process->image_count,
		      sizeof(*process->images), compare_images);
	images_index(process);
}
