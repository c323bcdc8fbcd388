/*
 * Finds the call sites of hooks and switches them off and on.  A site is off if all
 * are, if it was filtered, or if a profiler has throttled it.  Each site stores the
 * state of its code, so that the next change completes one that failed half-way or had
 * to wait.
 */
#include "dispatch/call_sites.h"

#include "dispatch/hook_table.h"
#include "dispatch/patch.h"
#include "dispatch/scan.h"
#include "image/image.h"
#include "os/maps.h"
#include "os/sys.h"

#include <errno.h>

#include <shim/banned.h>

#define PAGE	    4096u
#define IMAGES_MAX  256
#define TEXTS_MAX   8
#define BUFFER_SIZE (64u << 10)

struct site {
	uint32_t offset;     /* from the start of the image */
	uint32_t depth : 27; /* from the start of its function */
	uint32_t kind : 2;   /* enum scan_kind */
	uint32_t filtered : 1;
	uint32_t throttled : 1;
	uint32_t off : 1; /* the state of its code */
	/* A jump that ends a part which the compiler split off: the offset of the
	 * whole function; else 0. */
	uint32_t part_of;
};

struct image {
	struct call_sites_image memory;
	struct site *sites;
	uint32_t count, room;
	uint32_t off;		       /* number of sites whose code is off */
	uint32_t changed, changed_end; /* sites of call_sites_throttle */
	uint32_t parts, parts_end; /* sites with part_of lie between these */
	bool has_parts;		   /* they were looked for */
	uint32_t rejected;
	uint32_t end; /* offset behind the last site found */
	bool scanned;
	bool unwritable;
	bool confirmed; /* call_sites_add has named it since the fork */
};

static struct image images[IMAGES_MAX];
static unsigned image_count;
static bool all_off;
/* The code of some image may differ from the wanted state. */
static bool unsettled;

/* --- images --- */

static struct image *find_image(uintptr_t address)
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
	struct image *old = find_image(memory->start);

	if (old && old->memory.start == memory->start &&
	    old->memory.frames == memory->frames) {
		old->memory.end = memory->end;
		old->confirmed = true;
		return;
	}
	call_sites_remove(memory->start, memory->end);
	if (image_count == IMAGES_MAX || !has_slots(memory))
		return;
	images[image_count++] = (struct image){ .memory = *memory,
						.confirmed = true };
	unsettled |= all_off;
}

static void forget(struct image *image)
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
			forget(&images[i]);
		else
			i++;
	}
}

void call_sites_fork_begin(void)
{
	for (unsigned i = 0; i < image_count; i++)
		images[i].confirmed = false;
}

/* Reads the state of each site from its code: another thread of the parent may have
 * been changing both. */
static void look_again(struct image *image)
{
	image->off = 0;
	for (uint32_t i = 0; i < image->count; i++) {
		struct site *site = &image->sites[i];
		const unsigned char *byte =
			(const unsigned char *)(image->memory.start +
						site->offset);

		site->off = *byte == scan_forms[site->kind].off;
		image->off += site->off;
	}
}

void call_sites_fork_end(void)
{
	for (unsigned i = 0; i < image_count;) {
		if (images[i].confirmed)
			look_again(&images[i++]);
		else
			forget(&images[i]);
	}
	unsettled = true;
}

/* --- finding the sites of an image --- */

/* The mappings of an image, collected by maps_read. */
struct texts {
	const struct image *image;
	struct view text[TEXTS_MAX];
	unsigned count;
	struct view frames; /* the mapping that holds the index */
	bool hidden;	    /* it has code that shim must not change */
};

