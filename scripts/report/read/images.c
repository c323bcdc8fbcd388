/*
 * Finds the image that a process had at an address.  A process may load any
 * number of images at one address, one after another; the generation
 * distinguishes them.  So images are searched by generation first, and images
 * that were loaded at the same address cost nothing.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <shim/format.h>

#include "base/memory.h"
#include "read/images.h"
#include "read/process.h"

/* Images of the last generation are searched one by one. */
#define LAST_MAX 1024

/* One end of an image, and the sum of the image numbers up to here. */
struct bound {
	uint64_t at;
	uint64_t sum;
};

struct image_index {
	uint32_t *order; /* images by generation, then by start */
	uint32_t count;
	/* range in @order: images of SHIM_GENERATION_MAX, by start */
	uint32_t last_begin, last_end;
	struct bound *starts, *ends; /* images that cover at least one byte */
	uint32_t bound_count;
};

static bool covers(const struct image *image, uint64_t address)
{
	return address - image->start < image->end - image->start &&
	       image->start < image->end;
}

/* --- building the index --- */

static bool is_same(const struct image *a, const struct image *b)
{
	return a->start == b->start && a->end == b->end && a->bias == b->bias &&
	       a->build_id_size == b->build_id_size &&
	       !memcmp(a->build_id, b->build_id, a->build_id_size) &&
	       !strcmp(a->path, b->path);
}

static int compare(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* The images that compare_numbers() compares by number. */
static const struct image *sorted;

static int compare_numbers(const void *left, const void *right)
{
	const struct image *a = &sorted[*(const uint32_t *)left];
	const struct image *b = &sorted[*(const uint32_t *)right];
	int difference = compare(a->generation, b->generation);

	if (!difference)
		difference = compare(a->start, b->start);
	if (!difference)
		difference = strcmp(a->path, b->path);
	return difference;
}

/* Of several records of the last generation for one object at one place, keeps
 * one. */
static void drop_equal(struct image_index *index, const struct image *images)
{
	uint32_t i, kept = 0;

	for (i = 0; i < index->count; i++) {
		const struct image *image = &images[index->order[i]];

		if (image->generation == SHIM_GENERATION_MAX && kept > 0 &&
		    images[index->order[kept - 1]].generation ==
			    SHIM_GENERATION_MAX &&
		    is_same(&images[index->order[kept - 1]], image))
			continue;
		if (image->generation < SHIM_GENERATION_MAX)
			index->last_begin = kept + 1;
		index->order[kept++] = index->order[i];
		if (image->generation <= SHIM_GENERATION_MAX)
			index->last_end = kept;
	}
	index->count = kept;
}

static int compare_bounds(const void *left, const void *right)
{
	const struct bound *a = left, *b = right;

	return compare(a->at, b->at);
}

static void sum_up(struct bound *bounds, uint32_t count)
{
	uint32_t i;

	if (count)
		qsort(bounds, count, sizeof(*bounds), compare_bounds);
	for (i = 1; i < count; i++)
		bounds[i].sum += bounds[i - 1].sum;
}

void images_index(struct process *process)
{
	struct image_index *index = allocate(1, sizeof(*index));
	uint32_t i, n = 0, count = process->image_count;

	index->order = allocate(count, sizeof(*index->order));
	index->starts = allocate(count, sizeof(*index->starts));
	index->ends = allocate(count, sizeof(*index->ends));
	for (i = 0; i < count; i++) {
		const struct image *image = &process->images[i];

		index->order[i] = i;
		if (image->start >= image->end)
			continue;
		index->starts[n] = (struct bound){ image->start, i };
		index->ends[n++] = (struct bound){ image->end, i };
	}
	index->count = count;
	index->bound_count = n;
	sorted = process->images;
	if (count)
		qsort(index->order, count, sizeof(*index->order),
		      compare_numbers);
	drop_equal(index, process->images);
	sum_up(index->starts, n);
	sum_up(index->ends, n);
	process->image_index = index;
}

/* --- searching --- */

/* The number of @bounds at or before @address. */
static uint32_t count_up_to(const struct bound *bounds, uint32_t count,
			    uint64_t address)
{
	uint32_t low = 0, middle;

	while (low < count) {
		middle = low + (count - low) / 2;
		if (bounds[middle].at <= address)
			low = middle + 1;
		else
			count = middle;
	}
	return low;
}

/*
 * The only image that ever covered @address; NULL if several did, or none.
 * Images that begin at or before @address, minus images that end there, cover
 * it.
 */
static struct image *find_only(const struct process *process, uint64_t address)
{
	const struct image_index *index = process->image_index;
	uint32_t began = count_up_to(index->starts, index->bound_count,
				     address);
	uint32_t ended = count_up_to(index->ends, index->bound_count, address);
	uint64_t number;

	if (process->images_lost || began - ended != 1)
		return NULL;
	number = index->starts[began - 1].sum;
	if (ended > 0)
		number -= index->ends[ended - 1].sum;
	return &process->images[number];
}

/* Images that were loaded after generations had run out share the last one. */
static struct image *find_last(const struct process *process, uint64_t address)
{
	const struct image_index *index = process->image_index;
	struct image *found = NULL;
	uint32_t i;

	if (index->last_end - index->last_begin > LAST_MAX)
		return NULL;
	for (i = index->last_begin; i < index->last_end; i++) {
		struct image *image = &process->images[index->order[i]];

		if (!covers(image, address))
			continue;
		if (found)
			return NULL;
		found = image;
	}
	return found;
}

struct image *process_image_before(const struct process *process,
				   uint64_t address, uint32_t generation)
{
	const struct image_index *index = process->image_index;
	uint32_t low = 0, high = index ? index->count : 0, middle;
	struct image *image;

	while (low < high) {
		middle = low + (high - low) / 2;
		image = &process->images[index->order[middle]];
		if (image->generation < generation ||
		    (image->generation == generation &&
		     image->start <= address))
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return NULL;
	image = &process->images[index->order[low - 1]];
	return image->generation == generation ? image : NULL;
}

struct image *process_image(const struct process *process, uint64_t address,
			    uint32_t generation)
{
	struct image *image;

	if (!process->image_index)
		return NULL;
	if (generation == SHIM_GENERATION_MAX)
		return find_last(process, address);
	image = process_image_before(process, address, generation);
	if (image && covers(image, address))
		return image;
	return generation == 0 ? find_only(process, address) : NULL;
}

void images_free(struct process *process)
{
	struct image_index *index = process->image_index;
	uint32_t i;

	if (index) {
		free(index->order);
		free(index->starts);
		free(index->ends);
		free(index);
	}
	for (i = 0; i < process->image_count; i++)
		free((void *)process->images[i].build_id);
	free(process->images);
}
