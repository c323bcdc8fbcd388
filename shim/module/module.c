/*
 * Loads, starts and unloads modules.  The loader and the module's own code run without
 * the state lock.  Meanwhile the module's status prevents other threads from changing
 * it.
 */
#define _GNU_SOURCE
#include "module/module.h"

#include "arch.h"
#include "coverage/coverage.h"
#include "dispatch/plan.h"
#include "image/image.h"
#include "module/builtin.h"
#include "module/builtin_list.h"
#include "module/detach.h"
#include "module/late.h"
#include "module/module_find.h"
#include "os/sys.h"
#include "runtime/config.h"
#include "runtime/contract.h"
#include "runtime/events.h"
#include "runtime/log.h"
#include "runtime/record.h"
#include "runtime/runtime_threads.h"
#include "runtime/state.h"
#include "unwind/second.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include <shim/banned.h>

#define UNLOAD_WAIT_MS 5000

static struct module modules[MODULES_MAX];

struct module *module_get(uint32_t n)
{
	return n < MODULES_MAX ? &modules[n] : NULL;
}

static uint32_t get_status(const struct module *module)
{
	return __atomic_load_n(&module->status, __ATOMIC_ACQUIRE);
}

static void set_status(struct module *module, enum module_status status)
{
	__atomic_store_n(&module->status, status, __ATOMIC_RELEASE);
}

/* --- names --- */

static bool is_identifier(const char *name)
{
	const char *at = name;

	for (; *at; at++)
		if (!((*at >= 'a' && *at <= 'z') ||
		      (*at >= 'A' && *at <= 'Z') ||
		      (*at >= '0' && *at <= '9') || *at == '_'))
			return false;
	return at > name;
}

/* A request to load: a name, or a path whose last part contains the name. */
struct request {
	char path[MODULE_PATH_SIZE]; /* empty: search by name */
	char name[64];
	const char *description;
	const void *data;
	uint32_t data_size;
};

static bool read_request(struct request *request)
{
	const char *end = request->description, *base, *rest;
	struct text path, name;
	size_t length = 0;

	while (*end && *end != ':')
		end++;
	text_init(&path, request->path, sizeof(request->path));
	text_add_part(&path, request->description,
		      (size_t)(end - request->description));
	base = text_base(request->path);
	rest = text_after(base, MODULE_PREFIX);
	if (base != request->path && rest)
		base = rest;
	while (base[length] && base[length] != '.')
		length++;
	text_init(&name, request->name, sizeof(request->name));
	if (text_base(request->path) == request->path)
		length = text_length(base);
	text_add_part(&name, base, length);
	if (path.cut || name.cut || !is_identifier(request->name))
		return false;
	if (text_base(request->path) == request->path)
		request->path[0] = '\0';
	return true;
}

/* --- the table --- */

struct claim {
	const struct request *request;
	struct module *module;
	bool is_new;
};

static int claim(void *argument)
{
	struct claim *claim = argument;
	struct module *module = NULL;
	struct text text;

	for (uint32_t i = 0; i < MODULES_MAX; i++) {
		if (modules[i].status == MODULE_NONE) {
			if (!module)
				module = &modules[i];
		} else if (text_equal(modules[i].name, claim->request->name)) {
			claim->module = &modules[i];
			return 0;
		}
	}
	claim->module = module;
	claim->is_new = true;
	if (!module)
		return -1;
	*module = (struct module){
		.status = MODULE_LOADING,
		.data = claim->request->data,
		.data_size = claim->request->data_size,
	};
	text_init(&text, module->name, sizeof(module->name));
	text_add(&text, claim->request->name);
	return 0;
}

/* Stores the description, which must exist as long as the module.  @is_lasting: it does
 * already, as a part of SHIM_PROFILE. */
static int keep_description(struct module *module, const char *description,
			    bool is_lasting)
{
	size_t size = text_length(description) + 1;
	void *memory;
	int r;

	if (is_lasting) {
		module->description = description;
		return 0;
	}
	r = sys_map(size, &memory);
	if (r < 0)
		return r;
	for (size_t i = 0; i < size; i++)
		((char *)memory)[i] = description[i];
	module->description = memory;
	module->description_size = size;
	return 0;
}

static void release_entry(struct module *module)
{
	if (module->description_size)
		sys_unmap((void *)module->description,
			  module->description_size);
	set_status(module, MODULE_NONE);
}

/* --- handles of a module --- */

struct handles {
	struct shim_profiler_handle *handle[SHIM_PROFILERS_MAX];
	uint32_t count;
};

