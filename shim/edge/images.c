/*
 * Wrappers of dlopen, dlclose and dlsym.
 *
 * dlopen depends on its caller: the caller's object gives the search path for a name
 * without a slash (RPATH, RUNPATH), and its directory is $ORIGIN.  So the wrapper of
 * dlopen is a stub that jumps.  It jumps to a function of shim only if the result does
 * not depend on the caller and a profiler needs it.  Otherwise shim finds a new object
 * at the first call in it (shim_image_note).
 */
#define _GNU_SOURCE
#include "edge/edge.h"

#include "coverage/coverage.h"
#include "dispatch/hook_table.h"
#include "dispatch/plan.h"
#include "image/image.h"
#include "inspect/code.h"
#include "inspect/code_cache.h"
#include "inspect/debuginfo_prefetch.h"
#include "module/open.h"
#include "os/lookup.h"
#include "os/text.h"
#include "runtime/events.h"
#include "runtime/state.h"
#include "sources/sources.h"
#include "unwind/unwind.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stddef.h>
#include <shim/info.h>

#include <shim/banned.h>

#define HIDDEN __attribute__((visibility("hidden")))

typedef void *(*opener)(const char *path, int flags);
typedef void *(*space_opener)(Lmid_t space, const char *path, int flags);

static opener real_dlopen;
static space_opener real_dlmopen;
static int (*real_dlclose)(void *handle);
static int (*real_iterate)(int (*each)(struct dl_phdr_info *, size_t, void *),
			   void *argument);
static uint32_t close_count;

/* Calls that open objects now, and have not looked for new ones yet.  A fork child also counts
 * those of threads that it does not have, and only looks more often. */
static unsigned opening;

/* --- what has the loader loaded or unloaded? --- */

/* How many objects the loader has loaded and unloaded since the start. */
struct loads {
	unsigned long long loaded, unloaded;
	bool is_known;
};

static void read_counts(const struct dl_phdr_info *object, size_t size,
			struct loads *loads)
{
	if (size >= offsetof(struct dl_phdr_info, dlpi_subs) +
			    sizeof(object->dlpi_subs)) {
		loads->loaded = object->dlpi_adds;
		loads->unloaded = object->dlpi_subs;
		loads->is_known = true;
	}
}

static int read_loads(struct dl_phdr_info *object, size_t size, void *argument)
{
	read_counts(object, size, argument);
	return 1;
}

static struct loads count_loads(void)
{
	struct loads loads = { .is_known = false };

	if (real_iterate)
		real_iterate(read_loads, &loads);
	return loads;
}

/* Programs open and close libraries that stay loaded; a scan for each costs more than
 * their start.  Another thread that opens or closes meanwhile scans itself. */
static bool is_changed_since(const struct loads *before)
{
	struct loads now = count_loads();

	return !now.is_known || !before->is_known ||
	       now.loaded != before->loaded || now.unloaded != before->unloaded;
}

/* The objects of the program's namespace. */
struct objects {
	struct loads loads;
	uint32_t count;
	uint32_t first;	  /* the number of the first one that is looked at */
	uint32_t unknown; /* those with code that no scan has found */
	struct image_objects *added; /* gets their addresses */
};

/* The addresses of @object; *@end is 0 if it has no code. */
static void find_addresses(const struct dl_phdr_info *object, uintptr_t *start,
			   uintptr_t *end)
{
	uintptr_t last = 0;
	bool has_code = false;

	*start = UINTPTR_MAX;
	for (unsigned i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &object->dlpi_phdr[i];
		uintptr_t at = object->dlpi_addr + part->p_vaddr;

		if (part->p_type != PT_LOAD)
			continue;
		if (at < *start)
			*start = at;
		if (at + part->p_memsz > last)
			last = at + part->p_memsz;
		has_code |= (part->p_flags & PF_X) != 0;
	}
	*start &= ~(uintptr_t)4095;
	*end = has_code ? last : 0;
}

