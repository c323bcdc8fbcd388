/*
 * Finds the call sites of an image: reads its code from memory, and lets scan.h search
 * it for calls of the hooks.
 */
#include "dispatch/find_sites.h"

#include "dispatch/hook_table.h"
#include "dispatch/scan.h"
#include "image/image.h"
#include "os/maps.h"
#include "os/sys.h"

#include <errno.h>

#include <shim/banned.h>

#define TEXTS_MAX 8

/* The mappings of an image, collected by maps_read. */
struct texts {
	const struct call_sites_image *memory;
	struct view text[TEXTS_MAX];
	unsigned count;
	struct view frames; /* the mapping that holds the index */
	bool hidden;	    /* it has code that shim must not change */
};

/* The part of a mapping that belongs to the image.  The kernel merges adjacent
 * mappings, so a mapping may be larger. */
static struct view part_in_image(const struct map *map,
				 const struct call_sites_image *memory)
{
	uintptr_t start = map->start, end = map->end;

	if (start < memory->start)
		start = memory->start;
	if (end > memory->end)
		end = memory->end;
	return (struct view){ start, end > start ? end - start : 0,
			      (const unsigned char *)start };
}

static bool collect_mapping(const struct map *map, void *argument)
{
	struct texts *texts = argument;
	const struct call_sites_image *memory = texts->memory;
	struct view view = part_in_image(map, memory);

	if (view.size == 0)
		return map->start < memory->end;
	if (map->readable && view_at(&view, memory->frames, 1))
		texts->frames = view;
	if (!map->executable)
		return true;
	/* A store into a shared mapping would change the file. */
	if (!map->readable || map->shared || texts->count == TEXTS_MAX)
		texts->hidden = true;
	else
		texts->text[texts->count++] = view;
	return true;
}

/* Copies a view.  shim scans a copy of an image that may be unloaded. */
static int copy_view(struct view *view)
{
	void *memory;
	int r = sys_map(view->size, &memory);

	if (r == 0) {
		r = sys_peek((const void *)view->start, memory, view->size);
		if (r < 0)
			sys_unmap(memory, view->size);
	}
	view->bytes = r == 0 ? memory : NULL;
	return r;
}

static void drop_view(struct view *view)
{
	if (view->bytes && view->bytes != (const unsigned char *)view->start)
		sys_unmap((void *)view->bytes, view->size);
}

static int grow_sites(struct site_image *image, uint32_t room)
{
	struct site *sites, *before = image->sites;
	size_t size_before = image->room * sizeof(*sites);
	void *memory;
	int r = sys_map(room * sizeof(*sites), &memory);

	if (r < 0)
		return r;
	sites = memory;
	for (uint32_t i = 0; i < image->count; i++)
		sites[i] = before[i];
	/* The unmapping comes last, so that a child that is forked meanwhile has valid
	 * sites. */
	image->sites = sites;
	image->room = room;
	if (before)
		sys_unmap(before, size_before);
	return 0;
}

static bool is_fixed(const struct view *text, uintptr_t address,
		     enum scan_kind kind, uintptr_t end)
{
	return !scan_forms[kind].jumps &&
	       scan_reads_return(text, address + scan_forms[kind].size, end);
}

struct search {
	struct site_image *image;
	const struct view *text;
	struct frames frames;
	int error;
};

/* Whether a candidate overlaps the one before.  At least one of the two is no call, so
 * both are rejected. */
static bool overlaps(struct site_image *image, uint32_t offset, uint32_t end)
{
	bool is_inside = offset < image->end;

	if (is_inside && image->count > 0) {
		const struct site *before = &image->sites[image->count - 1];

		if (before->offset + scan_forms[before->kind].size > offset) {
			image->count--;
			image->rejected++;
		}
	}
	if (end > image->end)
		image->end = end;
	return is_inside;
}

static bool add_site(uintptr_t address, enum scan_kind kind, void *argument)
{
	struct search *search = argument;
	struct site_image *image = search->image;
	uint32_t offset = (uint32_t)(address - image->memory.start);
	uint32_t size = scan_forms[kind].size;
	struct frame_range function;

	if (overlaps(image, offset, offset + size) ||
	    !fde_find(&search->frames, address, &function) ||
	    function.end - address < size ||
	    address - function.start >= 1u << 25) {
		image->rejected++;
		return true;
	}
	if (image->count == image->room) {
		search->error = grow_sites(image, image->room * 2);
		if (search->error < 0)
			return false;
	}
	image->sites[image->count++] = (struct site){
		.offset = offset,
		.depth = (uint32_t)(address - function.start),
		.kind = kind,
		.is_fixed = is_fixed(search->text, address, kind, function.end),
	};
	return true;
}

