/*
 * Switches the call sites of hooks off and on.  A site is off if all sites are off, if
 * a filter has excluded it, or if a profiler has throttled it.  Each site stores the
 * state of its code, so that the next change completes a change that failed half-way or
 * had to wait.
 *
 * A call may also lead to code that counts it (call_counters.c).  Its distance changes
 * while it is off: the four bytes are then a constant that has no effect.  But a call of
 * another thread that is off meanwhile is not counted.  With several threads, one store
 * changes the distance, which must lie in one line of the cache: processors fetch the old
 * or the new one.  (HotSpot's calls of compiled code depend on this, too.)
 */
#include "dispatch/call_sites.h"

#include "dispatch/call_counters.h"
#include "dispatch/hook_table.h"
#include "dispatch/find_sites.h"
#include "dispatch/patch.h"
#include "dispatch/scan.h"
#include "image/image.h"
#include "os/sys.h"
#include "os/tasks.h"

#include <errno.h>

#include <shim/banned.h>

#define PAGE	    4096u
#define IMAGES_MAX  256
#define BUFFER_SIZE (64u << 10)

static struct site_image images[IMAGES_MAX];
static unsigned image_count;
static bool all_off;
/* shim is detached: all sites are on, whatever profilers want. */
static bool is_detached;
/* The code of an image may differ from the wanted state. */
static bool unsettled;

/* --- images --- */

static struct site_image *find_image(uintptr_t address)
{
	for (unsigned i = 0; i < image_count; i++)
		if (address >= images[i].memory.start &&
		    address < images[i].memory.end)
			return &images[i];
	return NULL;
}

static bool has_slots(const struct call_sites_image *memory)
{
	uintptr_t slot;

	return hook_table_slots(memory->start, memory->end, &slot, 1) > 0;
}

void call_sites_add(const struct call_sites_image *memory)
{
	struct site_image *old = find_image(memory->start);

	if (old && old->memory.start == memory->start &&
	    old->memory.frames == memory->frames) {
		old->memory.end = memory->end;
		old->confirmed = true;
		return;
	}
	call_sites_remove(memory->start, memory->end);
	if (image_count == IMAGES_MAX || !has_slots(memory))
		return;
	images[image_count++] = (struct site_image){ .memory = *memory,
						     .confirmed = true };
	unsettled |= all_off;
}

static void drop_image(struct site_image *image)
{
	if (image->sites)
		sys_unmap(image->sites, image->room * sizeof(*image->sites));
	*image = images[--image_count];
}

void call_sites_remove(uintptr_t start, uintptr_t end)
{
	for (unsigned i = 0; i < image_count;) {
		if (images[i].memory.start < end &&
		    images[i].memory.end > start)
			drop_image(&images[i]);
		else
			i++;
	}
}

void call_sites_fork_begin(void)
{
	for (unsigned i = 0; i < image_count; i++)
		images[i].confirmed = false;
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
	for (unsigned i = 0; i < image_count;) {
		if (images[i].confirmed)
			read_states(&images[i++]);
		else
			drop_image(&images[i]);
	}
	unsettled = true;
}

/* --- changing the code of an image --- */

static unsigned char buffer[BUFFER_SIZE];

/* A range of code that shim writes with one system call. */
struct run {
	uint32_t first, last; /* sites, the last one included */
	uintptr_t start;
	size_t size;
};

static bool wants_off(const struct site *site)
{
	return !is_detached && (all_off || site->filtered || site->throttled);
}

static uintptr_t address_of(const struct site_image *image, uint32_t number)
{
	return image->memory.start + image->sites[number].offset;
}

static int read_code(const struct site_image *image, uintptr_t start,
		     size_t size)
{
	const unsigned char *from = (const unsigned char *)start;
	size_t i = 0;

	if (image->memory.may_go)
		return sys_peek((const void *)start, buffer, size);
	for (; i + 8 <= size; i += 8) {
		__builtin_memcpy(buffer + i, from + i, 8);
		/* Keeps the compiler from calling memcpy: shim's is slow. */
		__asm__ volatile("" ::: "memory");
	}
	for (; i < size; i++)
		buffer[i] = from[i];
	return 0;
}

