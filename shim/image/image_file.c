/*
 * Writes the file "images" through a mapped window.  When the window is full, shim maps
 * a new window.  Old windows stay mapped, because shim writes the end of an image into
 * its record.
 */
#include "image/image_file.h"

#include "image/image.h"
#include "os/clock.h"
#include "runtime/log.h"
#include "runtime/record.h"
#include "runtime/record_file.h"

#include <shim/record.h>

#include <shim/banned.h>

#define WINDOW_SIZE (16u << 10)

/* The file, and the position of the next record. */
static struct shim_images *header;
static struct record_file *file;
static char *window;
static uint32_t window_used;

bool image_file_is_open(void)
{
	return header != NULL;
}

int image_file_open(void)
{
	void *memory;
	int r;

	header = NULL;
	r = record_create("images", WINDOW_SIZE, &file, &memory);
	if (r < 0) {
		log_error("cannot record the loaded objects (file %s)",
			  "images", r);
		return r;
	}
	header = memory;
	*header = (struct shim_images){
		.magic = SHIM_IMAGES_MAGIC,
		.header_size = sizeof(*header),
	};
	__atomic_store_n(&header->version, SHIM_FORMAT_VERSION,
			 __ATOMIC_RELEASE);
	window = memory;
	window_used = sizeof(*header);
	return 0;
}

/* Returns room for a record of @size bytes, or NULL.  No record crosses windows: the
 * last record of a window extends to the window's end. */
static struct shim_image_record *add_record(uint32_t size)
{
	static struct shim_image_record *last;
	struct shim_image_record *record;
	void *memory;

	if (!header)
		return NULL;
	if (window_used + size + sizeof(*record) > WINDOW_SIZE) {
		if (record_file_extend(file, WINDOW_SIZE, &memory) < 0)
			return NULL;
		if (last)
			last->size += WINDOW_SIZE - window_used;
		window = memory;
		window_used = 0;
	}
	record = (struct shim_image_record *)(window + window_used);
	window_used += size;
	last = record;
	return record;
}

void image_file_lose(void)
{
	if (header)
		header->lost++;
}

void image_file_add(struct image_entry *image)
{
	uint32_t size = (uint32_t)(sizeof(struct shim_image_record) +
				   image->build_id_size + image->path_size +
				   7) &
			~7u;
	struct shim_image_record *record = add_record(size);

	image->record = record;
	if (!record) {
		image_file_lose();
		return;
	}
	record->start = image->start;
	record->end = image->end;
	record->bias = image->bias;
	record->load_clock = clock_read();
	record->device = image->device;
	record->inode = image->inode;
	record->build_id_size = image->build_id_size;
	record->path_size = image->path_size;
	for (uint32_t i = 0; i < image->build_id_size; i++)
		record->text[i] = image->build_id[i];
	for (uint32_t i = 0; i < image->path_size; i++)
		record->text[image->build_id_size + i] = (unsigned char)
								 image->path[i];
	__atomic_store_n(&record->size, size, __ATOMIC_RELEASE);
}

void image_file_end(const struct image_entry *image)
{
	if (!image->record)
		return;
	image->record->unload_clock = clock_read();
	__atomic_store_n(&image->record->generation, image->generation,
			 __ATOMIC_RELEASE);
}
