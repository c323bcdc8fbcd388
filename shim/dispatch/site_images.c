/*
 * The images that have call sites, and the search for a site in them.
 */
#include "dispatch/site_images.h"

#include "dispatch/hook_table.h"
#include "dispatch/scan.h"
#include "os/sys.h"

#include <errno.h>

#include <shim/banned.h>

struct site_image site_images[SITE_IMAGES_MAX];
unsigned site_image_count;
bool sites_all_off, sites_are_detached, sites_are_unsettled;

struct site_image *site_image_of(uintptr_t address)
{
	for (unsigned i = 0; i < site_image_count; i++)
		if (address >= site_images[i].memory.start &&
		    address < site_images[i].memory.end)
			return &site_images[i];
	return NULL;
}

static bool has_slots(const struct call_sites_image *memory)
{
	uintptr_t slot;

	return hook_table_slots(memory->start, memory->end, &slot, 1) > 0;
}

void call_sites_add(const struct call_sites_image *memory)
{
	struct site_image *old = site_image_of(memory->start);

	if (old && old->memory.start == memory->start &&
	    old->memory.frames == memory->frames) {
		old->memory.end = memory->end;
		old->confirmed = true;
		return;
	}
	call_sites_remove(memory->start, memory->end);
	if (site_image_count == SITE_IMAGES_MAX || !has_slots(memory))
		return;
	site_images[site_image_count++] = (struct site_image){
		.memory = *memory, .confirmed = true
	};
	sites_are_unsettled |= sites_all_off;
}

static void drop_image(struct site_image *image)
{
	if (image->sites)
		sys_unmap(image->sites, image->room * sizeof(*image->sites));
	*image = site_images[--site_image_count];
}

void call_sites_remove(uintptr_t start, uintptr_t end)
{
	for (unsigned i = 0; i < site_image_count;) {
		if (site_images[i].memory.start < end &&
		    site_images[i].memory.end > start)
			drop_image(&site_images[i]);
		else
			i++;
	}
}

void call_sites_fork_begin(void)
{
	for (unsigned i = 0; i < site_image_count; i++)
		site_images[i].confirmed = false;
}

/* Reads the state of each site from its code, because another thread of the parent may
 * have been changing both. */
static void read_states(struct site_image *image)
{
	uint32_t distance;

	image->off = 0;
	for (uint32_t i = 0; i < image->count; i++) {
		struct site *site = &image->sites[i];
		const unsigned char *byte =
			(const unsigned char *)(image->memory.start +
						site->offset);

		site->off = *byte == scan_forms[site->kind].off;
		image->off += site->off;
		if (site->kind != SCAN_CALL || site->distance == 0)
			continue;
		__builtin_memcpy(&distance, byte + 1, sizeof(distance));
		site->counted = distance != site->distance;
	}
}

void call_sites_fork_end(void)
{
	for (unsigned i = 0; i < site_image_count;) {
		if (site_images[i].confirmed)
			read_states(&site_images[i++]);
		else
			drop_image(&site_images[i]);
	}
	sites_are_unsettled = true;
}

/* --- sites --- */

uint32_t site_from(const struct site_image *image, uint32_t offset)
{
	uint32_t low = 0, high = image->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (image->sites[middle].offset < offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct site *find_call(const struct site_image *image, uint32_t end,
			      enum scan_kind kind)
{
	uint32_t offset = end - scan_forms[kind].size;
	uint32_t i = site_from(image, offset);

	if (i == image->count || image->sites[i].offset != offset ||
	    image->sites[i].kind != kind)
		return NULL;
	return &image->sites[i];
}

int site_of_return(uintptr_t return_address, struct site_image **image,
		   struct site **site)
{
	uint32_t end;
	int r;

	*image = site_image_of(return_address);
	if (!*image)
		return -ENOENT;
	r = sites_find(*image);
	if (r < 0)
		return r;
	end = (uint32_t)(return_address - (*image)->memory.start);
	*site = find_call(*image, end, SCAN_CALL);
	if (!*site)
		*site = find_call(*image, end, SCAN_CALL_SLOT);
	return *site ? 0 : -ENOENT;
}