static bool is_known_image(uintptr_t start)
{
	const struct image_entry *image;
	bool is_known;

	image_pin();
	image = image_find(start);
	is_known = image && image->start == start;
	image_unpin();
	return is_known;
}

/* The loader's lock is held: no object comes or goes until the last one was read. */
static int read_object(struct dl_phdr_info *object, size_t size, void *argument)
{
	struct objects *objects = argument;
	uintptr_t start, end;

	read_counts(object, size, &objects->loads);
	if (objects->count++ < objects->first)
		return 0;
	find_addresses(object, &start, &end);
	if (end == 0 || is_known_image(start))
		return 0;
	if (objects->added && objects->unknown < IMAGE_OBJECTS_MAX) {
		objects->added->objects[objects->unknown].start = start;
		objects->added->objects[objects->unknown].end = end;
	}
	objects->unknown++;
	return 0;
}

static struct objects read_objects(struct image_objects *added)
{
	struct objects objects = { .added = added };

	if (real_iterate)
		real_iterate(read_object, &objects);
	return objects;
}

/* Whether the only change since @before is that objects were loaded into the program's
 * namespace; @added gets those with code. */
static bool has_only_added(const struct objects *before,
			   struct image_objects *added)
{
	struct objects now = read_objects(added);

	added->count = now.unknown;
	return now.loads.is_known && before->loads.is_known &&
	       before->unknown == 0 && now.unknown <= IMAGE_OBJECTS_MAX &&
	       now.loads.unloaded == before->loads.unloaded &&
	       now.loads.loaded - before->loads.loaded ==
		       now.count - before->count;
}

/* --- does the result depend on the caller? --- */

struct search {
	uintptr_t caller;
	bool is_first;
	bool ignores_caller;
};

static bool contains(const struct dl_phdr_info *object, uintptr_t address)
{
	for (unsigned i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &object->dlpi_phdr[i];

		if (part->p_type == PT_LOAD &&
		    address - (object->dlpi_addr + part->p_vaddr) <
			    part->p_memsz)
			return true;
	}
	return false;
}

static bool has_tag(const struct dl_phdr_info *object, ElfW(Sxword) tag,
		    ElfW(Xword) bits)
{
	const ElfW(Dyn) *entry = NULL;

	for (unsigned i = 0; i < object->dlpi_phnum; i++)
		if (object->dlpi_phdr[i].p_type == PT_DYNAMIC)
			entry = (const void *)(object->dlpi_addr +
					       object->dlpi_phdr[i].p_vaddr);
	for (; entry && entry->d_tag != DT_NULL; entry++)
		if (entry->d_tag == tag && (entry->d_un.d_val & bits))
			return true;
	return false;
}

/* Clears @ignores_caller if the object's search path affects the result.  The RPATH of
 * an object also applies to the objects that it has loaded.  The program's RPATH
 * applies to all objects, including shim. */
static int check_search_path(struct dl_phdr_info *object, size_t size,
			     void *argument)
{
	const ElfW(Xword) any = ~(ElfW(Xword))0;
	struct search *search = argument;

	(void)size;
	if (!search->is_first && has_tag(object, DT_RPATH, any))
		search->ignores_caller = false;
	search->is_first = false;
	if (contains(object, search->caller) &&
	    (has_tag(object, DT_RPATH, any) ||
	     has_tag(object, DT_RUNPATH, any) ||
	     has_tag(object, DT_FLAGS_1, DF_1_NODEFLIB)))
		search->ignores_caller = false;
	return 0;
}

static bool ignores_caller(const char *path, const void *caller)
{
	struct search search = {
		.caller = (uintptr_t)caller,
		.is_first = true,
		.ignores_caller = true,
	};
	bool has_slash = false;

	for (const char *at = path; *at; at++) {
		if (*at == '$')
			return false;
		has_slash |= *at == '/';
	}
	if (!has_slash)
		dl_iterate_phdr(check_search_path, &search);
	return search.ignores_caller;
}

/* --- opening --- */

