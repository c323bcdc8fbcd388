/*
 * profrun merge: adds several gmon.out files of one object, like gprof -s, but
 * counts do not wrap.  A count beyond the 16 bits of a record continues in
 * further records, which gprof adds up.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/messages.h"
#include "base/output.h"
#include "jobs/merge_gmon.h"

#define HIST_LARGEST 65535u
#define ARC_LARGEST  0x7fffffffu
#define HEADER_SIZE  20
#define BINS_MOST    (1u << 30)

struct histogram {
	uint64_t low, high;
	uint32_t bins, rate_hz;
	unsigned char unit[16];
	uint64_t *counts;
};

struct arc {
	uint64_t from, self, calls;
};

struct merge {
	struct histogram *histograms;
	uint32_t histogram_count, histogram_room;
	struct arc *arcs;
	uint32_t arc_count, arc_room;
};

/* An input file. */
struct input {
	const char *name;
	FILE *file;
	uint64_t at, size;
};

static void read_input(struct input *input, void *bytes, size_t size)
{
	if (fread(bytes, 1, size, input->file) != size)
		die("%s: cut at offset %" PRIu64, input->name, input->at);
	input->at += size;
}

static uint64_t get_number(struct input *input, unsigned size)
{
	unsigned char bytes[8];
	uint64_t value = 0;

	read_input(input, bytes, size);
	while (size-- > 0)
		value = value << 8 | bytes[size];
	return value;
}

/* Two ranges must be equal or disjoint: gprof requires it. */
static struct histogram *find_histogram(struct merge *merge,
					const struct input *input,
					const struct histogram *wanted)
{
	uint32_t i;

	for (i = 0; i < merge->histogram_count; i++) {
		struct histogram *other = &merge->histograms[i];

		if (other->rate_hz != wanted->rate_hz ||
		    memcmp(other->unit, wanted->unit, sizeof(other->unit)))
			die("%s: its samples are of another rate or unit",
			    input->name);
		if (other->low == wanted->low && other->high == wanted->high &&
		    other->bins == wanted->bins)
			return other;
		if (other->low < wanted->high && wanted->low < other->high)
			die("%s: its histogram overlaps another one",
			    input->name);
	}
	GROW(merge->histograms, merge->histogram_count, merge->histogram_room);
	merge->histograms[i] = *wanted;
	merge->histograms[i].counts = allocate(wanted->bins, sizeof(uint64_t));
	merge->histogram_count++;
	return &merge->histograms[i];
}

static void read_histogram(struct merge *merge, struct input *input)
{
	struct histogram histogram = { .low = get_number(input, 8) };
	struct histogram *sum;
	uint32_t i;

	histogram.high = get_number(input, 8);
	histogram.bins = (uint32_t)get_number(input, 4);
	histogram.rate_hz = (uint32_t)get_number(input, 4);
	read_input(input, histogram.unit, sizeof(histogram.unit));
	if (histogram.low >= histogram.high || histogram.bins > BINS_MOST ||
	    histogram.bins > (input->size - input->at) / 2)
		die("%s: at offset %" PRIu64 ": not a histogram", input->name,
		    input->at);
	sum = find_histogram(merge, input, &histogram);
	for (i = 0; i < histogram.bins; i++)
		sum->counts[i] += get_number(input, 2);
}

static void read_arc(struct merge *merge, struct input *input)
{
	struct arc arc = { .from = get_number(input, 8) };

	arc.self = get_number(input, 8);
	arc.calls = get_number(input, 4);
	GROW(merge->arcs, merge->arc_count, merge->arc_room);
	merge->arcs[merge->arc_count++] = arc;
}

static void read_file(struct merge *merge, const char *name)
{
	struct input input = { .name = name, .file = fopen(name, "re") };
	unsigned char header[HEADER_SIZE];
	struct stat info;
	int tag;

	if (!input.file || fstat(fileno(input.file), &info) != 0)
		die("%s: %s", name, strerror(errno));
	input.size = (uint64_t)info.st_size;
	read_input(&input, header, sizeof(header));
	if (memcmp(header, "gmon\1\0\0\0", 8))
		die("%s: not a gmon.out", name);
	while ((tag = fgetc(input.file)) != EOF) {
		input.at++;
		if (tag == 0)
			read_histogram(merge, &input);
		else if (tag == 1)
			read_arc(merge, &input);
		else
			die("%s: at offset %" PRIu64 ": a record of kind %d, "
			    "which cannot be merged",
			    name, input.at - 1, tag);
	}
	if (ferror(input.file))
		die("%s: %s", name, strerror(errno));
	fclose(input.file);
}

static int compare_arcs(const void *left, const void *right)
{
	const struct arc *a = left, *b = right;

	if (a->from != b->from)
		return a->from < b->from ? -1 : 1;
	return (a->self > b->self) - (a->self < b->self);
}

static void add_arcs(struct merge *merge)
{
	uint32_t i, kept = 0;

	if (merge->arc_count == 0)
		return;
	qsort(merge->arcs, merge->arc_count, sizeof(*merge->arcs),
	      compare_arcs);
	for (i = 1; i < merge->arc_count; i++)
		if (compare_arcs(&merge->arcs[kept], &merge->arcs[i]) == 0)
			merge->arcs[kept].calls += merge->arcs[i].calls;
		else
			merge->arcs[++kept] = merge->arcs[i];
	merge->arc_count = kept + 1;
}

static void put_number(FILE *out, uint64_t value, unsigned size)
{
	for (; size > 0; size--, value >>= 8)
		fputc((int)(value & 0xff), out);
}

/* The part of the counts above @before; false if no count is above it. */
static bool put_histogram(FILE *out, const struct histogram *histogram,
			  uint64_t before)
{
	bool more = false;
	uint32_t i;

	fputc(0, out);
	put_number(out, histogram->low, 8);
	put_number(out, histogram->high, 8);
	put_number(out, histogram->bins, 4);
	put_number(out, histogram->rate_hz, 4);
	fwrite(histogram->unit, 1, sizeof(histogram->unit), out);
	for (i = 0; i < histogram->bins; i++) {
		uint64_t count = histogram->counts[i];

		count = count > before ? count - before : 0;
		more |= count > HIST_LARGEST;
		put_number(out, count > HIST_LARGEST ? HIST_LARGEST : count, 2);
	}
	return more;
}

static void put_arc(FILE *out, struct arc arc)
{
	while (arc.calls > 0) {
		uint64_t part = arc.calls > ARC_LARGEST ? ARC_LARGEST :
							  arc.calls;

		fputc(1, out);
		put_number(out, arc.from, 8);
		put_number(out, arc.self, 8);
		put_number(out, part, 4);
		arc.calls -= part;
	}
}

void merge_gmon(const char *path, char **files, int count)
{
	struct merge merge = { .histograms = NULL };
	FILE *out;
	uint32_t i;
	int file;

	for (file = 0; file < count; file++)
		read_file(&merge, files[file]);
	add_arcs(&merge);
	out = output_open(path);
	fwrite("gmon\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 1, HEADER_SIZE, out);
	for (i = 0; i < merge.histogram_count; i++) {
		uint64_t before = 0;

		while (put_histogram(out, &merge.histograms[i], before))
			before += HIST_LARGEST;
	}
	for (i = 0; i < merge.arc_count; i++)
		put_arc(out, merge.arcs[i]);
	output_close();
}