/* Changes the sites of the run in the buffer.  It leaves bytes that are neither on nor
 * off, such as a debugger's breakpoint. */
static void change_buffer(struct site_image *image, const struct run *run)
{
	for (uint32_t i = run->first; i <= run->last; i++) {
		const struct site *site = &image->sites[i];
		const struct scan_form *form = &scan_forms[site->kind];
		unsigned char *byte = buffer +
				      (address_of(image, i) - run->start);

		if (*byte == form->on || *byte == form->off)
			*byte = wants_off(site) ? form->off : form->on;
	}
}

static void store_states(struct site_image *image, const struct run *run)
{
	for (uint32_t i = run->first; i <= run->last; i++) {
		struct site *site = &image->sites[i];

		image->off -= site->off;
		site->off = buffer[address_of(image, i) - run->start] ==
			    scan_forms[site->kind].off;
		image->off += site->off;
	}
}

static int write_run(struct site_image *image, struct patch *patch,
		     const struct run *run)
{
	int r = read_code(image, run->start, run->size);

	if (r < 0)
		return r;
	change_buffer(image, run);
	r = patch_write(patch, run->start, buffer, run->size);
	if (r == 0)
		store_states(image, run);
	return r;
}

/* Adds a site to the run.  False if a whole page without sites lies between: a write to
 * that page would make the kernel copy it in vain. */
static bool extend_run(struct run *run, uint32_t number, uintptr_t address)
{
	uintptr_t last = run->start + run->size - 1;

	if (run->size == 0 || address / PAGE > last / PAGE + 1 ||
	    address + 1 - run->start > BUFFER_SIZE)
		return false;
	run->last = number;
	run->size = address + 1 - run->start;
	return true;
}

/* The block of a site, of which an image has at most SITE_BLOCKS. */
static uint32_t block_of(const struct site_image *image, uint32_t number)
{
	return number / (image->count / SITE_BLOCKS + 1);
}

/* The first site from @number on that may have changed since the last settle_changed(), if
 * there was any change. */
static uint32_t skip_unchanged(const struct site_image *image, uint32_t number,
			       uint32_t end)
{
	uint32_t size = image->count / SITE_BLOCKS + 1;

	if (image->changed_end == 0)
		return number;
	while (number < end) {
		uint32_t block = number / size;

		if (image->changed_blocks[block / 64] >> block % 64 & 1)
			return number;
		number = (block + 1) * size;
	}
	return end;
}

