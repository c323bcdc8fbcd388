/*
 * Switches the call sites of hooks off and on.  A site is off if all sites are off, if
 * a filter has excluded it, or if a profiler has throttled it.
 */
#include "dispatch/call_sites.h"

#include "dispatch/counted_sites.h"
#include "dispatch/scan.h"
#include "dispatch/site_code.h"
#include "image/image.h"

#include <errno.h>

#include <shim/banned.h>

int call_sites_switch_all(bool on)
{
	/* All sites are on already, also those of images that were not scanned. */
	if (on && !sites_all_off)
		return 0;
	sites_all_off = !on;
	return sites_are_detached ? 0 : sites_settle_all(sites_all_off);
}

void call_sites_settle(void)
{
	if (sites_are_unsettled && !image_is_closing())
		sites_settle_all(sites_all_off);
}

/* A call that only the room sources may know. */
static int change_other(uintptr_t address, uintptr_t function,
			enum other_reason reason, bool on)
{
	struct other_call call = { address, function, reason, on, -ENOENT };

	NOTIFY(other_call_switched, &call);
	return call.result;
}

static int settle_others(void)
{
	int result = 0;

	NOTIFY(other_calls_settled, &result);
	return result;
}

/* This function does not synchronize the processors, so a thread may make one more call. */
int call_sites_switch_call(uintptr_t return_address, bool on)
{
	struct site_image *image;
	struct site *site;
	uint32_t i;
	int r = site_of_return(return_address, &image, &site);

	if (r == -ENOENT) {
		r = change_other(return_address, 0, OTHER_FILTER, on);
		return r < 0 ? r : settle_others();
	}
	if (r == 0 && site->is_fixed)
		r = -ENOTSUP;
	if (r < 0)
		return r;
	site->filtered = !on;
	i = (uint32_t)(site - image->sites);
	return sites_settle_some(image, i, i + 1);
}

/*
 * The function that the code from @start to @end is a part of.  The code loads the
 * function's address for the leave hook (lea function(%rip), %rdi).  0 if the code
 * loads the addresses of several functions with hooks: then functions were inlined, and
 * the jump may belong to any of them.
 */
static uint32_t find_whole(const struct site_image *image, uint32_t start,
			   uint32_t end)
{
	uintptr_t base = image->memory.start;
	uint32_t found = 0, size = end - start;

	if (size > SITE_BUFFER || site_read_code(image, base + start, size) < 0)
		return 0;
	for (uint32_t i = 0; i + 7 <= size; i++) {
		int32_t distance;
		uint32_t target;

		if (site_buffer[i] != 0x48 || site_buffer[i + 1] != 0x8d ||
		    site_buffer[i + 2] != 0x3d)
			continue;
		__builtin_memcpy(&distance, site_buffer + i + 3,
				 sizeof(distance));
		target = start + i + 7 + (uint32_t)distance;
		if (target == found || !call_sites_has(base + target))
			continue;
		if (found)
			return 0;
		found = target;
	}
	return found;
}

static uint32_t part_bit(uint32_t whole)
{
	return (whole ^ whole >> 10) % SITE_PART_BITS;
}

/* Whether the function may have parts. */
static bool has_part_bit(const struct site_image *image, uint32_t whole)
{
	uint32_t bit = part_bit(whole);

	return image->part_bits[bit / 64] >> bit % 64 & 1;
}

static void find_parts(struct site_image *image)
{
	image->has_parts = true;
	for (uint32_t i = 0; i < image->count; i++) {
		struct site *site = &image->sites[i];
		uint32_t start = site->offset - site->depth, whole;

		if (!scan_forms[site->kind].jumps)
			continue;
		whole = find_whole(image, start, site->offset);
		if (whole == 0 || whole == start)
			continue;
		site->part_of = whole;
		image->part_bits[part_bit(whole) / 64] |= 1ull
							  << part_bit(whole) %
								     64;
		if (image->parts_end == 0)
			image->parts = i;
		image->parts_end = i + 1;
	}
}

static uint32_t change_parts(struct site_image *image, uint32_t whole, bool on)
{
	uint32_t count = 0;

	if (!image->has_parts)
		find_parts(image);
	if (!has_part_bit(image, whole))
		return 0;
	for (uint32_t i = image->parts; i < image->parts_end; i++)
		if (image->sites[i].part_of == whole) {
			site_change(image, &image->sites[i], on);
			count++;
		}
	return count;
}

