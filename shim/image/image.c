/*
 * Finds images in /proc/self/maps.  That file is correct in a constructor, in a signal
 * handler and under dlmopen, and needs no lock of the loader.  An image is a run of
 * mappings of one file that begins at offset 0 and contains code.
 */
#include "image/image.h"

#include "image/image_facts.h"
#include "image/image_file.h"
#include "image/image_table.h"
#include "image/image_work.h"
#include "image/symbols.h"
#include "os/lookup.h"
#include "os/maps.h"
#include "os/pages.h"
#include "os/sys.h"
#include "os/text.h"
#include "runtime/events.h"
#include "runtime/log.h"
#include "runtime/state.h"
#include "runtime/thread.h"

#include <errno.h>
#include <shim/info.h>
#include <shim/record.h>
#include <sys/auxv.h>

#include <shim/banned.h>

#define IMAGES_MAX 4096
#define CHUNK	   32
#define GONE_MAX   256
#define INDEX_BITS 16

/* Entries are never unmapped, so that shim can check a stale id. */
static struct image_entry *chunks[IMAGES_MAX / CHUNK];
static uint32_t image_count;
static uint32_t scans;
static uint32_t generations;
static bool is_unseen;	/* an object was opened without a scan */
static bool is_walking; /* the scan is for an unwinder */
static bool is_early;	/* the scan may have interrupted any code */
static bool has_early;	/* only early scans have found some images */

/* The list that readers walk.  shim replaces it as a whole. */
struct range {
	uintptr_t low, high;
};

struct list {
	struct list *older; /* the next list that waits to be unmapped */
	size_t size;	    /* of this memory */
	uint32_t count, gone_count;
	struct range *gone;
	struct image_entry *images[];
};

static struct list *list;
static struct list *old_lists;
static bool list_is_old;
static uint32_t readers;

/* Ranges of unloaded images.  When the array is full, the last range is extended. */
static struct range unloaded_ranges[GONE_MAX];
static uint32_t gone_count;

/* The run of mappings being read. */
static struct {
	struct image_entry image;
	bool has_code;
	char path[IMAGE_PATH_SIZE];
} current_run;

/* --- for readers --- */

struct image_entry *image_at(uint32_t index)
{
	return &chunks[index / CHUNK][index % CHUNK];
}

uint32_t image_entries(void)
{
	return image_count;
}

void image_pin(void)
{
	__atomic_add_fetch(&readers, 1, __ATOMIC_SEQ_CST);
}

void image_unpin(void)
{
	__atomic_sub_fetch(&readers, 1, __ATOMIC_RELEASE);
}

