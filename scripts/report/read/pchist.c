/*
 * Reads the counts of a process for monitor(3): N.pchist and N.arcs.  The
 * program could write all of these files, so none of their content is trusted.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <shim/format.h>

#include "base/memory.h"
#include "base/messages.h"
#include "read/files.h"
#include "read/pchist.h"

#define RANGES_MOST 4096u

struct mapped {
	const unsigned char *data;
	uint64_t size;
	struct shim_file head;
	struct shim_chunk last;
	const char *name;
};

static bool map_last_chunk(struct mapped *file, int directory,
			   const char *entry, const char *name)
{
	int fd = open_in(directory, entry, name);

	if (fd < 0)
		return false;
	file->name = name;
	file->data = map_file(fd, name, &file->size);
	close(fd);
	if (!file->data || file->size < sizeof(file->head))
		return false;
	memcpy(&file->head, file->data, sizeof(file->head));
	if (is_unfinished(name, file->head.version))
		return false;
	check_version(name, file->head.version);
	if (memcmp(file->head.magic, SHIM_FILE_MAGIC, 8) ||
	    file->head.chunks == 0 || file->head.chunks > SHIM_FILE_CHUNKS) {
		warn("%s: not a file of a recording", name);
		return false;
	}
	file->last = file->head.chunk[file->head.chunks - 1];
	if (file->last.offset > file->size ||
	    file->last.size > file->size - file->last.offset ||
	    file->last.offset % 8) {
		warn("%s: cut", name);
		return false;
	}
	return true;
}

static const uint32_t *find_counts(const struct mapped *file,
				   const struct shim_histogram_range *range)
{
	uint64_t at = range->counters - file->last.address;

	if (range->bins == 0 || range->low >= range->high ||
	    range->base >= range->end || range->bias > range->base || at % 4 ||
	    at > file->last.size ||
	    range->bins > (file->last.size - at) / sizeof(uint32_t))
		return NULL;
	return (const uint32_t *)(file->data + file->last.offset + at);
}

static bool read_range(const struct mapped *file, const unsigned char *at,
		       struct pchist_range *range)
{
	uint64_t i;

	memcpy(&range->given, at, sizeof(range->given));
	range->given.path[sizeof(range->given.path) - 1] = '\0';
	range->counts = find_counts(file, &range->given);
	for (i = 0; range->counts && i < range->given.bins; i++)
		range->samples += range->counts[i];
	return range->counts != NULL;
}

static bool damaged(const struct mapped *file)
{
	warn("%s: damaged: its counters are not used", file->name);
	return false;
}

static bool read_histogram(struct pchist *to, const struct mapped *file)
{
	const unsigned char *at = file->data + file->last.offset;
	uint64_t room;
	uint32_t i;

	if (file->last.size < sizeof(*to->given))
		return false;
	to->given = allocate(1, sizeof(*to->given));
	memcpy(to->given, at, sizeof(*to->given));
	to->given->file[sizeof(to->given->file) - 1] = '\0';
	room = (file->last.size - sizeof(*to->given)) /
	       sizeof(struct shim_histogram_range);
	if (to->given->range_count == 0)
		return false;
	if (to->given->range_count > room ||
	    to->given->range_count > RANGES_MOST)
		return damaged(file);
	to->ranges = allocate(to->given->range_count, sizeof(*to->ranges));
	at += sizeof(*to->given);
	for (i = 0; i < to->given->range_count;
	     i++, at += sizeof(struct shim_histogram_range)) {
		if (!read_range(file, at, &to->ranges[i]))
			return damaged(file);
		to->bins += to->ranges[i].given.bins;
		/* Two ranges must not share counters. */
		if (to->bins > file->last.size / sizeof(uint32_t))
			return damaged(file);
	}
	return true;
}

bool pchist_read(struct pchist *histogram, int directory, const char *entry,
		 const char *name)
{
	struct mapped file;

	*histogram = (struct pchist){ .ranges = NULL };
	return map_last_chunk(&file, directory, entry, name) &&
	       read_histogram(histogram, &file);
}

void pchist_free(struct pchist *histogram)
{
	free(histogram->arcs);
	free(histogram->ranges);
	free(histogram->given);
}

const struct shim_arc *arcs_read(int directory, const char *entry,
				 const char *name, uint64_t *count)
{
	struct mapped file;

	if (!map_last_chunk(&file, directory, entry, name))
		return NULL;
	*count = file.last.size / sizeof(struct shim_arc);
	return (const struct shim_arc *)(file.data + file.last.offset);
}

/* --- conversion to samples --- */

#define HEADER_SIZE 4096u
#define ADDRESS	    0x10000u /* address of the chunk; any value will do */

static void put_node(FILE *out, uint64_t address, uint64_t count)
{
	struct shim_sampled_node node = { .function = SHIM_NODE_SAMPLED,
					  .parent = ADDRESS,
					  .address = address,
					  .samples = count };

	if (count > 0)
		fwrite(&node, sizeof(node), 1, out);
}

static void put_header(FILE *out, uint64_t size)
{
	static char room[HEADER_SIZE];
	struct shim_file file = { .magic = SHIM_FILE_MAGIC,
				  .version = SHIM_FORMAT_VERSION,
				  .header_size = HEADER_SIZE,
				  .kind = "sampling",
				  .chunks = 1 };

	file.chunk[0] = (struct shim_chunk){ HEADER_SIZE, size - HEADER_SIZE,
					     ADDRESS };
	memcpy(room, &file, sizeof(file));
	rewind(out);
	fwrite(room, sizeof(room), 1, out);
}

static void put_samples(FILE *out, const struct pchist *histogram)
{
	const struct shim_histogram *given = histogram->given;
	struct shim_sample_root root = {
		.function = SHIM_NODE_THREAD | given->thread,
		.period_ns = 1000000000u / given->rate_hz,
		.mode = 1,
		.name = "pchist",
	};
	uint64_t n;
	uint32_t i;

	fwrite(&root, sizeof(root), 1, out);
	put_node(out, PCHIST_OUTSIDE, given->outside);
	for (i = 0; i < given->range_count; i++) {
		const struct pchist_range *range = &histogram->ranges[i];
		uint64_t step = (range->given.end - range->given.base) /
				range->given.bins;

		for (n = 0; n < range->given.bins; n++)
			put_node(out,
				 (range->given.base + n * step) &
					 SHIM_NODE_ADDRESS,
				 range->counts[n]);
	}
}

int pchist_as_samples(int directory, const char *entry, const char *name)
{
	struct pchist histogram;
	int fd, result = -1;
	FILE *out;

	if (!pchist_read(&histogram, directory, entry, name))
		return -1;
	fd = memfd_create("samples", MFD_CLOEXEC);
	out = fd < 0 ? NULL : fdopen(fd, "w");
	if (out && histogram.given->rate_hz > 0 &&
	    !histogram.given->is_partial) {
		put_header(out, HEADER_SIZE);
		put_samples(out, &histogram);
		put_header(out, (uint64_t)ftell(out));
		if (fflush(out) == 0 && !ferror(out))
			result = dup(fd);
	}
	if (out)
		fclose(out);
	pchist_free(&histogram);
	return result;
}