static void collect_handles(struct handles *handles,
			    const struct module *module)
{
	handles->count = 0;
	for (struct shim_profiler_handle *h = events_first();
	     h && handles->count < SHIM_PROFILERS_MAX; h = events_next(h))
		if (h->module == module)
			handles->handle[handles->count++] = h;
}

static bool has_handles(const struct module *module)
{
	for (struct shim_profiler_handle *h = events_first(); h;
	     h = events_next(h))
		if (h->module == module)
			return true;
	return detach_is_pending(module);
}

static void destroy_handles(const struct module *module)
{
	struct handles handles;

	collect_handles(&handles, module);
	for (uint32_t i = 0; i < handles.count; i++) {
		struct shim_profiler_handle *handle = handles.handle[i];

		if (!handle_retire(handle))
			continue;
		while (!handle_wait(handle, 1000))
			;
		handle_free(handle);
	}
}

/* Until now shim did not call the filters and mappers of these handles.  So it
 * invalidates the answers that the cache has for functions called meanwhile. */
static int enable_handles(void *argument)
{
	struct handles *handles = argument;

	for (uint32_t i = 0; i < handles->count; i++) {
		struct shim_profiler_handle *handle = handles->handle[i];

		__atomic_store_n(&handle->waits, false, __ATOMIC_RELEASE);
		if (handle->filter_slot >= 0)
			filter_cache_invalidate(handle->filter_slot);
		if (handle->mapper_slot >= 0)
			filter_cache_invalidate(handle->mapper_slot);
	}
	return 0;
}

/* Lets the handles get events.  Before, the module's init function had not returned. */
static void activate_handles(const struct module *module, bool attached)
{
	bool covers = coverage_begin();
	struct handles handles;

	collect_handles(&handles, module);
	for (uint32_t i = 0; !attached && i < handles.count; i++)
		image_note_came(handles.handle[i]);
	state_call_locked(enable_handles, &handles);
	/* Reports existing images and threads before new events. */
	for (uint32_t i = 0; !attached && i < handles.count; i++)
		events_catch_up(handles.handle[i]);
	plan_changed();
	if (covers && attached)
		coverage_begin_late();
	if (attached)
		NOTIFY(module_attached);
	plan_start_code();
	second_start();
	for (uint32_t i = 0; attached && i < handles.count; i++)
		RAISE_ONE(handles.handle[i], attach_complete);
}

/* --- init --- */

typedef enum shim_result (*init_function)(const char *description);

struct init {
	init_function function;
	const char *description;
	enum shim_result result;
};

static void call_init(struct init *init)
{
	init->result = init->function(init->description);
}

static bool run_init(struct module *module, struct init *init)
{
	struct thread *self = thread_get();
	struct module *outer;
	uint32_t state;
	bool threw;

	if (!self) {
		init->result = SHIM_E_OUTOFMEMORY;
		return true;
	}
	outer = self->module;
	state = self->state;
	self->module = module;
	self->state = (state | THREAD_INIT) & ~(uint32_t)THREAD_CALLBACK;
	threw = arch_call_guarded((void (*)(void))call_init, (uintptr_t)init, 0,
				  0, 0, 0);
	self->state = state;
	self->module = outer;
	return !threw;
}

static void report_failure(struct text *text, const struct module *module,
			   const char *what, const char *why)
{
	size_t begin;

	if (text->length > 0)
		text_add(text, "; ");
	begin = text->length;
	text_add(text, "profiler '");
	text_add(text, module->name);
	text_add(text, "' ");
	text_add(text, what);
	text_add(text, why);
	log_line("%s", text->start + begin);
}

static void store_code_range(struct module *module, uintptr_t init)
{
	struct image_entry *image;

	if (text_equal(module->path, "the program"))
		return;
	image_look_again();
	image_pin();
	image = image_find(init);
	if (image) {
		__atomic_store_n(&module->code_low, image->start,
				 __ATOMIC_RELAXED);
		__atomic_store_n(&module->code_high, image->end,
				 __ATOMIC_RELEASE);
	}
	image_unpin();
}

static void has_code_at(uintptr_t address, bool *is_module)
{
	for (uint32_t i = 0; i < MODULES_MAX; i++) {
		uintptr_t high = __atomic_load_n(&modules[i].code_high,
						 __ATOMIC_ACQUIRE);

		if (high != 0 && address < high &&
		    address >= modules[i].code_low)
			*is_module = true;
	}
}

SUBSCRIBE(module_code_asked, has_code_at);

static enum shim_result start_module(struct module *module, struct text *text)
{
	bool attached = state_main_started();
	struct init init = { .description = module->description };
	char name[128];
	bool returned;