static bool modules_want_images(void)
{
	struct shim_profiler_handle *handle = NULL;

	if (events_counts.image_loaded > 0)
		handle = events_first();
	while (handle && (handle->builtin || !handle->image_loaded))
		handle = events_next(handle);
	return handle != NULL;
}

/* Whether each object must be scanned for when it is opened. */
static bool is_each_wanted(void)
{
	return coverage_is_on() || prefetch_is_on() || plan_watches_images() ||
	       sources_want_each() ||
	       (events_counts.image_loading | events_counts.image_failed) ||
	       modules_want_images();
}

static bool is_watched(const char *path, int flags)
{
	return path && !(flags & RTLD_NOLOAD) && state_get() == STATE_RUNNING &&
	       (image_expected() || sources_are_on() || is_each_wanted());
}

/* Raises image_failed.  True if it has taken the loader's message, so that the
 * program's dlerror() would return NULL. */
static bool raise_failed(const char *path)
{
	char copy[512];
	struct text text;
	const char *reason;

	if (events_counts.image_failed == 0)
		return false;
	reason = dlerror();
	text_init(&text, copy, sizeof(copy));
	text_add(&text, reason ? reason : "");
	RAISE(image_failed, path, copy);
	return true;
}

/* Whether a new object has the symbol that a profiler of shim waits for.  New objects are
 * the last of the loader's list. */
static bool is_expected_since(const struct loads *before)
{
	const char *symbol = image_expected();
	struct loads now = count_loads();

	if (!symbol || !now.is_known || !before->is_known)
		return symbol != NULL;
	return now.loaded != before->loaded &&
	       lookup_last_define(now.loaded - before->loaded, symbol);
}

/* Another thread may have opened the object, and not have looked at it yet: then this thread
 * would call functions whose marks are off. */
static bool others_open(void)
{
	return __atomic_load_n(&opening, __ATOMIC_ACQUIRE) > 1;
}

static void begin_opening(void)
{
	__atomic_fetch_add(&opening, 1, __ATOMIC_ACQ_REL);
}

static void end_opening(void)
{
	__atomic_fetch_sub(&opening, 1, __ATOMIC_ACQ_REL);
}

static void look_again_after(const struct objects *before)
{
	struct image_objects added;

	if (image_is_unseen() || others_open())
		open_look_again(NULL);
	else if (is_changed_since(&before->loads))
		open_look_again(has_only_added(before, &added) ? &added : NULL);
	else
		image_raise_pending();
}

/* After a failure it calls dlopen again: the second failure leaves a message for the
 * program's dlerror(). */
static void *open_watched(const char *path, int flags)
{
	struct objects before = read_objects(NULL);
	void *handle;

	begin_opening();
	handle = real_dlopen(path, flags);
	if (!handle && raise_failed(path))
		handle = real_dlopen(path, flags);
	if (handle)
		look_again_after(&before);
	end_opening();
	return handle;
}

/* Whether a new object may have marks.  New objects are the last of the loader's list. */
static bool has_marks_since(const struct loads *before)
{
	struct image_objects added;
	struct objects now = {
		.first = (uint32_t)(before->loaded - before->unloaded),
		.added = &added,
	};

	if (!sources_are_on() || !real_iterate || image_has_early())
		return sources_are_on();
	real_iterate(read_object, &now);
	if (!now.loads.is_known || !before->is_known ||
	    now.loads.unloaded != before->unloaded ||
	    now.unknown > IMAGE_OBJECTS_MAX)
		return true;
	added.count = now.unknown;
	return added.count > 0 && sources_may_have_marks(&added);
}

/* Most objects have nothing that is needed before their first call: a scan of each costs
 * more than their opening. */
static void *open_expecting(const char *path, int flags)
{
	struct loads before = count_loads();
	void *handle;

	begin_opening();
	handle = real_dlopen(path, flags);
	if (handle && (is_expected_since(&before) || has_marks_since(&before) ||
		       (sources_are_on() && others_open())))
		open_look_again(NULL);
	end_opening();
	return handle;
}