static int change_jumps(uintptr_t function, bool on)
{
	struct site_image *image = site_image_of(function);
	uint32_t offset, count;
	int r = image ? sites_find(image) : -ENOENT;

	if (r < 0)
		return r;
	offset = (uint32_t)(function - image->memory.start);
	count = change_parts(image, offset, on);
	for (uint32_t i = site_from(image, offset); i < image->count; i++) {
		struct site *site = &image->sites[i];

		if (site->offset - site->depth != offset)
			break;
		if (!scan_forms[site->kind].jumps)
			continue;
		site_change(image, site, on);
		count++;
	}
	return count > 0 ? 0 : -ENOENT;
}

/* --- calls that are off for a profiler --- */

int call_sites_throttle(const struct shim_hook_call *calls, uint32_t count,
			bool on)
{
	int result = on ? counted_sites_uncount(calls, count) : 0, r;

	for (uint32_t i = 0; i < count; i++) {
		struct site_image *image;
		struct site *site;

		if (calls[i].address == 0) {
			r = change_jumps(calls[i].function, on);
		} else {
			r = site_of_return(calls[i].address, &image, &site);
			if (r == 0 && site->is_fixed)
				r = on ? 0 : -ENOTSUP;
			else if (r == 0)
				site_change(image, site, on);
		}
		if (r == -ENOENT)
			r = change_other(calls[i].address, calls[i].function,
					 OTHER_THROTTLE, on);
		if (r < 0 && result == 0)
			result = r;
	}
	r = sites_settle_changed();
	if (result == 0)
		result = r;
	r = settle_others();
	return result < 0 ? result : r;
}

int call_sites_unthrottle_all(void)
{
	bool any = false;

	counted_sites_uncount_all();
	NOTIFY(other_calls_reset, OTHER_THROTTLE);
	settle_others();
	for (unsigned i = 0; i < site_image_count; i++)
		for (uint32_t j = 0; j < site_images[i].count; j++) {
			any |= site_images[i].sites[j].throttled;
			site_images[i].sites[j].throttled = 0;
		}
	return any ? sites_settle_all(sites_all_off) : 0;
}

bool call_sites_has(uintptr_t function)
{
	struct site_image *image = site_image_of(function);
	uint32_t offset, i;

	if (!image || sites_find(image) < 0)
		return false;
	offset = (uint32_t)(function - image->memory.start);
	i = site_from(image, offset);
	return i < image->count &&
	       image->sites[i].offset - image->sites[i].depth == offset;
}

bool call_sites_is_hook(uintptr_t address)
{
	struct site_image *image;
	struct site *site;

	return site_of_return(address, &image, &site) == 0;
}

int call_sites_switch_jumps(uintptr_t function, bool on)
{
	struct site_image *image = site_image_of(function);
	uint32_t offset, first, i;
	int r, count = 0, changed = 0;

	if (!image)
		return -ENOENT;
	r = sites_find(image);
	if (r < 0)
		return r;
	offset = (uint32_t)(function - image->memory.start);
	first = site_from(image, offset);
	for (i = first; i < image->count; i++) {
		struct site *site = &image->sites[i];

		if (site->offset - site->depth != offset)
			break;
		if (scan_forms[site->kind].jumps) {
			changed += site->filtered == on;
			site->filtered = !on;
			count++;
		}
	}
	r = sites_settle_some(image, first, i);
	if (r < 0)
		return r;
	if (count > 0 && changed == 0)
		return -EALREADY;
	return count > 0 ? count : -ENOENT;
}

int call_sites_unfilter_all(void)
{
	for (unsigned i = 0; i < site_image_count; i++)
		for (uint32_t j = 0; j < site_images[i].count; j++)
			site_images[i].sites[j].filtered = 0;
	NOTIFY(other_calls_reset, OTHER_FILTER);
	settle_others();
	return sites_settle_all(sites_all_off);
}

int call_sites_detach(bool begins)
{
	if (begins)
		counted_sites_uncount_all();
	sites_are_detached = begins;
	return sites_settle_all(!begins && sites_all_off);
}

struct call_sites_state sites_state(void)
{
	struct call_sites_state state = { .images = site_image_count };

	for (unsigned i = 0; i < site_image_count; i++) {
		const struct site_image *image = &site_images[i];

		state.sites += image->count;
		state.rejected += image->rejected;
		state.images_unwritable += image->unwritable;
		state.off += image->off;
	}
	NOTIFY(other_calls_added, &state);
	return state;
}