	module_init_name(module, name);
	init.function = (init_function)module_symbol(module->library, name);
	store_code_range(module, (uintptr_t)init.function);
	set_status(module, attached ? MODULE_ATTACHING : MODULE_INITIALIZING);
	returned = run_init(module, &init);
	module->data = NULL;
	module->data_size = 0;
	if (returned && SHIM_SUCCEEDED(init.result)) {
		set_status(module, MODULE_ACTIVE);
		activate_handles(module, attached);
		return SHIM_OK;
	}
	if (!returned && init.result == SHIM_OK) {
		init.result = SHIM_E_UNEXPECTED;
		report_failure(text, module, "was not started: ",
			       "its init function threw an exception");
	} else if (init.result != SHIM_E_PROFILER_CANCEL_ACTIVATION) {
		const char *result = shim_result_name(init.result);

		report_failure(text, module,
			       "was not started: its init function "
			       "returned ",
			       result ? result : "an unknown result");
	}
	destroy_handles(module);
	return init.result;
}

/* --- loading --- */

static enum shim_result open_module(struct module *module,
				    const struct request *request,
				    struct text *text)
{
	struct module_search search = { .module = module };

	if (module_find(&search, request->path)) {
		if (search.reason.length > 0)
			report_failure(text, module,
				       "was found elsewhere: ", search.memory);
		return SHIM_OK;
	}
	if (search.reason.length > 0)
		report_failure(text, module, "was not loaded: ", search.memory);
	else
		report_failure(
			text, module, "was not found",
			request->path[0] ?
				": there is no such file" :
				", neither in the program, nor beside shim, in "
				"SHIM_MODULE_PATH, or among the system's "
				"libraries");
	return SHIM_E_FAIL;
}

static void close_library(struct module *module)
{
	__atomic_store_n(&module->code_high, 0, __ATOMIC_RELEASE);
	if (module->library)
		dlclose(module->library);
	module->library = NULL;
}

bool module_try(const char *description, struct text *text)
{
	struct request request = { .description = description };
	static struct module module;
	struct text name;

	if (!read_request(&request)) {
		text_add(text, "is not the name of a profiler");
		return false;
	}
	text_init(&name, module.name, sizeof(module.name));
	text_add(&name, request.name);
	if (open_module(&module, &request, text) != SHIM_OK)
		return false;
	close_library(&module);
	return true;
}

static enum shim_result load_module(struct request *request, bool is_lasting,
				    struct text *text)
{
	struct claim found = { .request = request };
	struct module *module;
	enum shim_result r;

	if (!read_request(request)) {
		text_add(text, "not the name of a profiler");
		log_line("'%s' is not the name of a profiler",
			 request->description);
		return SHIM_E_INVALIDARG;
	}
	if (state_call_locked(claim, &found) < 0)
		return SHIM_E_OUTOFMEMORY;
	module = found.module;
	if (!found.is_new)
		return get_status(module) == MODULE_DETACHING ?
			       SHIM_E_PROFILER_DETACHING :
			       SHIM_OK;
	r = keep_description(module, request->description, is_lasting) < 0 ?
		    SHIM_E_OUTOFMEMORY :
		    open_module(module, request, text);
	if (r == SHIM_OK)
		r = start_module(module, text);
	if (r != SHIM_OK) {
		close_library(module);
		release_entry(module);
	}
	return r;
}

static int note_module(void *description)
{
	record_note_profiler(description);
	return 0;
}

enum shim_result module_load(const char *description, const void *data,
			     uint32_t size, struct text *text)
{
	struct request request = {
		.description = description,
		.data = data,
		.data_size = size,
	};
	enum shim_result result = SHIM_OK;

	state_start();
	if (state_get() != STATE_RUNNING) {
		text_add(text, "shim is off");
		return SHIM_E_FAIL;
	}
	if (late_load(description, text, &result))
		return result;
	result = load_module(&request, false, text);
	if (result == SHIM_OK)
		state_call_locked(note_module, (void *)description);
	return result;
}

enum shim_result shim_profiler_load(const char *description, const void *data,
				    uint32_t size)
{
	char memory[512];
	struct text text;

	ENTRY_PROGRAM();
	if (size > 0 && !data)
		return SHIM_E_INVALIDARG;
	if (!description || text_equal(description, "default"))
		description = "calltree";
	text_init(&text, memory, sizeof(memory));
	return module_load(description, data, size, &text);
}

