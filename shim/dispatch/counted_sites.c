/*
 * Calls of enter hooks that lead to code that counts them (call_counters.c).
 *
 * The distance of a call changes while it is off: the four bytes are then a constant that
 * has no effect.  But a call of another thread that is off meanwhile is not counted.  With
 * several threads, one store changes the distance, which must lie in one line of the cache:
 * processors fetch the old or the new one.  (HotSpot's calls of compiled code depend on
 * this, too.)
 */
#include "dispatch/counted_sites.h"

#include "dispatch/call_counters.h"
#include "dispatch/patch.h"
#include "dispatch/scan.h"
#include "dispatch/site_code.h"
#include "image/image.h"
#include "os/sys.h"
#include "os/tasks.h"

#include <errno.h>

#include <shim/banned.h>

/* Distances that are being changed; several of one image in turn are written through the
 * same file. */
struct distances {
	struct site_image *image; /* NULL: the patch is not open */
	bool one_store;		  /* of each distance */
	struct patch patch;
};

/* The processors are synchronized before the calls may be on. */
static void finish_distances(struct distances *distances)
{
	if (!distances->image)
		return;
	patch_close(&distances->patch);
	sys_sync_cores();
}

/* Whether the call counts with this distance already. */
static bool has_distance(const struct site_image *image,
			 const struct site *site, uint32_t distance)
{
	return site->counted &&
	       site_read_code(image, image->memory.start + site->offset + 1,
			      sizeof(distance)) == 0 &&
	       __builtin_memcmp(site_buffer, &distance, sizeof(distance)) == 0;
}

/* Changes the distance of a call, to the compiler's one for a @target of 0.  The call is
 * off, unless the change is one store. */
static int change_distance(struct distances *distances,
			   struct site_image *image, struct site *site,
			   uintptr_t target)
{
	uintptr_t address = image->memory.start + site->offset;
	uint32_t distance;
	int r;

	if (image->memory.may_go && image_is_closing())
		return -EBUSY;
	if (!distances->one_store && !site->off)
		return -EBUSY;
	if (distances->one_store && !patch_is_one_store(address + 1))
		return -ENOTSUP;
	if (site->distance == 0) {
		r = site_read_code(image, address + 1, sizeof(distance));
		if (r < 0)
			return r;
		__builtin_memcpy(&distance, site_buffer, sizeof(distance));
		site->distance = distance;
	}
	distance = target ? (uint32_t)(target - (address + 5)) : site->distance;
	if (has_distance(image, site, distance))
		return 0;
	__builtin_memcpy(site_buffer, &distance, sizeof(distance));
	if (distances->image != image) {
		if (distances->image)
			patch_close(&distances->patch);
		patch_open(&distances->patch, image->memory.start,
			   image->memory.end);
		distances->image = image;
	}
	r = distances->one_store ?
		    patch_store(&distances->patch, address + 1, distance) :
		    patch_write(&distances->patch, address + 1, site_buffer,
				sizeof(distance));
	if (r == 0)
		site->counted = target != 0;
	return r;
}

static bool find_counted(uintptr_t return_address, struct site_image **image,
			 struct site **site)
{
	return return_address != 0 &&
	       site_of_return(return_address, image, site) == 0 &&
	       (*site)->counted;
}

int counted_sites_uncount(const struct shim_hook_call *calls, uint32_t count)
{
	struct distances distances = { .image = NULL };
	struct site_image *image;
	struct site *site;
	bool any = false;
	int result;

	for (uint32_t i = 0; i < count; i++)
		if (find_counted(calls[i].address, &image, &site)) {
			site_change(image, site, false);
			any = true;
		}
	if (!any)
		return 0;
	result = sites_settle_changed();
	for (uint32_t i = 0; i < count; i++)
		if (find_counted(calls[i].address, &image, &site)) {
			int r = change_distance(&distances, image, site, 0);

			if (r < 0 && result == 0)
				result = r;
		}
	finish_distances(&distances);
	return result;
}