/* The index of the last image that begins at or below @address, plus 1. */
static uint32_t find_below(const struct list *l, uintptr_t address)
{
	uint32_t low = 0, high = l->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (l->images[middle]->start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool is_loaded(const struct image_entry *image)
{
	return __atomic_load_n(&image->id, __ATOMIC_ACQUIRE) != 0;
}

bool image_is_ours(uintptr_t address)
{
	static uintptr_t low, high;
	struct image_entry *image;

	if (__atomic_load_n(&high, __ATOMIC_ACQUIRE) == 0) {
		image_pin();
		image = image_find((uintptr_t)&image_is_ours);
		if (image) {
			low = image->start;
			__atomic_store_n(&high, image->end, __ATOMIC_RELEASE);
		}
		image_unpin();
	}
	return address - low < high - low;
}

struct image_entry *image_find(uintptr_t address)
{
	const struct list *l = __atomic_load_n(&list, __ATOMIC_SEQ_CST);
	uint32_t i = l ? find_below(l, address) : 0;

	/* An unloaded image may still be in the list, after the image that was loaded at
	 * its addresses. */
	for (; i > 0; i--) {
		struct image_entry *image = l->images[i - 1];

		if (!is_loaded(image))
			continue;
		return address < __atomic_load_n(&image->end,
						 __ATOMIC_RELAXED) ?
			       image :
			       NULL;
	}
	return NULL;
}

bool image_was_at(uintptr_t address)
{
	const struct list *l = __atomic_load_n(&list, __ATOMIC_SEQ_CST);

	for (uint32_t i = 0; l && i < l->gone_count; i++)
		if (address >= l->gone[i].low && address < l->gone[i].high)
			return true;
	return false;
}

struct image_entry *image_get(shim_image id, bool *has_been)
{
	uint32_t index = id & ((1u << INDEX_BITS) - 1);
	struct image_entry *image;

	*has_been = false;
	if (index >= __atomic_load_n(&image_count, __ATOMIC_ACQUIRE))
		return NULL;
	image = image_at(index);
	*has_been = id >> INDEX_BITS != 0 &&
		    id >> INDEX_BITS <=
			    __atomic_load_n(&image->made, __ATOMIC_ACQUIRE);
	return __atomic_load_n(&image->id, __ATOMIC_SEQ_CST) == id &&
			       *has_been ?
		       image :
		       NULL;
}

uint32_t image_list(struct image_entry *const **images)
{
	const struct list *l = __atomic_load_n(&list, __ATOMIC_SEQ_CST);

	*images = l ? l->images : NULL;
	return l ? l->count : 0;
}

/* --- the list --- */

/* A reader that begins later finds the new list, and no id of an unloaded image. */
void image_reclaim(void)
{
	if (list_is_old || __atomic_load_n(&readers, __ATOMIC_SEQ_CST) != 0)
		return;
	while (old_lists) {
		struct list *older = old_lists->older;

		sys_unmap(old_lists, old_lists->size);
		old_lists = older;
	}
	for (uint32_t i = 0; i < image_count; i++) {
		struct image_entry *image = image_at(i);

		if (image->status != IMAGE_GONE)
			continue;
		symbols_free(image);
		if (image->unload_notice == 0)
			image->status = IMAGE_FREE;
	}
}

static void fill_list(struct list *l)
{
	for (uint32_t i = 0; i < image_count; i++) {
		struct image_entry *image = image_at(i);
		uint32_t place = l->count;

		if (image->status != IMAGE_LOADED)
			continue;
		while (place > 0 &&
		       l->images[place - 1]->start > image->start) {
			l->images[place] = l->images[place - 1];
			place--;
		}
		l->images[place] = image;
		l->count++;
	}
	l->gone = (struct range *)&l->images[image_count];
	for (uint32_t i = 0; i < gone_count; i++)
		l->gone[i] = unloaded_ranges[i];
	l->gone_count = gone_count;
}

static void publish_list(void)
{
	size_t size = sizeof(struct list) + image_count * sizeof(void *) +
		      gone_count * sizeof(struct range);
	void *memory;
	struct list *l;

	if (sys_map(size, &memory) < 0)
		return;
	l = memory;
	l->size = size;
	fill_list(l);
	if (list) {
		list->older = old_lists;
		old_lists = list;
	}
	__atomic_store_n(&list, l, __ATOMIC_SEQ_CST);
	list_is_old = false;
}

static void note_gone(uintptr_t low, uintptr_t high)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < gone_count; i++) {
		if (unloaded_ranges[i].high < low ||
		    unloaded_ranges[i].low > high) {
			unloaded_ranges[kept++] = unloaded_ranges[i];
			continue;
		}
		low = unloaded_ranges[i].low < low ? unloaded_ranges[i].low :
						     low;
		high = unloaded_ranges[i].high > high ?
			       unloaded_ranges[i].high :
			       high;
	}
	gone_count = kept;
	if (gone_count == GONE_MAX) {
		struct range *last = &unloaded_ranges[--gone_count];

		low = last->low < low ? last->low : low;
		high = last->high > high ? last->high : high;
	}
	unloaded_ranges[gone_count++] = (struct range){ low, high };
}

/* --- finding the difference --- */

static struct image_entry *find_loaded(const struct image_entry *like)
{
	for (uint32_t i = 0; i < image_count; i++) {
		struct image_entry *image = image_at(i);

		if (image->status == IMAGE_LOADED &&
		    image->start == like->start &&
		    image->inode == like->inode &&
		    image->device == like->device)
			return image;
	}
	return NULL;
}

