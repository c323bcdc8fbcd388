/*
 * What a process image says about itself in meta and images.  Bounds are
 * checked against the file, not against what the file says; strings are copied
 * and get an end.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "read.h"

/* More than a process ever loads; keeps a damaged file from keeping us. */
#define IMAGES_MAX 1000000

const char *process_string(const struct process *process, const char *key)
{
	const char *at = process->meta.strings;
	const char *end = at + sizeof(process->meta.strings) - 1;
	size_t length = strlen(key);

	if (process->meta.strings_size < sizeof(process->meta.strings))
		end = at + process->meta.strings_size;
	/* read_meta() made sure that the last byte is NUL. */
	for (; at < end; at += strlen(at) + 1)
		if (!strncmp(at, key, length) && at[length] == '=')
			return at + length + 1;
	return NULL;
}

double process_ns(const struct process *process, uint64_t clock)
{
	return (double)clock * process->unit_ns;
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
		     "wrong by some percent", name);
	} else {
		process->unit_ns = 1;
		process->unit_is_measured = false;
		warn("%s: nothing says how fast the clock is: times are in "
		     "its units, shown as ns", name);
	}
	if (process->unit_ns < 1e-3 || process->unit_ns > 1e7) {
		warn("%s: a clock unit of %g ns cannot be: 1 ns assumed", name,
		     process->unit_ns);
		process->unit_ns = 1;
	}
}

/*
 * The recording cannot be longer than the time since it began (a day more,
 * for clocks that disagree), so no clock value in it can be later than this.
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

void process_see_clock(struct process *process, uint64_t clock)
{
	if (clock > process->latest_clock && clock <= process->limit_clock)
		process->latest_clock = clock;
}

void read_meta(struct process *process, int directory, const char *path)
{
	const char *name = keep_format("%s/%s/meta", path, process->name);
	struct shim_meta *meta = &process->meta;
	const unsigned char *data;
	uint64_t size = 0;
	int fd = open_in(directory, "meta", name);

	if (fd < 0)
		return;
	data = map_file(fd, name, &size);
	close(fd);
	if (!data)
		return;
	memcpy(meta, data, size < sizeof(*meta) ? size : sizeof(*meta));
	munmap((void *)data, size);
	if (is_unfinished(name, meta->version)) {
		memset(meta, 0, sizeof(*meta));
		return;
	}
	if (memcmp(meta->magic, SHIM_META_MAGIC, sizeof(meta->magic))) {
		warn("%s: at offset 0: not a shim_meta; times of this "
		     "process are unknown", name);
		memset(meta, 0, sizeof(*meta));
		return;
	}
	check_version(name, meta->version);
	if (size < sizeof(*meta))
		warn("%s: cut at offset %" PRIu64 ", %zu expected", name, size,
		     sizeof(*meta));
	else if (meta->size < sizeof(*meta))
		warn("%s: at offset 12: size %u, %zu expected", name,
		     meta->size, sizeof(*meta));
	meta->strings[sizeof(meta->strings) - 1] = '\0';
	meta->log[sizeof(meta->log) - 1] = '\0';
	if (meta->log_size < sizeof(meta->log))
		meta->log[meta->log_size] = '\0';
	process->has_meta = true;
	find_unit(process, name);
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

/* The record at @offset; false when it cannot be one. */
static bool read_image(struct image *image, const unsigned char *at,
		       uint64_t left)
{
	struct shim_image record;

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

static void read_image_records(struct process *process, const char *name,
			       const unsigned char *data, uint64_t size,
			       uint64_t offset)
{
	uint32_t room = 0, record_size;
	struct image image;

	while (offset + sizeof(struct shim_image) <= size) {
		memcpy(&record_size, data + offset, sizeof(record_size));
		if (record_size == 0)
			return;
		if (process->image_count == IMAGES_MAX ||
		    !read_image(&image, data + offset, size - offset)) {
			warn("%s: at offset %" PRIu64 ": not an image record; "
			     "images from here on are unknown", name, offset);
			return;
		}
		if (image.start >= image.end)
			warn("%s: at offset %" PRIu64 ": an image that covers "
			     "nothing", name, offset);
		GROW(process->images, process->image_count, room);
		process->images[process->image_count++] = image;
		process_see_clock(process, image.load_clock);
		process_see_clock(process, image.unload_clock);
		offset += record_size;
	}
}

void read_images(struct process *process, int directory,
			const char *path)
{
	const char *name = keep_format("%s/%s/images", path, process->name);
	struct shim_images header = { .version = 0 };
	const unsigned char *data;
	uint64_t size = 0;
	int fd = open_in(directory, "images", name);

	if (fd < 0)
		return;
	data = map_file(fd, name, &size);
	close(fd);
	if (!data)
		return;
	memcpy(&header, data, size < sizeof(header) ? size : sizeof(header));
	if (is_unfinished(name, header.version))
		return;
	if (memcmp(header.magic, SHIM_IMAGES_MAGIC, sizeof(header.magic))) {
		warn("%s: at offset 0: not a shim_images; functions of this "
		     "process have no names", name);
		return;
	}
	if (size < sizeof(header)) {
		warn("%s: cut at offset %" PRIu64, name, size);
		return;
	}
	check_version(name, header.version);
	process->images_lost = header.lost;
	if (header.lost)
		warn("%s: %" PRIu64 " images are missing: some functions have "
		     "no name", name, header.lost);
	if (header.header_size < sizeof(header) || header.header_size % 8)
		warn("%s: at offset 12: header size %u; functions of this "
		     "process have no names", name, header.header_size);
	else
		read_image_records(process, name, data, size,
				   header.header_size);
	munmap((void *)data, size);
	if (process->image_count)
		qsort(process->images, process->image_count,
		      sizeof(*process->images), compare_images);
}
