/*
 * Handles loaded and unloaded images.  It points the slots of a new image at the hooks,
 * and registers the image for call_sites.h.  It drops all data about the addresses of
 * an unloaded image.
 */
#include "dispatch/call_sites.h"
#include "dispatch/filter_cache.h"
#include "dispatch/hook_table.h"
#include "dispatch/hooks_switch.h"
#include "image/image.h"
#include "image/image_facts.h"

#include <shim/info.h>

#include <shim/banned.h>

static void register_call_sites(struct image_entry *image)
{
	call_sites_add(&(struct call_sites_image){
		.start = image->start,
		.end = image->end,
		.frames = image->frames,
		.may_go = image->may_go,
	});
}

/* Sets image->has_hooks.  If the program contains this code, it is linked with
 * libshim.a, and has hooks. */
static void set_has_hooks(struct image_entry *image)
{
	uintptr_t here = (uintptr_t)&set_has_hooks, slot;
	bool has_hooks = hook_table_slots(image->start, image->end, &slot, 1) >
				 0 ||
			 (here - image->start < image->end - image->start &&
			  (image->flags & SHIM_IMAGE_PROGRAM));

	__atomic_store_n(&image->has_hooks, has_hooks, __ATOMIC_RELEASE);
}

static void add_image(struct image_entry *image,
		      const struct image_facts *facts, bool may_go)
{
	hook_table_bind(&(struct hook_table_image){
		.bias = facts->bias,
		.end = image ? image->end : 0,
		.dynamic = facts->dynamic,
		.dynamic_size = facts->dynamic_size,
		.relro = facts->relro,
		.relro_size = facts->relro_size,
		.may_go = may_go,
	});
	if (image) {
		set_has_hooks(image);
		register_call_sites(image);
	}
}

static void remove_image(uintptr_t start, uintptr_t end)
{
	hook_table_unbind(start, end);
	filter_cache_forget(start, end);
	call_sites_remove(start, end);
}

static void finish_fork(bool is_complete)
{
	if (is_complete)
		call_sites_fork_end();
	hooks_switch_forked();
}

SUBSCRIBE(image_came, add_image);
SUBSCRIBE(image_went, remove_image);
SUBSCRIBE(images_scanned, call_sites_settle);
SUBSCRIBE(images_fork, call_sites_fork_begin);
SUBSCRIBE(image_forked_as_well, register_call_sites);
SUBSCRIBE(images_forked, finish_fork);
