/*
 * The public functions of coverage, and the list of scanned objects.  An
 * object is scanned once, when it is loaded; its lines stay in a list that
 * only grows, so queries read it without a lock.
 */
#define _GNU_SOURCE
#include "coverage/coverage.h"
#include "coverage/code_copies.h"
#include "coverage/sigtrap.h"
#include "dispatch/call_sites.h"
#include "dispatch/callspec.h"
#include "dispatch/filter_cache.h"
#include "image/code_bytes.h"
#include "image/image.h"
#include "image/symbols.h"
#include "inspect/code.h"
#include "os/lookup.h"
#include "os/sys.h"
#include "os/text.h"
#include "runtime/contract.h"
#include "runtime/events.h"
#include "runtime/log.h"
#include "runtime/state.h"

#include <errno.h>
#include <link.h>
#include <shim/cpu.h>
#include <shim/hooks.h>
#include <shim/info.h>
#include <shim/record.h>

#include <shim/banned.h>

/* A profiler has enabled coverage; coverage has begun. */
static bool is_enabled, is_on;
struct coverage_object *coverage_objects;

bool coverage_is_on(void)
{
	return __atomic_load_n(&is_on, __ATOMIC_ACQUIRE);
}

/* --- filters --- */

bool coverage_has_filters(void)
{
	if (callspec_has_filter())
		return true;
	for (struct shim_profiler_handle *h = events_first(); h;
	     h = events_next(h))
		if (h->coverage_filter)
			return true;
	return false;
}

struct filter_query {
	shim_coverage_filter_callback filter;
	struct shim_profiler *profiler;
	shim_function function;
	bool is_wanted;
};

static void call_filter(struct filter_query *query)
{
	if (query->filter(query->profiler, query->function))
		query->is_wanted = true;
}

/* Calls all filters, whatever the others return (row M-25).  The option --filter excludes
 * functions that they want, too. */
bool coverage_wants(shim_function function)
{
	struct filter_query query = { .function = function };
	bool is_asked = false;

	if (callspec_has_filter() &&
	    callspec_filter(NULL, function) == SHIM_CALL_INSTRUMENTATION_NONE)
		return false;
	for (struct shim_profiler_handle *h = events_first(); h;
	     h = events_next(h)) {
		struct guard guard;

		if (!h->coverage_filter ||
		    !guard_enter(&guard, h, EVENT_THREAD, 0, "filter"))
			continue;
		query.filter = h->coverage_filter;
		query.profiler = h->profiler;
		is_asked = true;
		if (query.filter)
			guard_call(&guard, (void (*)(void))call_filter,
				   (uintptr_t)&query, 0, 0, 0, 0);
		else
			guard_leave(&guard);
	}
	return !is_asked || query.is_wanted;
}

enum shim_result
shim_profiler_set_coverage_filter_callback(struct shim_profiler_handle *handle,
					   shim_coverage_filter_callback filter)
{
	ENTRY_ASYNC_OF(handle);
	__atomic_store_n(&handle->coverage_filter, filter, __ATOMIC_RELEASE);
	return SHIM_OK;
}

/* --- functions: recorded by hooks, once --- */

static struct shim_profiler_handle *functions;

static void do_nothing(union shim_function_or_client function)
{
	(void)function;
}

/* A filter that raises the event at the first call of a function, and declines further
 * calls. */
static enum shim_call_instrumentation_flags
raise_reached(struct shim_profiler *profiler, shim_function function)
{
	(void)profiler;
	if (coverage_wants(function))
		RAISE(function_reached, function);
	return SHIM_CALL_INSTRUMENTATION_NONE;
}

/* A module gets no events while it is set up, so no function is noted before
 * coverage_begin. */
static bool start_functions(bool waits)
{
	functions = handle_create(NULL);
	if (!functions)
		return false;
	functions->waits = waits;
	return shim_profiler_set_enter_leave_function_hooks3(
		       functions, do_nothing, do_nothing, NULL) == SHIM_OK &&
	       shim_profiler_set_call_instrumentation_filter_callback(
		       functions, raise_reached) == SHIM_OK;
}