static struct image_entry *add_entry(void)
{
	struct image_entry *image;
	void *memory;

	if (image_count == IMAGES_MAX)
		return NULL;
	if (image_count % CHUNK == 0) {
		if (sys_map(CHUNK * sizeof(struct image_entry), &memory) < 0)
			return NULL;
		chunks[image_count / CHUNK] = memory;
	}
	image = image_at(image_count);
	image->index = image_count;
	__atomic_store_n(&image_count, image_count + 1, __ATOMIC_RELEASE);
	return image;
}

/* Reuses an entry whose image_unloaded is pending, because the safe moment to raise it
 * may never come. */
static struct image_entry *drop_notice(void)
{
	if (list_is_old || __atomic_load_n(&readers, __ATOMIC_SEQ_CST) != 0)
		return NULL;
	for (uint32_t i = 0; i < image_count; i++) {
		if (image_at(i)->status == IMAGE_GONE) {
			symbols_free(image_at(i));
			image_at(i)->unload_notice = 0;
			return image_at(i);
		}
	}
	return NULL;
}

static struct image_entry *find_free(void)
{
	struct image_entry *image;

	for (uint32_t i = 0; i < image_count; i++)
		if (image_at(i)->status == IMAGE_FREE)
			return image_at(i);
	image = add_entry();
	return image ? image : drop_notice();
}

/* libc is asked only once, before functions of it can have marks: a hook must not run while
 * images are added. */
static uintptr_t program_headers(void)
{
	static uintptr_t cached;

	if (cached == 0)
		cached = getauxval(AT_PHDR);
	return cached;
}

static struct image_entry *add_image(const struct image_facts *facts,
				     const char *path)
{
	struct image_entry *image = find_free();
	struct text text;

	if (!image) {
		image_file_lose();
		return NULL;
	}
	image->start = current_run.image.start;
	image->end = current_run.image.end;
	image->device = current_run.image.device;
	image->inode = current_run.image.inode;
	image->bias = facts->bias;
	image->flags = path[0] == '/' ? SHIM_IMAGE_DISK : SHIM_IMAGE_DYNAMIC;
	if (scans > 1)
		image->flags |= SHIM_IMAGE_COLLECTIBLE;
	if (program_headers() - image->start < image->end - image->start)
		image->flags |= SHIM_IMAGE_PROGRAM;
	image->build_id_size = facts->build_id_size;
	for (uint32_t i = 0; i < facts->build_id_size; i++)
		image->build_id[i] = facts->build_id[i];
	text_init(&text, image->path, sizeof(image->path));
	text_add(&text, path);
	image->path_size = (uint32_t)text.length + 1;
	image->scan = scans;
	image->status = IMAGE_LOADED;
	image->symbols = NULL;
	image->has_hooks = image->is_looked_at = image->is_opened = false;
	__atomic_store_n(&image->is_early, is_early, __ATOMIC_RELAXED);
	if (is_early)
		__atomic_store_n(&has_early, true, __ATOMIC_RELEASE);
	image->load_notice = image_next_notice();
	image->came = image->load_notice;
	image->unload_notice = 0;
	image_file_add(image);
	if (symbols_are_enabled())
		symbols_read(image);
	__atomic_store_n(&image->made, image->made + 1, __ATOMIC_RELEASE);
	__atomic_store_n(&image->id, image->made << INDEX_BITS | image->index,
			 __ATOMIC_SEQ_CST);
	list_is_old = true;
	return image;
}

static void end_run(void)
{
	struct image_entry *image;
	struct image_facts facts;
	bool may_go;

	if (!current_run.has_code)
		return;
	current_run.has_code = false;
	image = find_loaded(&current_run.image);
	if (image) {
		image->scan = scans;
		__atomic_store_n(&image->end, current_run.image.end,
				 __ATOMIC_RELAXED);
		return;
	}
	if (!image_read_facts(current_run.image.start, &facts))
		return;
	image = add_image(&facts, current_run.path);
	may_go = scans > 1 ||
		 (lookup_was_attached() && !lookup_stays(facts.dynamic));
	if (image) {
		image->frames = facts.frames;
		image->is_of_go = facts.is_of_go;
		image->may_go = may_go;
	}
	NOTIFY(image_came, image, &facts, may_go);
}