void counted_sites_uncount_all(void)
{
	struct distances distances = { .image = NULL };
	bool any = false;

	for (unsigned i = 0; i < site_image_count; i++)
		for (uint32_t j = 0; j < site_images[i].count; j++)
			if (site_images[i].sites[j].counted) {
				site_images[i].sites[j].throttled = 1;
				any = true;
			}
	if (!any)
		return;
	sites_settle_all(sites_all_off);
	for (unsigned i = 0; i < site_image_count; i++)
		for (uint32_t j = 0; j < site_images[i].count; j++)
			if (site_images[i].sites[j].counted)
				change_distance(&distances, &site_images[i],
						&site_images[i].sites[j], 0);
	finish_distances(&distances);
}

extern void __cyg_profile_func_enter(void *function, void *site);

/* Only a call through a stub has a distance to code. */
static int find_countable(const struct shim_counted_call *call,
			  struct site_image **image, struct site **site,
			  uintptr_t *code)
{
	int r = call->address == 0 ? -ENOENT :
				     site_of_return(call->address, image, site);

	if (r < 0)
		return r;
	if ((*site)->kind != SCAN_CALL || (*site)->is_fixed)
		return -ENOTSUP;
	*code = call_counter_code((void (*)(void))__cyg_profile_func_enter,
				  (*image)->memory.start, (*image)->memory.end,
				  call->counter);
	return *code ? 0 : -ENOMEM;
}

/* Changes the distances of all calls, and stores which are counted. */
static int change_distances(struct shim_counted_call *calls, uint32_t count,
			    bool one_store)
{
	struct distances distances = { .one_store = one_store };
	struct site_image *image;
	struct site *site;
	uintptr_t code;
	int result = 0;

	for (uint32_t i = 0; i < count; i++) {
		int r = find_countable(&calls[i], &image, &site, &code);

		if (r == 0)
			r = change_distance(&distances, image, site, code);
		else if (r == -ENOENT)
			NOTIFY(other_call_counted, &calls[i], &r);
		calls[i].is_counted = r == 0;
		if (r < 0 && result == 0)
			result = r;
	}
	finish_distances(&distances);
	return result;
}

static void switch_countable(const struct shim_counted_call *calls,
			     uint32_t count, bool on)
{
	struct site_image *image;
	struct site *site;
	uintptr_t code;

	for (uint32_t i = 0; i < count; i++)
		if (on ? find_counted(calls[i].address, &image, &site) :
			 find_countable(&calls[i], &image, &site, &code) == 0)
			site_change(image, site, on);
}

/* Changes the code of marks (room sources); if that fails, none counts. */
static int settle_others(struct shim_counted_call *calls, uint32_t count)
{
	struct site_image *image;
	struct site *site;
	int result = 0;

	NOTIFY(other_calls_settled, &result);
	for (uint32_t i = 0; result < 0 && i < count; i++)
		if (calls[i].address == 0 ||
		    site_of_return(calls[i].address, &image, &site) == -ENOENT)
			calls[i].is_counted = 0;
	return result;
}

static bool is_any_site(const struct shim_counted_call *calls, uint32_t count)
{
	struct site_image *image;
	struct site *site;

	for (uint32_t i = 0; i < count; i++)
		if (calls[i].address != 0 &&
		    site_of_return(calls[i].address, &image, &site) == 0)
			return true;
	return false;
}

int call_sites_count(struct shim_counted_call *calls, uint32_t count)
{
	int result, r;

	if (!is_any_site(calls, count) || !tasks_are_one()) {
		result = change_distances(calls, count, true);
	} else {
		switch_countable(calls, count, false);
		/* A call that is still on is not changed. */
		sites_settle_changed();
		result = change_distances(calls, count, false);
	}
	switch_countable(calls, count, true);
	r = sites_settle_changed();
	if (result == 0)
		result = r;
	r = settle_others(calls, count);
	return result < 0 ? result : r;
}