/* The part of a mapping in the image: the kernel merges adjacent mappings. */
static struct view part_of(const struct map *map,
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

static bool note_map(const struct map *map, void *argument)
{
	struct texts *texts = argument;
	const struct call_sites_image *memory = &texts->image->memory;
	struct view view = part_of(map, memory);

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

/* An image that may be unloaded is scanned in a copy. */
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

static int make_room(struct image *image, uint32_t room)
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
	/* In this order, a child that is forked meanwhile has valid sites. */
	image->sites = sites;
	image->room = room;
	if (before)
		sys_unmap(before, size_before);
	return 0;
}

struct search {
	struct image *image;
	struct frames frames;
	int error;
};

/* Of two candidates that overlap, at least one is no call: both are rejected. */
static bool overlaps(struct image *image, uint32_t offset, uint32_t end)
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

static bool note_site(uintptr_t address, enum scan_kind kind, void *argument)
{
	struct search *search = argument;
	struct image *image = search->image;
	uint32_t offset = (uint32_t)(address - image->memory.start);
	uint32_t size = scan_forms[kind].size;
	struct frame_range function;

	if (overlaps(image, offset, offset + size) ||
	    !fde_find(&search->frames, address, &function) ||
	    function.end - address < size ||
	    address - function.start >= 1u << 27) {
		image->rejected++;
		return true;
	}
	if (image->count == image->room) {
		search->error = make_room(image, image->room * 2);
		if (search->error < 0)
			return false;
	}
	image->sites[image->count++] = (struct site){
		.offset = offset,
		.depth = (uint32_t)(address - function.start),
		.kind = kind,
	};
	return true;
}

static int scan_texts(struct image *image, const struct texts *texts)
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
	search.error = make_room(image, room);
	for (unsigned i = 0; search.error == 0 && i < texts->count; i++)
		scan_calls(&scan, &texts->text[i], note_site, &search);
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

static int scan_image(struct image *image)
{
	struct texts texts = { .image = image };
	int r = maps_read(note_map, &texts);

	if (r < 0)
		return r;
	if (texts.hidden || texts.count == 0 || texts.frames.size == 0 ||
	    image->memory.end - image->memory.start > UINT32_MAX)
		return -ENOEXEC;
	if (image->memory.may_go)
		r = copy_texts(&texts);
	if (r == 0)
		r = scan_texts(image, &texts);
	for (unsigned i = 0; i < texts.count; i++)
		drop_view(&texts.text[i]);
	drop_view(&texts.frames);
	return r;
}

/* Scans an image at its first use.  A failure for lack of memory or descriptors is
 * not stored: the next call tries again. */
static int learn(struct image *image)
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

/* --- changing the code of an image --- */

static unsigned char buffer[BUFFER_SIZE];

/* A range of code that is written at once. */
struct run {
	uint32_t first, last; /* sites, the last one included */
	uintptr_t start;
	size_t size;
};

static bool wants_off(const struct site *site)
{
	return all_off || site->filtered || site->throttled;
}

static uintptr_t address_of(const struct image *image, uint32_t number)
{
	return image->memory.start + image->sites[number].offset;
}

static int read_code(const struct image *image, uintptr_t start, size_t size)
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

/* Changes the sites of the run in the buffer.  Bytes that are neither on nor off, such
 * as a debugger's breakpoint, stay. */
static void change_buffer(struct image *image, const struct run *run)
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

static void note_buffer(struct image *image, const struct run *run)
{
	for (uint32_t i = run->first; i <= run->last; i++) {
		struct site *site = &image->sites[i];

		image->off -= site->off;
		site->off = buffer[address_of(image, i) - run->start] ==
			    scan_forms[site->kind].off;
		image->off += site->off;
	}
}

static int write_run(struct image *image, struct patch *patch,
		     const struct run *run)
{
	int r = read_code(image, run->start, run->size);

	if (r < 0)
		return r;
	change_buffer(image, run);
	r = patch_write(patch, run->start, buffer, run->size);
	if (r == 0)
		note_buffer(image, run);
	return r;
}

/* Adds a site to the run, unless a whole page without sites lies between: writing it
 * would copy the page in vain. */
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

static int write_sites(struct image *image, struct patch *patch, uint32_t first,
		       uint32_t end)
{
	struct run run = { .size = 0 };
	int r = 0;

	for (uint32_t i = first; r == 0 && i < end; i++) {
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

static bool is_settled(const struct image *image, uint32_t first, uint32_t end)
{
	for (uint32_t i = first; i < end; i++)
		if (wants_off(&image->sites[i]) != image->sites[i].off)
			return false;
	return true;
}

/* Writes the wanted state into the code of the sites from @first to @end. */
static int settle_sites(struct image *image, uint32_t first, uint32_t end)
{
	struct patch patch;
	int r;

	if (is_settled(image, first, end))
		return 0;
	if (image->memory.may_go && image_is_closing()) {
		unsettled = true;
		return -EBUSY;
	}
	patch_open(&patch, image->memory.start, image->memory.end);
	r = write_sites(image, &patch, first, end);
	patch_close(&patch);
	image->unwritable = r < 0;
	return r;
}

/* @find: also scans images that were not scanned yet. */
static int settle_all(bool find)
{
	int result = 0;

	unsettled = false;
	for (unsigned i = 0; i < image_count; i++) {
		struct image *image = &images[i];
		int r = find ? learn(image) : 0;

		if (r == 0)
			r = settle_sites(image, 0, image->count);
		if (r == -EBUSY)
			unsettled = true;
		if (r < 0 && result == 0)
			result = r;
	}
	/* From now on no thread executes the old code. */
	sys_sync_cores();
	return result;
}

/* --- interface --- */

int call_sites_switch_all(bool on)
{
	/* Sites of images that were not scanned are on. */
	if (on && !all_off)
		return 0;
	all_off = !on;
	return settle_all(all_off);
}

void call_sites_settle(void)
{
	if (unsettled && !image_is_closing())
		settle_all(all_off);
}

/* The first site at @offset or behind it. */
static uint32_t find_site(const struct image *image, uint32_t offset)
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

static struct site *find_call(const struct image *image, uint32_t end,
			      enum scan_kind kind)
{
	uint32_t offset = end - scan_forms[kind].size;
	uint32_t i = find_site(image, offset);

	if (i == image->count || image->sites[i].offset != offset ||
	    image->sites[i].kind != kind)
		return NULL;
	return &image->sites[i];
}

/* The call that returns to @return_address, and its *@image. */
static int find_return(uintptr_t return_address, struct image **image,
		       struct site **site)
{
	uint32_t end;
	int r;

	*image = find_image(return_address);
	if (!*image)
		return -ENOENT;
	r = learn(*image);
	if (r < 0)
		return r;
	end = (uint32_t)(return_address - (*image)->memory.start);
	*site = find_call(*image, end, SCAN_CALL);
	if (!*site)
		*site = find_call(*image, end, SCAN_CALL_SLOT);
	return *site ? 0 : -ENOENT;
}

/* Without synchronization of the processors: a thread may make one more call. */
int call_sites_switch_call(uintptr_t return_address, bool on)
{
	struct image *image;
	struct site *site;
	uint32_t i;
	int r = find_return(return_address, &image, &site);

	if (r < 0)
		return r;
	site->filtered = !on;
	i = (uint32_t)(site - image->sites);
	return settle_sites(image, i, i + 1);
}

/* The next change of the image includes the site. */
static void change_site(struct image *image, struct site *site, bool on)
{
	uint32_t i = (uint32_t)(site - image->sites);

	site->throttled = !on;
	if (image->changed_end == 0 || i < image->changed)
		image->changed = i;
	if (i >= image->changed_end)
		image->changed_end = i + 1;
}

/*
 * The function whose parts has the code from @start to @end: the code loads its address
 * for the leave hook (lea function(%rip), %rdi).  0 if the code names several functions
 * with hooks: then others were inlined, and the jump may be theirs.
 */
static uint32_t find_whole(const struct image *image, uint32_t start,
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

static void find_parts(struct image *image)
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

static uint32_t change_parts(struct image *image, uint32_t whole, bool on)
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
	struct image *image = find_image(function);
	uint32_t offset, count;
	int r = image ? learn(image) : -ENOENT;

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

/* An object that is being unloaded is changed later: that is no error. */
static int settle_changed(void)
{
	int result = 0;

	for (unsigned i = 0; i < image_count; i++) {
		struct image *image = &images[i];
		int r;

		if (image->changed_end == 0)
			continue;
		r = settle_sites(image, image->changed, image->changed_end);
		image->changed = image->changed_end = 0;
		if (r < 0 && r != -EBUSY && result == 0)
			result = r;
	}
	sys_sync_cores();
	return result;
}

int call_sites_throttle(const struct shim_hook_call *calls, uint32_t count,
			bool on)
{
	int result = 0, r;

	for (uint32_t i = 0; i < count; i++) {
		struct image *image;
		struct site *site;

		if (calls[i].address == 0) {
			r = change_jumps(calls[i].function, on);
		} else {
			r = find_return(calls[i].address, &image, &site);
			if (r == 0)
				change_site(image, site, on);
		}
		if (r < 0 && result == 0)
			result = r;
	}
	r = settle_changed();
	return result < 0 ? result : r;
}

int call_sites_unthrottle_all(void)
{
	bool any = false;

	for (unsigned i = 0; i < image_count; i++)
		for (uint32_t j = 0; j < images[i].count; j++) {
			any |= images[i].sites[j].throttled;
			images[i].sites[j].throttled = 0;
		}
	return any ? settle_all(all_off) : 0;
}

bool call_sites_has(uintptr_t function)
{
	struct image *image = find_image(function);
	uint32_t offset, i;

	if (!image || learn(image) < 0)
		return false;
	offset = (uint32_t)(function - image->memory.start);
	i = find_site(image, offset);
	return i < image->count &&
	       image->sites[i].offset - image->sites[i].depth == offset;
}

int call_sites_switch_jumps(uintptr_t function, bool on)
{
	struct image *image = find_image(function);
	uint32_t offset, first, i;
	int r, count = 0;

	if (!image)
		return -ENOENT;
	r = learn(image);
	if (r < 0)
		return r;
	offset = (uint32_t)(function - image->memory.start);
	first = find_site(image, offset);
	for (i = first; i < image->count; i++) {
		struct site *site = &image->sites[i];

		if (site->offset - site->depth != offset)
			break;
		if (scan_forms[site->kind].jumps) {
			site->filtered = !on;
			count++;
		}
	}
	r = settle_sites(image, first, i);
	if (r < 0)
		return r;
	return count > 0 ? count : -ENOENT;
}

int call_sites_unfilter_all(void)
{
	for (unsigned i = 0; i < image_count; i++)
		for (uint32_t j = 0; j < images[i].count; j++)
			images[i].sites[j].filtered = 0;
	return settle_all(all_off);
}

struct call_sites_state sites_state(void)
{
	struct call_sites_state state = { .images = image_count };

	for (unsigned i = 0; i < image_count; i++) {
		const struct image *image = &images[i];

		state.sites += image->count;
		state.rejected += image->rejected;
		state.images_unwritable += image->unwritable;
		state.off += image->off;
	}
	return state;
}