enum shim_result
shim_profiler_enable_coverage(struct shim_profiler_handle *handle)
{
	ENTRY_INIT_OF(handle);
	if (is_enabled)
		return SHIM_OK;
	if (!start_functions(contract_is_setting_up()))
		return SHIM_E_OUTOFMEMORY;
	is_enabled = true;
	if (!contract_is_setting_up())
		__atomic_store_n(&is_on, true, __ATOMIC_RELEASE);
	return SHIM_OK;
}

bool coverage_begin(void)
{
	if (!is_enabled || coverage_is_on())
		return false;
	functions->waits = false;
	__atomic_store_n(&is_on, true, __ATOMIC_RELEASE);
	return true;
}

void coverage_begin_late(void)
{
	if (!sigtrap_start_late())
		coverage_forbid_traps();
	coverage_scan_new();
	coverage_watch_loader();
}

void coverage_begin_at_start(void)
{
	if (!coverage_is_on())
		return;
	if (!shim_is_single_threaded() || lookup_was_attached()) {
		coverage_begin_late();
		return;
	}
	coverage_scan_new();
	coverage_watch_loader();
}

void coverage_detach(bool begins)
{
	if (!coverage_is_on() || !sigtrap_is_on())
		return;
	if (begins) {
		coverage_leave_loader();
		coverage_detach_traps(true);
	} else if (sigtrap_start_again()) {
		coverage_detach_traps(false);
		coverage_scan_new();
		coverage_return_to_loader();
	} else {
		coverage_forbid_traps();
	}
}

static void renew_object(struct coverage_object *object)
{
	uint8_t *reached = object->info.reached;

	if (object->info.state == SHIM_COVERAGE_POINTS)
		return;
	object->info.reached = NULL;
	coverage_raise_object(object);
	if (!object->info.reached && reached)
		object->info.reached = shim_memory_map(object->info.line_count);
	if (!object->info.reached)
		object->info.reached = reached;
}

void coverage_renew(void)
{
	if (!coverage_is_on())
		return;
	for (struct coverage_object *o = coverage_objects; o; o = o->next)
		renew_object(o);
	/* Setting the filter forgets which functions were reached. */
	shim_profiler_set_call_instrumentation_filter_callback(functions,
							       raise_reached);
}

/* --- objects --- */

void coverage_add(struct coverage_object *object)
{
	object->next = __atomic_load_n(&coverage_objects, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&coverage_objects, &object->next,
					    object, false, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED))
		;
}

void coverage_log_missing(const char *path, int error)
{
	log_error("its lines cannot be recorded: %s", path, error);
}

struct coverage_object *coverage_make(const struct image_entry *image,
				      enum shim_coverage_state state)
{
	struct coverage_object *object = shim_memory_map(sizeof(*object) +
							 image->path_size);
	char *path = (char *)(object + 1);

	if (!object) {
		coverage_log_missing(image->path, -ENOMEM);
		return NULL;
	}
	for (uint32_t i = 0; i < image->path_size; i++)
		path[i] = image->path[i];
	object->info.start = image->start;
	object->info.end = image->end;
	object->info.path = path;
	object->info.state = state;
	object->start = image->start;
	object->size = image->end - image->start;
	object->device = image->device;
	object->inode = image->inode;
	return object;
}

/* Excludes shim, objects whose code shim's SIGTRAP handler may run, and the runtime
 * libraries of sanitizers, which have lines, and block the signal by system calls that
 * shim does not see. */
static bool is_excluded(const struct image_entry *image)
{
	static const char *const names[] = {
		"libshim",    "ld-",	 "libc.so",   "libc.musl",    "libc-",
		"libpthread", "[vdso]",	 "libasan",   "libtsan",      "liblsan",
		"libubsan",   "libmsan", "libhwasan", "libclang_rt.",
	};
	const char *name = text_base(image->path);

	if ((uintptr_t)is_excluded - image->start < image->end - image->start)
		return true;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (text_after(name, names[i]))
			return true;
	return false;
}

static struct coverage_object *find_unloaded(const struct image_entry *image)
{
	for (struct coverage_object *o = coverage_objects; o; o = o->next)
		if (o->start == 0 && o->device == image->device &&
		    o->inode == image->inode &&
		    o->size == image->end - image->start)
			return o;
	return NULL;
}