static void *open_watched_in(Lmid_t space, const char *path, int flags)
{
	struct objects before = read_objects(NULL);
	void *handle;

	begin_opening();
	handle = real_dlmopen(space, path, flags);
	if (!handle && raise_failed(path))
		handle = real_dlmopen(space, path, flags);
	if (handle)
		look_again_after(&before);
	end_opening();
	return handle;
}

/* Called by the stubs in arch/.../edge.S, which jump to the returned function. */
HIDDEN void *edge_opens(const char *path, int flags, long unused,
			const void *caller);
HIDDEN void *edge_opens_in(Lmid_t space, const char *path, int flags,
			   const void *caller);

void *edge_opens(const char *path, int flags, long unused, const void *caller)
{
	(void)unused;
	if (!real_dlopen)
		edge_images_resolve();
	if (flags & RTLD_DEEPBIND)
		hook_table_opens_deep();
	image_opening(false);
	if (!is_watched(path, flags))
		return (void *)real_dlopen;
	coverage_prepare();
	RAISE(image_loading, path);
	if (ignores_caller(path, caller))
		return is_each_wanted() ? (void *)open_watched :
					  (void *)open_expecting;
	image_opening(true);
	return (void *)real_dlopen;
}

void *edge_opens_in(Lmid_t space, const char *path, int flags,
		    const void *caller)
{
	(void)space;
	if (!real_dlmopen)
		edge_images_resolve();
	if (flags & RTLD_DEEPBIND)
		hook_table_opens_deep();
	image_opening(false);
	if (!is_watched(path, flags))
		return (void *)real_dlmopen;
	coverage_prepare();
	RAISE(image_loading, path);
	if (ignores_caller(path, caller))
		return (void *)open_watched_in;
	image_opening(true);
	return (void *)real_dlmopen;
}

/* --- symbols --- */

HIDDEN void *edge_finds_symbol(void);
HIDDEN void *edge_finds_version(void);

/* Not by lookup_real, which may call dlsym. */
void *edge_finds_symbol(void)
{
	static void *real;

	if (!real)
		real = lookup_dlsym("dlsym");
	return real;
}

void *edge_finds_version(void)
{
	static void *real;

	if (!real)
		real = lookup_dlsym("dlvsym");
	return real;
}

/* --- closing --- */

/* Raises image_unloading, if the modules got image_loaded (row P-66).  @object is the
 * handle: the loader's link map.  The first object of the list is the program, which is
 * never unloaded. */
static void raise_unloading(const struct link_map *object)
{
	shim_image image;

	if (object && object->l_prev &&
	    shim_image_from_address(object->l_ld, &image) == SHIM_OK &&
	    image_was_told(image))
		RAISE(image_unloading, image);
}

EDGE int dlclose(void *handle)
{
	struct loads before;
	int result;

	if (!real_dlclose)
		edge_images_resolve();
	if (state_get() != STATE_RUNNING)
		return real_dlclose(handle);
	/* Without this scan, shim would not record an image that is unloaded now. */
	if (image_is_unseen())
		image_look_again();
	if (events_counts.image_unloading > 0)
		raise_unloading(handle);
	image_closing();
	before = count_loads();
	result = real_dlclose(handle);
	__atomic_add_fetch(&close_count, 1, __ATOMIC_ACQ_REL);
	code_closed();
	code_cache_closed();
	image_closed(is_changed_since(&before));
	unwind_closed();
	image_raise_pending();
	return result;
}

uint32_t edge_closes(void)
{
	return __atomic_load_n(&close_count, __ATOMIC_ACQUIRE);
}

void edge_images_resolve(void)
{
	real_dlopen = (opener)lookup_real("dlopen");
	real_dlmopen = (space_opener)lookup_real("dlmopen");
	real_iterate = lookup_real("dl_iterate_phdr");
	real_dlclose = (int (*)(void *))lookup_real("dlclose");
}