enum shim_result shim_profiler_attach_data(uint32_t count, uint32_t *total,
					   void *data)
{
	const struct module *module = NULL;
	uint32_t size;

	ENTRY_INIT();
	if (count > 0 && !data)
		return SHIM_E_INVALIDARG;
	if (thread_current && (thread_current->state & THREAD_INIT))
		module = thread_current->module;
	size = module ? module->data_size : 0;
	if (total)
		*total = size;
	for (uint32_t i = 0; i < count && i < size; i++)
		((char *)data)[i] = ((const char *)module->data)[i];
	return SHIM_OK;
}

uint32_t shim_profiler_api_version(void)
{
	return SHIM_PROFILER_API_VERSION;
}

void module_start(void)
{
	const char *item = builtin_list_next(NULL);
	bool any = builtin_list_has_any();
	char memory[512];
	struct text text;

	for (; item; item = builtin_list_next(item)) {
		struct request request = { .description = item };

		uint32_t before = log_end();

		text_init(&text, memory, sizeof(memory));
		if (load_module(&request, true, &text) == SHIM_OK)
			any = true;
		else
			log_about_setting(before);
	}
	if (!any)
		log_setting("%s",
			    "no profiler was started: nothing is recorded");
}

/* --- unloading --- */

/* If the hook table points directly at the module's hooks, threads do not count their
 * calls of the hooks (plan.c).  Then shim cannot wait for their end, so the code must
 * stay. */
void module_handle_goes(struct shim_profiler_handle *handle)
{
	struct module *module = handle->module;

	if (module && !handle->may_go &&
	    (handle->fast[0] || handle->fast[1] || handle->fast[2]))
		module->stays = true;
}

static void unload_module(struct module *module)
{
	if (module->stays && !text_equal(module->path, "the program"))
		log_line("profiler '%s' was detached; its code stays in memory,"
			 " because its hooks were there from the start",
			 module->name);
	if (module->stays)
		module->library = NULL;
	close_library(module);
	release_entry(module);
}

static bool begin_detaching(struct module *module)
{
	uint32_t active = MODULE_ACTIVE;

	return __atomic_compare_exchange_n(&module->status, &active,
					   MODULE_DETACHING, false,
					   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

void module_handle_went(struct module *module)
{
	struct handles handles;

	collect_handles(&handles, module);
	if (handles.count == 0)
		begin_detaching(module);
}

static void unload_if_unused(struct module *module)
{
	if (get_status(module) != MODULE_DETACHING || has_handles(module))
		return;
	if (!runtime_threads_has(module)) {
		unload_module(module);
	} else if (!module->said_threads) {
		module->said_threads = true;
		log_line("profiler '%s' is detached but not unloaded: a thread "
			 "of its own still runs",
			 module->name);
	}
}

void module_sweep(void)
{
	for (uint32_t i = 0; i < MODULES_MAX; i++)
		unload_if_unused(&modules[i]);
}

static struct module *find_module(const char *name)
{
	for (uint32_t i = 0; i < MODULES_MAX; i++)
		if (get_status(&modules[i]) != MODULE_NONE &&
		    text_equal(modules[i].name, name))
			return &modules[i];
	return NULL;
}

/* Also compares the name, because another module may use the entry now. */
static bool wait_until_gone(const struct module *module, const char *name)
{
	uint64_t until_ms = module_now_ms() + UNLOAD_WAIT_MS;

	do {
		if (get_status(module) != MODULE_DETACHING ||
		    !text_equal(module->name, name))
			return true;
		sys_sleep_ms(1);
	} while (module_now_ms() < until_ms);
	return false;
}

static const char *get_reason(const struct module *module)
{
	return detach_is_pending(module) ?
		       "is being detached: a thread is still in its code" :
		       "is detached but not unloaded: a thread of its own "
		       "still runs";
}

enum shim_result module_unload(const char *name, struct text *text)
{
	struct module *module = find_module(name);
	struct handles handles;
	bool stays;

	if (!module)
		return late_unload(name, text);
	if (get_status(module) < MODULE_INITIALIZING) {
		text_add(text, "it is being loaded or unloaded");
		return SHIM_E_PROFILER_DETACHING;
	}
	if (get_status(module) != MODULE_ACTIVE) {
		text_add(text, "its init function has not returned");
		return SHIM_E_PROFILER_NOT_YET_INITIALIZED;
	}
	collect_handles(&handles, module);
	for (uint32_t i = 0; i < handles.count; i++)
		detach_begin(handles.handle[i], 0);
	if (handles.count == 0 && begin_detaching(module))
		detach_look_again();
	stays = module->stays;
	if (!wait_until_gone(module, name)) {
		text_add(text, get_reason(module));
		return SHIM_S_FALSE;
	}
	text_add(text, stays ? "detached; its code stays in memory, because "
			       "its hooks were there from the start" :
			       "unloaded");
	return SHIM_OK;
}