static int scan_texts(struct site_image *image, const struct texts *texts)
{
	struct search search = { .image = image };
	struct scan scan = { .slot_count = 0 };
	uint32_t room = 512;

	scan.slot_count = hook_table_slots(image->memory.start,
					   image->memory.end, scan.slots,
					   SCAN_SLOTS_MAX);
	if (!fde_open(&search.frames, &texts->frames, image->memory.frames))
		return -ENOEXEC;
	for (unsigned i = 0; i < texts->count; i++) {
		scan_stubs(&scan, &texts->text[i], &search.frames);
		room += (uint32_t)(texts->text[i].size / 32);
	}
	search.error = grow_sites(image, room);
	for (unsigned i = 0; search.error == 0 && i < texts->count; i++) {
		search.text = &texts->text[i];
		scan_calls(&scan, search.text, add_site, &search);
	}
	return search.error;
}

static int copy_texts(struct texts *texts)
{
	int r = 0;

	for (unsigned i = 0; i < texts->count; i++)
		texts->text[i].bytes = NULL;
	texts->frames.bytes = NULL;
	for (unsigned i = 0; r == 0 && i < texts->count; i++)
		r = copy_view(&texts->text[i]);
	return r < 0 ? r : copy_view(&texts->frames);
}

static void close_texts(struct texts *texts)
{
	for (unsigned i = 0; i < texts->count; i++)
		drop_view(&texts->text[i]);
	drop_view(&texts->frames);
}

/* The caller closes them if this returns 0. */
static int open_texts(struct texts *texts)
{
	int r = maps_read(collect_mapping, texts);

	if (r < 0)
		return r;
	if (texts->hidden || texts->count == 0 || texts->frames.size == 0 ||
	    texts->memory->end - texts->memory->start > UINT32_MAX)
		return -ENOEXEC;
	if (texts->memory->may_go)
		r = copy_texts(texts);
	if (r < 0)
		close_texts(texts);
	return r;
}

static int scan_image(struct site_image *image)
{
	struct texts texts = { .memory = &image->memory };
	int r = open_texts(&texts);

	if (r < 0)
		return r;
	r = scan_texts(image, &texts);
	close_texts(&texts);
	return r;
}

int sites_find(struct site_image *image)
{
	int r;

	if (image->scanned)
		return image->unwritable && image->count == 0 ? -EACCES : 0;
	if (image->memory.may_go && image_is_closing())
		return -EBUSY;
	image->count = image->rejected = image->end = 0;
	r = scan_image(image);
	if (r < 0)
		image->count = 0;
	if (r < 0 && r != -ENOEXEC)
		return r;
	image->scanned = true;
	image->unwritable = r < 0;
	return r;
}

/* --- calls through other slots --- */

struct other_search {
	struct frames frames;
	const struct view *text;
	sites_found *found;
	void *argument;
	uint32_t unknown;
};

static bool find_other(uintptr_t address, enum scan_kind kind, void *argument)
{
	struct other_search *search = argument;
	uint32_t size = scan_forms[kind].size;
	struct frame_range function;

	if (scan_forms[kind].jumps)
		return true;
	if (!fde_find(&search->frames, address, &function) ||
	    function.end - address < size) {
		search->unknown++;
		return true;
	}
	return search->found(
		search->argument, address, size, function.start,
		is_fixed(search->text, address, kind, function.end));
}

int sites_search(const struct call_sites_image *memory, const uintptr_t *slots,
		 unsigned count, sites_found *found, void *argument,
		 uint32_t *unknown)
{
	struct other_search search = { .found = found, .argument = argument };
	struct texts texts = { .memory = memory };
	struct scan scan = { .slot_count = count };
	int r = open_texts(&texts);

	*unknown = 0;
	if (r < 0)
		return r;
	for (unsigned i = 0; i < count; i++)
		scan.slots[i] = slots[i];
	if (!fde_open(&search.frames, &texts.frames, memory->frames))
		r = -ENOEXEC;
	for (unsigned i = 0; r == 0 && i < texts.count; i++)
		scan_stubs(&scan, &texts.text[i], &search.frames);
	for (unsigned i = 0; r == 0 && i < texts.count; i++) {
		search.text = &texts.text[i];
		scan_calls(&scan, search.text, find_other, &search);
	}
	*unknown = search.unknown;
	close_texts(&texts);
	return r;
}