static int write_sites(struct site_image *image, struct patch *patch,
		       uint32_t first, uint32_t end)
{
	struct run run = { .size = 0 };
	int r = 0;

	for (uint32_t i = skip_unchanged(image, first, end); r == 0 && i < end;
	     i = skip_unchanged(image, i + 1, end)) {
		uintptr_t address;

		if (wants_off(&image->sites[i]) == image->sites[i].off)
			continue;
		address = address_of(image, i);
		if (extend_run(&run, i, address))
			continue;
		if (run.size > 0)
			r = write_run(image, patch, &run);
		run = (struct run){ i, i, address, 1 };
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

/* Writes the wanted state into the code of the sites from @first to @end. */
static int settle_sites(struct site_image *image, uint32_t first, uint32_t end)
{
	struct patch patch;
	int r;

	if (is_settled(image, first, end))
		return 0;
	if (image->memory.may_go && image_is_closing()) {
		unsettled = true;
		return -EBUSY;
	}
	is_written = true;
	patch_open(&patch, image->memory.start, image->memory.end);
	r = write_sites(image, &patch, first, end);
	patch_close(&patch);
	image->unwritable = r < 0;
	return r;
}

/* Writes the wanted state into the code of all images.  @find: also of images that were
 * not scanned. */
static int settle_all(bool find)
{
	int result = 0;

	unsettled = false;
	for (unsigned i = 0; i < image_count; i++) {
		struct site_image *image = &images[i];
		int r = find ? sites_find(image) : 0;

		if (r == 0)
			r = settle_sites(image, 0, image->count);
		if (r == -EBUSY)
			unsettled = true;
		if (r < 0 && result == 0)
			result = r;
	}
	synchronize();
	return result;
}

/* --- interface --- */

int call_sites_switch_all(bool on)
{
	/* All sites are on already, also those of images that were not scanned. */
	if (on && !all_off)
		return 0;
	all_off = !on;
	return is_detached ? 0 : settle_all(all_off);
}

void call_sites_settle(void)
{
	if (unsettled && !image_is_closing())
		settle_all(all_off);
}

/* The index of the first site at or after @offset. */
static uint32_t find_site(const struct site_image *image, uint32_t offset)
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
	uint32_t i = find_site(image, offset);

	if (i == image->count || image->sites[i].offset != offset ||
	    image->sites[i].kind != kind)
		return NULL;
	return &image->sites[i];
}

/* Finds the call that returns to @return_address, and its image.  Returns 0 or -errno. */
static int find_return(uintptr_t return_address, struct site_image **image,
		       struct site **site)
{
	uint32_t end;
	int r;

	*image = find_image(return_address);
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
	int r = find_return(return_address, &image, &site);

	if (r == -ENOENT) {
		r = change_other(return_address, 0, OTHER_FILTER, on);
		return r < 0 ? r : settle_others();
	}
	if (r < 0)
		return r;
	site->filtered = !on;
	i = (uint32_t)(site - image->sites);
	return settle_sites(image, i, i + 1);
}

/* Marks the site, so that the next change of the image includes it. */
static void change_site(struct site_image *image, struct site *site, bool on)
{
	uint32_t i = (uint32_t)(site - image->sites),
		 block = block_of(image, i);

	site->throttled = !on;
	image->changed_blocks[block / 64] |= 1ull << block % 64;
	if (image->changed_end == 0 || i < image->changed)
		image->changed = i;
	if (i >= image->changed_end)
		image->changed_end = i + 1;
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

	if (size > BUFFER_SIZE || read_code(image, base + start, size) < 0)
		return 0;
	for (uint32_t i = 0; i + 7 <= size; i++) {
		int32_t distance;
		uint32_t target;

		if (buffer[i] != 0x48 || buffer[i + 1] != 0x8d ||
		    buffer[i + 2] != 0x3d)
			continue;
		__builtin_memcpy(&distance, buffer + i + 3, sizeof(distance));
		target = start + i + 7 + (uint32_t)distance;
		if (target == found || !call_sites_has(base + target))
			continue;
		if (found)
			return 0;
		found = target;
	}
	return found;
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
	for (uint32_t i = image->parts; i < image->parts_end; i++)
		if (image->sites[i].part_of == whole) {
			change_site(image, &image->sites[i], on);
			count++;
		}
	return count;
}

static int change_jumps(uintptr_t function, bool on)
{
	struct site_image *image = find_image(function);
	uint32_t offset, count;
	int r = image ? sites_find(image) : -ENOENT;

	if (r < 0)
		return r;
	offset = (uint32_t)(function - image->memory.start);
	count = change_parts(image, offset, on);
	for (uint32_t i = find_site(image, offset); i < image->count; i++) {
		struct site *site = &image->sites[i];

		if (site->offset - site->depth != offset)
			break;
		if (!scan_forms[site->kind].jumps)
			continue;
		change_site(image, site, on);
		count++;
	}
	return count > 0 ? 0 : -ENOENT;
}

/* Calls that could not be switched off stay on: their profiler is told, and a later change
 * of the image must not switch them off behind its back. */
static void forget_changed(struct site_image *image)
{
	for (uint32_t i = image->changed; i < image->changed_end; i++)
		if (!image->sites[i].off)
			image->sites[i].throttled = 0;
}

static void forget_blocks(struct site_image *image)
{
	image->changed = image->changed_end = 0;
	for (unsigned i = 0; i < SITE_BLOCKS / 64; i++)
		image->changed_blocks[i] = 0;
}

/* Writes the changes of call_sites_throttle.  An object that is being unloaded is
 * changed later, which is not an error. */
static int settle_changed(void)
{
	int result = 0;

	for (unsigned i = 0; i < image_count; i++) {
		struct site_image *image = &images[i];
		int r;

		if (image->changed_end == 0)
			continue;
		r = settle_sites(image, image->changed, image->changed_end);
		if (r < 0 && r != -EBUSY)
			forget_changed(image);
		forget_blocks(image);
		if (r < 0 && r != -EBUSY && result == 0)
			result = r;
	}
	synchronize();
	return result;
}

/* --- calls that are counted --- */

/* Distances that are being changed; several of one image in turn are written through the
 * same file. */
struct distances {
	struct site_image *image; /* NULL: the patch is not open */
	bool one_store;		  /* of each distance */
	struct patch patch;
};

/* The processors must be synchronized next. */
static void finish_distances(struct distances *distances)
{
	if (distances->image)
		patch_close(&distances->patch);
	sys_sync_cores();
}

#define LINE 64u

static bool is_in_one_line(uintptr_t address)
{
	return (address + 1) / LINE == (address + 4) / LINE;
}

/* Whether the call counts with this distance already. */
static bool has_distance(const struct site_image *image,
			 const struct site *site, uint32_t distance)
{
	return site->counted &&
	       read_code(image, image->memory.start + site->offset + 1,
			 sizeof(distance)) == 0 &&
	       __builtin_memcmp(buffer, &distance, sizeof(distance)) == 0;
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
	if (distances->one_store && !is_in_one_line(address))
		return -ENOTSUP;
	if (site->distance == 0) {
		r = read_code(image, address + 1, sizeof(distance));
		if (r < 0)
			return r;
		__builtin_memcpy(&distance, buffer, sizeof(distance));
		site->distance = distance;
	}
	distance = target ? (uint32_t)(target - (address + 5)) : site->distance;
	if (has_distance(image, site, distance))
		return 0;
	__builtin_memcpy(buffer, &distance, sizeof(distance));
	if (distances->image != image) {
		if (distances->image)
			patch_close(&distances->patch);
		patch_open(&distances->patch, image->memory.start,
			   image->memory.end);
		distances->image = image;
	}
	r = distances->one_store ?
		    patch_store(&distances->patch, address + 1, distance) :
		    patch_write(&distances->patch, address + 1, buffer,
				sizeof(distance));
	if (r == 0)
		site->counted = target != 0;
	return r;
}

static bool find_counted(uintptr_t return_address, struct site_image **image,
			 struct site **site)
{
	return return_address != 0 &&
	       find_return(return_address, image, site) == 0 &&
	       (*site)->counted;
}

/* Switches calls off that are counted, and gives them back their distances. */
static int uncount(const struct shim_hook_call *calls, uint32_t count)
{
	struct distances distances = { .image = NULL };
	struct site_image *image;
	struct site *site;
	bool any = false;
	int result;

	for (uint32_t i = 0; i < count; i++)
		if (find_counted(calls[i].address, &image, &site)) {
			change_site(image, site, false);
			any = true;
		}
	if (!any)
		return 0;
	result = settle_changed();
	for (uint32_t i = 0; i < count; i++)
		if (find_counted(calls[i].address, &image, &site)) {
			int r = change_distance(&distances, image, site, 0);

			if (r < 0 && result == 0)
				result = r;
		}
	finish_distances(&distances);
	return result;
}

static void uncount_all(void)
{
	struct distances distances = { .image = NULL };
	bool any = false;

	for (unsigned i = 0; i < image_count; i++)
		for (uint32_t j = 0; j < images[i].count; j++)
			if (images[i].sites[j].counted) {
				images[i].sites[j].throttled = 1;
				any = true;
			}
	if (!any)
		return;
	settle_all(all_off);
	for (unsigned i = 0; i < image_count; i++)
		for (uint32_t j = 0; j < images[i].count; j++)
			if (images[i].sites[j].counted)
				change_distance(&distances, &images[i],
						&images[i].sites[j], 0);
	finish_distances(&distances);
}

/* Only a call through a stub has a distance to code. */
static int find_countable(const struct shim_counted_call *call,
			  struct site_image **image, struct site **site,
			  uintptr_t *code)
{
	int r = call->address == 0 ? -ENOTSUP :
				     find_return(call->address, image, site);

	if (r < 0)
		return r;
	if ((*site)->kind != SCAN_CALL)
		return -ENOTSUP;
	*code = call_counter_code((*image)->memory.start, (*image)->memory.end,
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
			change_site(image, site, on);
}

int call_sites_count(struct shim_counted_call *calls, uint32_t count)
{
	int result, r;

	if (!tasks_are_one()) {
		result = change_distances(calls, count, true);
	} else {
		switch_countable(calls, count, false);
		/* A call that is still on is not changed. */
		settle_changed();
		result = change_distances(calls, count, false);
	}
	switch_countable(calls, count, true);
	r = settle_changed();
	return result < 0 ? result : r;
}

/* --- calls that are off for a profiler --- */

int call_sites_throttle(const struct shim_hook_call *calls, uint32_t count,
			bool on)
{
	int result = on ? uncount(calls, count) : 0, r;

	for (uint32_t i = 0; i < count; i++) {
		struct site_image *image;
		struct site *site;

		if (calls[i].address == 0) {
			r = change_jumps(calls[i].function, on);
		} else {
			r = find_return(calls[i].address, &image, &site);
			if (r == 0)
				change_site(image, site, on);
		}
		if (r == -ENOENT)
			r = change_other(calls[i].address, calls[i].function,
					 OTHER_THROTTLE, on);
		if (r < 0 && result == 0)
			result = r;
	}
	r = settle_changed();
	if (result == 0)
		result = r;
	r = settle_others();
	return result < 0 ? result : r;
}

int call_sites_unthrottle_all(void)
{
	bool any = false;

	uncount_all();
	NOTIFY(other_calls_reset, OTHER_THROTTLE);
	settle_others();
	for (unsigned i = 0; i < image_count; i++)
		for (uint32_t j = 0; j < images[i].count; j++) {
			any |= images[i].sites[j].throttled;
			images[i].sites[j].throttled = 0;
		}
	return any ? settle_all(all_off) : 0;
}

bool call_sites_has(uintptr_t function)
{
	struct site_image *image = find_image(function);
	uint32_t offset, i;

	if (!image || sites_find(image) < 0)
		return false;
	offset = (uint32_t)(function - image->memory.start);
	i = find_site(image, offset);
	return i < image->count &&
	       image->sites[i].offset - image->sites[i].depth == offset;
}

bool call_sites_is_hook(uintptr_t address)
{
	struct site_image *image;
	struct site *site;

	return find_return(address, &image, &site) == 0;
}

int call_sites_switch_jumps(uintptr_t function, bool on)
{
	struct site_image *image = find_image(function);
	uint32_t offset, first, i;
	int r, count = 0, changed = 0;

	if (!image)
		return -ENOENT;
	r = sites_find(image);
	if (r < 0)
		return r;
	offset = (uint32_t)(function - image->memory.start);
	first = find_site(image, offset);
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
	r = settle_sites(image, first, i);
	if (r < 0)
		return r;
	if (count > 0 && changed == 0)
		return -EALREADY;
	return count > 0 ? count : -ENOENT;
}

int call_sites_unfilter_all(void)
{
	for (unsigned i = 0; i < image_count; i++)
		for (uint32_t j = 0; j < images[i].count; j++)
			images[i].sites[j].filtered = 0;
	NOTIFY(other_calls_reset, OTHER_FILTER);
	settle_others();
	return settle_all(all_off);
}

int call_sites_detach(bool begins)
{
	if (begins)
		uncount_all();
	is_detached = begins;
	return settle_all(!begins && all_off);
}

struct call_sites_state sites_state(void)
{
	struct call_sites_state state = { .images = image_count };

	for (unsigned i = 0; i < image_count; i++) {
		const struct site_image *image = &images[i];

		state.sites += image->count;
		state.rejected += image->rejected;
		state.images_unwritable += image->unwritable;
		state.off += image->off;
	}
	NOTIFY(other_calls_counted, &state);
	return state;
}
