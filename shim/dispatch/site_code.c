/*
 * Writes the wanted states of call sites into their code.  Each site stores the state of
 * its code, so that the next change completes a change that failed half-way or had to
 * wait.
 */
#include "dispatch/site_code.h"

#include "dispatch/patch.h"
#include "dispatch/scan.h"
#include "image/image.h"
#include "os/sys.h"

#include <errno.h>

#include <shim/banned.h>

unsigned char site_buffer[SITE_BUFFER];

static bool wants_off(const struct site *site)
{
	return !sites_are_detached && !site->is_fixed &&
	       (sites_all_off || site->filtered || site->throttled);
}

static uintptr_t address_of(const struct site_image *image, uint32_t number)
{
	return image->memory.start + image->sites[number].offset;
}

int site_read_code(const struct site_image *image, uintptr_t start, size_t size)
{
	return patch_read(start, site_buffer, size, image->memory.may_go);
}

/* Changes the sites of the run in the buffer.  It leaves bytes that are neither on nor
 * off, such as a debugger's breakpoint. */
static void change_buffer(struct site_image *image, const struct patch_run *run)
{
	for (uint32_t i = run->first; i <= run->last; i++) {
		const struct site *site = &image->sites[i];
		const struct scan_form *form = &scan_forms[site->kind];
		unsigned char *byte = site_buffer +
				      (address_of(image, i) - run->start);

		if (*byte == form->on || *byte == form->off)
			*byte = wants_off(site) ? form->off : form->on;
	}
}

static void store_states(struct site_image *image, const struct patch_run *run)
{
	for (uint32_t i = run->first; i <= run->last; i++) {
		struct site *site = &image->sites[i];

		image->off -= site->off;
		site->off = site_buffer[address_of(image, i) - run->start] ==
			    scan_forms[site->kind].off;
		image->off += site->off;
	}
}

static int write_run(struct site_image *image, struct patch *patch,
		     const struct patch_run *run)
{
	int r = site_read_code(image, run->start, run->size);

	if (r < 0)
		return r;
	change_buffer(image, run);
	r = patch_write(patch, run->start, site_buffer, run->size);
	if (r == 0)
		store_states(image, run);
	return r;
}

/* The first site from @number on that may have changed since the last sites_settle_changed(),
 * if there was any change. */
static uint32_t skip_unchanged(const struct site_image *image, uint32_t number,
			       uint32_t end)
{
	return image->changes.end == 0 ?
		       number :
		       changes_next(&image->changes, number, end, image->count);
}

static int write_sites(struct site_image *image, struct patch *patch,
		       uint32_t first, uint32_t end)
{
	struct patch_run run = { .size = 0 };
	int r = 0;

	for (uint32_t i = skip_unchanged(image, first, end); r == 0 && i < end;
	     i = skip_unchanged(image, i + 1, end)) {
		uintptr_t address;

		if (wants_off(&image->sites[i]) == image->sites[i].off)
			continue;
		address = address_of(image, i);
		if (patch_run_extend(&run, i, address, 1))
			continue;
		if (run.size > 0)
			r = write_run(image, patch, &run);
		run = (struct patch_run){ i, i, address, 1 };
	}
	if (r == 0 && run.size > 0)
		r = write_run(image, patch, &run);
	return r;
}

static bool is_settled(const struct site_image *image, uint32_t first,
		       uint32_t end)
{
	for (uint32_t i = skip_unchanged(image, first, end); i < end;
	     i = skip_unchanged(image, i + 1, end))
		if (wants_off(&image->sites[i]) != image->sites[i].off)
			return false;
	return true;
}

/* Code was written since the last synchronize(). */
static bool is_written;

/* After this call, no thread executes the old code.  The first one takes 10 ms if the
 * program has threads: the kernel waits for a grace period. */
static void synchronize(void)
{
	if (is_written)
		sys_sync_cores();
	is_written = false;
}

int sites_settle_some(struct site_image *image, uint32_t first, uint32_t end)
{
	struct patch patch;
	int r;

	if (is_settled(image, first, end))
		return 0;
	if (image->memory.may_go && image_is_closing()) {
		sites_are_unsettled = true;
		return -EBUSY;
	}
	is_written = true;
	patch_open(&patch, image->memory.start, image->memory.end);
	r = write_sites(image, &patch, first, end);
	patch_close(&patch);
	image->unwritable = r < 0;
	return r;
}

int sites_settle_all(bool find)
{
	int result = 0;

	sites_are_unsettled = false;
	for (unsigned i = 0; i < site_image_count; i++) {
		struct site_image *image = &site_images[i];
		int r = find ? sites_find(image) : 0;

		if (r == 0)
			r = sites_settle_some(image, 0, image->count);
		if (r == -EBUSY)
			sites_are_unsettled = true;
		if (r < 0 && result == 0)
			result = r;
	}
	synchronize();
	return result;
}

/* --- changes of single sites --- */

void site_change(struct site_image *image, struct site *site, bool on)
{
	site->throttled = !on;
	changes_add(&image->changes, (uint32_t)(site - image->sites),
		    image->count);
}

/* Calls that could not be switched off stay on: their profiler is told, and a later change
 * of the image must not switch them off behind its back. */
static void forget_changed(struct site_image *image)
{
	for (uint32_t i = image->changes.first; i < image->changes.end; i++)
		if (!image->sites[i].off)
			image->sites[i].throttled = 0;
}

int sites_settle_changed(void)
{
	int result = 0;

	for (unsigned i = 0; i < site_image_count; i++) {
		struct site_image *image = &site_images[i];
		int r;

		if (image->changes.end == 0)
			continue;
		r = sites_settle_some(image, image->changes.first,
				      image->changes.end);
		if (r < 0 && r != -EBUSY)
			forget_changed(image);
		changes_clear(&image->changes);
		if (r < 0 && r != -EBUSY && result == 0)
			result = r;
	}
	synchronize();
	return result;
}