/* A mapping of offset 0 begins an image.  With lld, a segment directly after the last
 * segment may map the first page again: then it belongs to the same image. */
static bool begins_image(const struct map *map)
{
	if (current_run.image.inode != map->inode ||
	    current_run.image.device != map->device)
		return true;
	if (map->offset != 0)
		return false;
	return map->start != current_run.image.end ||
	       map->start - current_run.image.start >=
		       image_read_span(current_run.image.start);
}

static bool add_mapping(const struct map *map, void *unused)
{
	struct text path;

	(void)unused;
	if (map->path[0] != '/' && !text_equal(map->path, "[vdso]")) {
		/* Anonymous memory, such as .bss, may lie between the mappings of an
		 * image.  Only another file or a new offset 0 ends the run. */
		return true;
	}
	if (begins_image(map)) {
		end_run();
		current_run.image.start = map->start;
		current_run.image.device = map->device;
		current_run.image.inode = map->inode;
		text_init(&path, current_run.path, sizeof(current_run.path));
		text_add(&path, map->path);
		if (map->offset != 0)
			current_run.image.inode = ~0ull; /* no image */
	}
	current_run.image.end = map->end;
	if (map->executable && current_run.image.inode != ~0ull)
		current_run.has_code = true;
	return true;
}

static void unload_image(struct image_entry *image)
{
	uint32_t generation = ++generations;

	if (generation > SHIM_GENERATION_MAX)
		generation = SHIM_GENERATION_MAX;
	image->generation = generation;
	image_file_end(image);
	NOTIFY(image_went, image->start, image->end);
	/* Built-in profilers may be called under the lock.  They must get the event
	 * before another image uses the address. */
	RAISE_TO(AUDIENCE_BUILTIN, image_unloaded, image->start, image->end,
		 generation);
	image->load_notice = 0;
	image->unload_notice = image_next_notice();
	image->status = IMAGE_GONE;
	__atomic_store_n(&image->id, 0, __ATOMIC_SEQ_CST);
	note_gone(image->start, image->end);
	list_is_old = true;
}

struct description {
	uintptr_t address;
	struct image_entry *entry;
	bool is_found;
};

static bool describe_map(const struct map *map, void *argument)
{
	struct description *wanted = argument;
	struct image_entry *entry = wanted->entry;
	struct text path;

	if (map->path[0] != '/')
		return true;
	if (map->offset == 0 &&
	    (map->inode != entry->inode || map->device != entry->device ||
	     map->start != entry->end)) {
		entry->start = map->start;
		entry->device = map->device;
		entry->inode = map->inode;
		text_init(&path, entry->path, sizeof(entry->path));
		text_add(&path, map->path);
		entry->path_size = (uint32_t)path.length + 1;
	}
	entry->end = map->end;
	wanted->is_found = wanted->address >= map->start &&
			   wanted->address < map->end &&
			   map->inode == entry->inode &&
			   map->device == entry->device;
	return !wanted->is_found;
}

int image_describe(uintptr_t address, struct image_entry *entry)
{
	struct description wanted = { .address = address, .entry = entry };
	struct image_facts facts;
	int r;

	ASSERT_LOCKED();
	*entry = (struct image_entry){ .flags = SHIM_IMAGE_DISK };
	r = maps_read(describe_map, &wanted);
	if (r < 0)
		return r;
	if (!wanted.is_found || !image_read_facts(entry->start, &facts))
		return -ENOENT;
	entry->end = entry->start + image_read_span(entry->start);
	entry->bias = facts.bias;
	entry->is_of_go = facts.is_of_go;
	entry->build_id_size = facts.build_id_size;
	for (uint32_t i = 0; i < facts.build_id_size; i++)
		entry->build_id[i] = facts.build_id[i];
	return 0;
}