void coverage_raise_object(struct coverage_object *object)
{
	RAISE(coverage_object, &object->info);
}

static void set_up_object(struct coverage_object *object)
{
	coverage_raise_object(object);
	if (!object->info.reached && object->info.line_count)
		object->info.reached = shim_memory_map(object->info.line_count);
	coverage_add(object);
	if (!object->info.line_count)
		return;
	if (!object->info.reached)
		coverage_log_missing(object->info.path, -ENOMEM);
	else if (!sigtrap_start())
		coverage_log_missing(object->info.path, -EPERM);
	else
		coverage_set_traps(object);
}

/* A file that is loaded again keeps its lines and the memory for their results. */
static void reuse_object(struct coverage_object *object, uintptr_t start)
{
	object->info.start = start;
	object->info.end = start + object->size;
	__atomic_store_n(&object->start, start, __ATOMIC_RELEASE);
	if (object->info.reached)
		coverage_set_traps(object);
}

/* Searches the objects that the loader lists.  The list excludes objects that libshim
 * opens in its own namespaces. */
struct search {
	uintptr_t address;
	bool is_found;
};

static int compare_object(struct dl_phdr_info *object, size_t size,
			  void *argument)
{
	struct search *search = argument;

	(void)size;
	for (unsigned i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &object->dlpi_phdr[i];

		if (part->p_type == PT_LOAD &&
		    search->address - (object->dlpi_addr + part->p_vaddr) <
			    part->p_memsz)
			search->is_found = true;
	}
	return search->is_found;
}

static bool is_listed(const struct image_entry *image)
{
	struct search search = { .address = image->start };

	dl_iterate_phdr(compare_object, &search);
	return search.is_found;
}

bool coverage_has_scanned(uintptr_t address)
{
	for (const struct coverage_object *o = coverage_objects; o; o = o->next)
		if (o->start != 0 && address - o->start < o->size)
			return true;
	return false;
}

void coverage_scan_object(const struct image_entry *image)
{
	struct coverage_object *object;

	if (coverage_has_scanned(image->start))
		return;
	object = find_unloaded(image);
	if (object) {
		reuse_object(object, image->start);
	} else if (is_excluded(image) || !is_listed(image)) {
		object = coverage_make(image, SHIM_COVERAGE_NO_LINES);
		if (object)
			coverage_add(object);
	} else {
		object = coverage_read_lines(image);
		if (object)
			set_up_object(object);
	}
}

/* The list may be replaced meanwhile.  The thread that replaces it scans the new list,
 * too. */
void coverage_scan_new(void)
{
	struct image_entry *const *images;
	uint32_t count;

	if (!coverage_is_on())
		return;
	code_start();
	image_pin();
	count = image_list(&images);
	for (uint32_t i = 0; i < count; i++)
		if (images[i]->id != 0 &&
		    !__atomic_exchange_n(&images[i]->is_looked_at, true,
					 __ATOMIC_ACQ_REL))
			coverage_scan_object(images[i]);
	image_unpin();
}

static void drop_address(uintptr_t start, uintptr_t end)
{
	for (struct coverage_object *o = coverage_objects; o; o = o->next)
		if (o->start >= start && o->start < end)
			__atomic_store_n(&o->start, 0, __ATOMIC_RELEASE);
}

SUBSCRIBE(image_went, drop_address);

/* --- results --- */

static const struct coverage_object *find_object(uintptr_t address)
{
	for (const struct coverage_object *o =
		     __atomic_load_n(&coverage_objects, __ATOMIC_ACQUIRE);
	     o; o = o->next) {
		uintptr_t start = __atomic_load_n(&o->start, __ATOMIC_ACQUIRE);

		if (start != 0 && address - start < o->size &&
		    o->info.state == SHIM_COVERAGE_LINES)
			return o;
	}
	return NULL;
}

static void restore_code(uintptr_t address, unsigned char *copy, size_t size)
{
	const struct coverage_object *object = find_object(address);

	if (object)
		code_copies_restore(object, address, copy, size);
}

SUBSCRIBE(code_copied, restore_code);