/* Whether the calling thread is in a signal handler of shim. */
static bool is_in_handler(void)
{
	const struct thread *self = thread_current;

	return self && (self->sample_context || (self->state & THREAD_SIGNAL));
}

static void begin_scan(void)
{
	ASSERT_LOCKED();
	is_early = is_walking || is_in_handler();
	/* An object that was opened unseen needs a scan that is not early, too. */
	if (!is_early)
		__atomic_store_n(&is_unseen, false, __ATOMIC_RELEASE);
	if (state_get() != STATE_OFF && !image_file_is_open() &&
	    image_file_open() < 0 && image_count == 0)
		log_line("%s", "the report cannot name functions and shows "
			       "their addresses");
	scans++;
	current_run.has_code = false;
	current_run.image.inode = ~0ull;
}

static void forget_early(void)
{
	for (uint32_t i = 0; i < image_count; i++)
		__atomic_store_n(&image_at(i)->is_early, false,
				 __ATOMIC_RELAXED);
	__atomic_store_n(&has_early, false, __ATOMIC_RELEASE);
}

static void finish_scan(void)
{
	if (!is_early && has_early)
		forget_early();
	/* Subscribers look images up. */
	if (list_is_old)
		publish_list();
	NOTIFY(images_scanned);
	pages_drop();
	image_reclaim();
}

static int scan_all(void)
{
	int r;

	begin_scan();
	r = maps_read(add_mapping, NULL);
	if (r < 0)
		return r;
	end_run();
	for (uint32_t i = 0; i < image_count; i++)
		if (image_at(i)->status == IMAGE_LOADED &&
		    image_at(i)->scan != scans)
			unload_image(image_at(i));
	finish_scan();
	return 0;
}

int image_scan(void)
{
	int r;

	image_work_begins();
	r = scan_all();
	image_work_ends();
	return r;
}

bool image_lacks_memory(void)
{
	ASSERT_LOCKED();
	return list_is_old;
}

void image_forked(void)
{
	int r;

	image_file_open();
	for (uint32_t i = 0; i < image_count; i++) {
		image_at(i)->record = NULL;
		if (image_at(i)->status == IMAGE_LOADED)
			image_file_add(image_at(i));
	}
	NOTIFY(images_fork);
	r = image_scan();
	for (uint32_t i = 0; r == 0 && i < image_count; i++)
		if (image_at(i)->status == IMAGE_LOADED)
			NOTIFY(image_forked_as_well, image_at(i));
	NOTIFY(images_forked, r == 0);
}

int image_renew(void)
{
	int r = image_file_open();

	ASSERT_LOCKED();
	for (uint32_t i = 0; i < image_count; i++) {
		image_at(i)->record = NULL;
		if (image_at(i)->status == IMAGE_LOADED)
			image_file_add(image_at(i));
	}
	return r < 0 ? r : image_scan();
}

bool image_scan_is_early(void)
{
	ASSERT_LOCKED();
	return is_early;
}

bool image_has_early(void)
{
	return __atomic_load_n(&has_early, __ATOMIC_ACQUIRE);
}

/* --- scanning again --- */

/* @early: an early scan is enough. */
static bool is_known(uintptr_t address, bool early)
{
	const struct image_entry *image;
	bool found;

	image_pin();
	image = image_find(address);
	found = image &&
		(early || !__atomic_load_n(&image->is_early, __ATOMIC_RELAXED));
	image_unpin();
	return found;
}

static int scan_locked(void *unused)
{
	(void)unused;
	return image_scan();
}

void image_look_again(void)
{
	state_call_locked(scan_locked, NULL);
}

static int closing;
static bool has_deferred; /* somebody waits for the scan after a dlclose */

static bool is_loaded_at(uintptr_t start)
{
	for (uint32_t i = 0; i < image_count; i++)
		if (image_at(i)->status == IMAGE_LOADED &&
		    image_at(i)->start == start)
			return true;
	return false;
}

static bool are_loaded(const struct image_objects *objects)
{
	for (uint32_t i = 0; i < objects->count; i++)
		if (!is_loaded_at(objects->objects[i].start))
			return false;
	return true;
}

static int scan_objects(const struct image_objects *added)
{
	begin_scan();
	for (uint32_t i = 0; i < added->count; i++) {
		/* Without the kernel's help, the objects are missing below. */
		maps_read_range(added->objects[i].start, added->objects[i].end,
				add_mapping, NULL);
		end_run();
		current_run.image.inode = ~0ull;
	}
	/* Another thread may have unloaded objects, and their addresses may be in use
	 * again. */
	if (__atomic_load_n(&closing, __ATOMIC_ACQUIRE) > 0 ||
	    image_is_unseen() || !are_loaded(added))
		return scan_all();
	finish_scan();
	return 0;
}

static int scan_added(void *added)
{
	int r;

	image_work_begins();
	r = scan_objects(added);
	image_work_ends();
	return r;
}

void image_look_for_added(const struct image_objects *added)
{
	state_call_locked(scan_added, (void *)added);
}

static int begin_closing(void *unused)
{
	(void)unused;
	__atomic_fetch_add(&closing, 1, __ATOMIC_ACQ_REL);
	return 0;
}

void image_closing(void)
{
	/* Under the lock, so that no object is unloaded while a thread holds it. */
	if (state_call_locked(begin_closing, NULL) < 0)
		begin_closing(NULL);
}

/* Most objects that are unloaded were never scanned. */
static int scan_if_some_may_go(void *unused)
{
	(void)unused;
	for (uint32_t i = 0; i < image_count; i++)
		if (image_at(i)->status == IMAGE_LOADED && image_at(i)->may_go)
			return image_scan();
	return 0;
}

void image_closed(bool is_changed)
{
	__atomic_fetch_add(&closing, -1, __ATOMIC_ACQ_REL);
	if (__atomic_exchange_n(&has_deferred, false, __ATOMIC_ACQ_REL))
		image_look_again();
	else if (is_changed)
		state_call_locked(scan_if_some_may_go, NULL);
}

bool image_is_closing(void)
{
	ASSERT_LOCKED();
	if (__atomic_load_n(&closing, __ATOMIC_ACQUIRE) == 0)
		return false;
	__atomic_store_n(&has_deferred, true, __ATOMIC_RELEASE);
	return true;
}

/* Regions of code that belongs to no file, because the program generates it.  Without
 * this list, each function of such code would cause a scan. */
static uintptr_t regions_without_image[8];

void image_opening(bool unseen)
{
	for (unsigned i = 0; i < 8; i++)
		regions_without_image[i] = 0;
	if (unseen)
		__atomic_store_n(&is_unseen, true, __ATOMIC_RELEASE);
}

bool image_is_unseen(void)
{
	return __atomic_load_n(&is_unseen, __ATOMIC_ACQUIRE);
}

static const char *expected;

void image_expect(const char *symbol)
{
	__atomic_store_n(&expected, symbol, __ATOMIC_RELEASE);
}

const char *image_expected(void)
{
	return __atomic_load_n(&expected, __ATOMIC_ACQUIRE);
}

static void look_for(uintptr_t address, bool early, int (*scan)(void *unused))
{
	static unsigned next;
	uintptr_t region = address >> 21;

	if (is_known(address, early))
		return;
	for (unsigned i = 0; i < 8; i++)
		if (regions_without_image[i] == region)
			return;
	state_call_locked(scan, NULL);
	if (!is_known(address, true))
		regions_without_image[next++ % 8] = region;
}

void image_look_for(uintptr_t address)
{
	look_for(address, is_in_handler(), scan_locked);
}

static int scan_walking(void *unused)
{
	int r;

	(void)unused;
	is_walking = true;
	r = image_scan();
	is_walking = false;
	return r;
}

void image_look_for_walk(uintptr_t address)
{
	if (__atomic_load_n(&closing, __ATOMIC_ACQUIRE) > 0)
		state_call_locked(scan_walking, NULL);
	else
		look_for(address, true, scan_walking);
}

void shim_image_note(shim_function function)
{
	if (__atomic_load_n(&closing, __ATOMIC_ACQUIRE) > 0)
		image_look_again();
	else
		image_look_for(function);
}