struct coverage_query {
	struct shim_profiler_handle *handle;
	shim_coverage_data_callback callback;
	shim_function function;
};

static void raise_data(const struct coverage_query *query,
		       const struct shim_coverage_data *data)
{
	struct guard guard;

	if (!guard_enter(&guard, query->handle, EVENT_THREAD, 0, "coverage"))
		return;
	guard_call(&guard, (void (*)(void))query->callback,
		   (uintptr_t)query->handle->profiler, (uintptr_t)data, 0, 0,
		   0);
}

static const char *file_name(const struct shim_coverage_object *object,
			     uint32_t number)
{
	const char *name = object->files;

	while (number-- > 0)
		name += text_length(name) + 1;
	return name;
}

/* @before: the size of the function's earlier parts in bytes. */
static void report_range(const struct coverage_query *query,
			 const struct coverage_object *object, uint64_t begin,
			 uint64_t end, uint64_t before)
{
	const struct shim_coverage_object *info = &object->info;

	for (uint32_t i = coverage_find_line(info, begin);
	     i < info->line_count && info->lines[i].offset < end; i++) {
		const struct shim_coverage_line *line = &info->lines[i];
		struct shim_coverage_data data = {
			.function = query->function,
			.code_offset = before + line->offset - begin,
			.counter = info->reached[i],
			.file_name = file_name(info, line->file),
			.line = line->line,
			.column = line->column,
		};

		if (line->line != 0)
			raise_data(query, &data);
	}
}

#define RANGES_MAX 16

static int read_symbols(void *function)
{
	struct image_entry *image = image_find((uintptr_t)function);

	return image ? symbols_read(image) : 0;
}

static enum shim_result report_lines(const struct coverage_query *query,
				     const struct coverage_object *object)
{
	struct shim_code_range ranges[RANGES_MAX];
	bool is_looked_at = false;
	uint64_t before = 0;
	uint32_t count = 0;

	shim_function_ranges(query->function, RANGES_MAX, &count, ranges);
	for (uint32_t i = 0; i < count && i < RANGES_MAX; i++) {
		uint64_t begin = ranges[i].start - object->start;
		uint64_t end = begin + ranges[i].size;
		uint32_t line = coverage_find_line(&object->info, begin);

		is_looked_at |= line < object->info.line_count &&
				object->info.lines[line].offset < end;
		report_range(query, object, begin, end, before);
		before += ranges[i].size;
	}
	return is_looked_at ? SHIM_OK : SHIM_E_FAIL;
}

static int has_hooks(void *function)
{
	return call_sites_has((uintptr_t)function);
}

/* For functions without lines: reports whether a hook of the function was called.
 * Fails if the function calls no hooks. */
static enum shim_result report_function(const struct coverage_query *query)
{
	const struct filter_answer *decision = filter_cache_find(
		query->function);
	struct shim_coverage_data data = { .function = query->function };

	data.counter = decision && functions->filter_slot >= 0 &&
		       decision->ages[functions->filter_slot] != 0;
	if ((data.counter == 0 &&
	     state_call_locked(has_hooks, (void *)query->function) != 1) ||
	    !coverage_wants(query->function))
		return SHIM_E_FAIL;
	raise_data(query, &data);
	return SHIM_OK;
}

enum shim_result
shim_profiler_get_coverage_data(struct shim_profiler_handle *handle,
				shim_function function,
				shim_coverage_data_callback callback)
{
	struct coverage_query query = { handle, callback, function };
	const struct coverage_object *object;
	enum shim_result r;

	ENTRY_PROGRAM_ITSELF_OF(handle);
	if (!callback)
		return SHIM_E_INVALIDARG;
	if (!coverage_is_on())
		return SHIM_E_FAIL;
	state_call_locked(read_symbols, (void *)function);
	r = shim_function_info(function, NULL, NULL);
	if (r != SHIM_OK)
		return r;
	object = find_object(function);
	if (!object)
		return report_function(&query);
	r = report_lines(&query, object);
	/* Functions that filters exclude stay excluded (row M-26). */
	return r == SHIM_OK || coverage_has_filters() ? r :
							report_function(&query);
}
