/*
 * Queries of profilers about images and functions.  Async functions use the data that
 * is already in memory (image.h, symbols.h); other functions may read files first.
 */
#include "image/enumeration.h"
#include "image/image.h"
#include "image/symbols.h"
#include "inspect/helper.h"
#include "inspect/info.h"
#include "os/sys.h"
#include "os/text.h"
#include "runtime/contract.h"
#include "runtime/log.h"
#include "runtime/output.h"
#include "unwind/unwind.h"

#include <errno.h>
#include <shim/info.h>

#include <shim/banned.h>

/* --- finding the image and the function of a query; the image must be pinned --- */

struct location {
	struct image_entry *image;
	uint64_t address;			 /* as the file has it */
	const struct symbols *symbols;		 /* NULL: not read yet */
	const struct symbols_function *function; /* NULL: no symbol */
};

static enum shim_result find_image(shim_image id, struct image_entry **image)
{
	bool has_been;

	*image = image_get(id, &has_been);
	if (*image)
		return SHIM_OK;
	return has_been ? SHIM_E_DATAINCOMPLETE : SHIM_E_INVALIDARG;
}

/* The image of @address may be loaded without shim's knowledge.  A callback that shim
 * called with the state lock held cannot search for the image. */
static void scan_for(uintptr_t address)
{
	bool found;

	image_pin();
	found = image_find(address) != NULL;
	image_unpin();
	if (!found && state_get() == STATE_RUNNING && !state_is_held())
		image_look_for(address);
}

static enum shim_result find_address(uintptr_t address,
				     struct location *location)
{
	*location = (struct location){ .image = image_find(address) };
	if (!location->image)
		return image_was_at(address) ? SHIM_E_DATAINCOMPLETE :
					       SHIM_E_INVALIDARG;
	location->address = address - location->image->bias;
	location->symbols = __atomic_load_n(&location->image->symbols,
					    __ATOMIC_ACQUIRE);
	if (location->symbols)
		location->function = symbols_find(location->symbols,
						  location->address);
	return SHIM_OK;
}

/* An address inside a function is not a function. */
static enum shim_result find_function(shim_function function,
				      struct location *location)
{
	enum shim_result r = find_address(function, location);

	if (r == SHIM_OK && location->function &&
	    location->function->start != location->address)
		return SHIM_E_INVALIDARG;
	return r;
}

/* Like find_function, but the function must have a symbol. */
static enum shim_result find_symbol(shim_function function,
				    struct location *location)
{
	enum shim_result r = find_function(function, location);

	if (r != SHIM_OK)
		return r;
	if (!location->symbols)
		return SHIM_E_NOT_YET_AVAILABLE;
	return location->function ? SHIM_OK : SHIM_E_FAIL;
}

static int read_at(void *address)
{
	struct image_entry *image = image_find((uintptr_t)address);

	/* The image may be loaded without shim's knowledge. */
	if (!image) {
		image_scan();
		image = image_find((uintptr_t)address);
	}
	if (!image)
		return image_lacks_memory() ? -ENOMEM : 0;
	return symbols_read(image);
}

/* If symbols cannot be read, the failure surfaces at the next lookup. */
static enum shim_result read_symbols(uintptr_t address)
{
	struct location location;
	bool is_read;
	int r = 0;

	image_pin();
	is_read = find_address(address, &location) == SHIM_OK &&
		  location.symbols;
	image_unpin();
	if (!is_read)
		r = state_slowly(read_at, (void *)address);
	return r == -ENOMEM ? SHIM_E_OUTOFMEMORY : SHIM_OK;
}

/* --- enumerations --- */

struct request {
	shim_image id;
	struct shim_enum *made;
	enum shim_result result;
};

/* Scans first, so that the list has images that were loaded without shim's
 * knowledge. */
static int list_images(void *argument)
{
	struct request *request = argument;
	struct image_entry *const *images;
	uint32_t count, n = 0;
	uint64_t *ids;

	image_scan();
	count = image_list(&images);
	request->result = enumeration_make(count, &request->made, &ids);
	if (request->result != SHIM_OK)
		return 0;
	for (uint32_t i = 0; i < count; i++)
		if (images[i]->id != 0)
			ids[n++] = images[i]->id;
	enumeration_fill(request->made, n);
	return 0;
}

static enum shim_result enumerate(int (*work)(void *), struct request *request,
				  struct shim_enum **enumeration)
{
	request->result = SHIM_E_FAIL;
	state_slowly(work, request);
	if (request->result == SHIM_OK)
		*enumeration = request->made;
	return request->result;
}

enum shim_result shim_image_enumerate(struct shim_enum **enumeration)
{
	struct request request = { 0 };

	ENTRY_MAY_BLOCK();
	if (!enumeration)
		return SHIM_E_INVALIDARG;
	return enumerate(list_images, &request, enumeration);
}

static bool is_wanted(const struct image_entry *image, shim_image id)
{
	return image->id != 0 && (id == 0 || image->id == id);
}

static int list_functions(void *argument)
{
	struct request *request = argument;
	struct image_entry *const *images;
	uint32_t image_count, n = 0;
	uint64_t count = 0, *ids;
	struct image_entry *image;

	image_scan();
	image_count = image_list(&images);
	if (request->id != 0) {
		request->result = find_image(request->id, &image);
		if (request->result != SHIM_OK)
			return 0;
	}
	for (uint32_t i = 0; i < image_count; i++) {
		if (!is_wanted(images[i], request->id))
			continue;
		if (symbols_read(images[i]) == -ENOMEM)
			count = UINT32_MAX;
		else if (images[i]->symbols)
			count += images[i]->symbols->function_count;
	}
	request->result = SHIM_E_OUTOFMEMORY;
	if (count < UINT32_MAX)
		request->result = enumeration_make((uint32_t)count,
						   &request->made, &ids);
	if (request->result != SHIM_OK)
		return 0;
	for (uint32_t i = 0; i < image_count; i++) {
		const struct symbols *symbols = images[i]->symbols;

		if (!is_wanted(images[i], request->id) || !symbols)
			continue;
		for (uint32_t k = 0; k < symbols->function_count; k++)
			ids[n++] = symbols->functions[k].start +
				   images[i]->bias;
	}
	enumeration_fill(request->made, n);
	return 0;
}

enum shim_result shim_function_enumerate(shim_image image,
					 struct shim_enum **enumeration)
{
	struct request request = { .id = image };

	ENTRY_MAY_BLOCK();
	if (!enumeration)
		return SHIM_E_INVALIDARG;
	return enumerate(list_functions, &request, enumeration);
}

/* --- images --- */

enum shim_result shim_image_info(shim_image image, const void **base,
				 size_t *size, intptr_t *bias, uint32_t *flags,
				 uint32_t count, uint32_t *total, char *path)
{
	struct image_entry *found;
	enum shim_result r;

	ENTRY_ASYNC();
	if (!output_is_valid(count, path))
		return SHIM_E_INVALIDARG;
	image_pin();
	r = find_image(image, &found);
	if (r == SHIM_OK) {
		if (base)
			*base = (const void *)found->start;
		if (size)
			*size = found->end - found->start;
		if (bias)
			*bias = (intptr_t)found->bias;
		if (flags)
			*flags = found->flags;
		output_text(found->path, found->path_size, count, total, path);
	}
	image_unpin();
	return r;
}

enum shim_result shim_image_build_id(shim_image image, uint32_t count,
				     uint32_t *total, unsigned char *id)
{
	struct image_entry *found;
	enum shim_result r;

	ENTRY_ASYNC();
	if (!output_is_valid(count, id))
		return SHIM_E_INVALIDARG;
	image_pin();
	r = find_image(image, &found);
	if (r == SHIM_OK)
		output_bytes(found->build_id, 1, found->build_id_size, count,
			     total, id);
	image_unpin();
	return r;
}

enum shim_result shim_image_from_address(const void *address, shim_image *image)
{
	struct location location;
	enum shim_result r;

	ENTRY_ASYNC();
	if (!image || !address)
		return SHIM_E_INVALIDARG;
	scan_for((uintptr_t)address);
	image_pin();
	r = find_address((uintptr_t)address, &location);
	if (r == SHIM_OK)
		*image = location.image->id;
	image_unpin();
	return r == SHIM_E_INVALIDARG ? SHIM_E_FAIL : r;
}

/* --- functions: from symbol tables --- */

enum shim_result
shim_profiler_enable_symbols(struct shim_profiler_handle *handle)
{
	ENTRY_INIT_OF(handle);
	symbols_enable();
	return SHIM_OK;
}

static enum shim_result function_at(const void *address,
				    shim_function *function)
{
	struct location location;
	enum shim_result r;

	scan_for((uintptr_t)address);
	image_pin();
	r = find_address((uintptr_t)address, &location);
	if (r == SHIM_OK && !location.symbols)
		r = SHIM_E_NOT_YET_AVAILABLE;
	else if (r == SHIM_E_INVALIDARG || (r == SHIM_OK && !location.function))
		r = SHIM_E_FAIL;
	else if (r == SHIM_OK)
		*function = location.function->start + location.image->bias;
	image_unpin();
	return r;
}

enum shim_result shim_function_from_address(const void *address,
					    shim_function *function)
{
	ENTRY_ASYNC();
	if (!function || !address)
		return SHIM_E_INVALIDARG;
	return function_at(address, function);
}

uintptr_t info_whole(uintptr_t part)
{
	shim_function function;

	read_symbols(part);
	return function_at((const void *)part, &function) == SHIM_OK ?
		       function :
		       part;
}

enum shim_result shim_function_find(const void *address,
				    shim_function *function)
{
	enum shim_result r;
	uintptr_t start;

	ENTRY_ASYNC();
	if (!function || !address)
		return SHIM_E_INVALIDARG;
	read_symbols((uintptr_t)address);
	r = function_at(address, function);
	if (r == SHIM_OK || r == SHIM_E_DATAINCOMPLETE)
		return r;
	start = unwind_code((uintptr_t)address, NULL);
	if (start == 0)
		return SHIM_E_FAIL;
	*function = start;
	return SHIM_OK;
}

enum shim_result shim_function_from_address2(const void *address,
					     shim_function *function)
{
	enum shim_result r;

	ENTRY_MAY_BLOCK();
	if (!function || !address)
		return SHIM_E_INVALIDARG;
	r = read_symbols((uintptr_t)address);
	return r == SHIM_OK ? function_at(address, function) : r;
}

enum shim_result shim_function_info(shim_function function, shim_image *image,
				    uint64_t *offset)
{
	struct location location;
	enum shim_result r;

	ENTRY_ASYNC();
	scan_for(function);
	image_pin();
	r = find_function(function, &location);
	if (r == SHIM_OK) {
		if (image)
			*image = location.image->id;
		if (offset)
			*offset = location.address;
	}
	image_unpin();
	return r;
}

static const char *names_of(const struct location *location)
{
	return location->symbols->text + location->function->names;
}

enum shim_result shim_function_name(shim_function function, uint32_t count,
				    uint32_t *total, char *name)
{
	struct location location;
	enum shim_result r;

	ENTRY_ASYNC();
	if (!output_is_valid(count, name))
		return SHIM_E_INVALIDARG;
	scan_for(function);
	image_pin();
	r = find_symbol(function, &location);
	if (r == SHIM_OK)
		output_text(names_of(&location),
			    text_length(names_of(&location)) + 1, count, total,
			    name);
	image_unpin();
	return r;
}

enum shim_result shim_function_aliases(shim_function function, uint32_t count,
				       uint32_t *total, char *names)
{
	struct location location;
	enum shim_result r;

	ENTRY_MAY_BLOCK();
	if (!output_is_valid(count, names))
		return SHIM_E_INVALIDARG;
	r = read_symbols(function);
	if (r != SHIM_OK)
		return r;
	image_pin();
	r = find_symbol(function, &location);
	if (r == SHIM_OK)
		output_text(names_of(&location), location.function->names_size,
			    count, total, names);
	image_unpin();
	return r;
}

enum shim_result shim_function_code(shim_function function, const void **start,
				    uint32_t *size)
{
	struct location location;
	enum shim_result r;

	ENTRY_ASYNC();
	scan_for(function);
	image_pin();
	r = find_symbol(function, &location);
	if (r == SHIM_OK) {
		if (start)
			*start = (const void *)function;
		if (size)
			*size = location.function->size;
	}
	image_unpin();
	return r;
}

enum shim_result shim_function_ranges(shim_function function, uint32_t count,
				      uint32_t *total,
				      struct shim_code_range *ranges)
{
	struct location location;
	enum shim_result r;

	ENTRY_ASYNC();
	if (!output_is_valid(count, ranges))
		return SHIM_E_INVALIDARG;
	scan_for(function);
	image_pin();
	r = find_symbol(function, &location);
	if (r == SHIM_OK) {
		uint32_t fill = output_count(
			1ull + location.function->part_count, count, total);

		if (fill > 0)
			ranges[0] = (struct shim_code_range){
				function, location.function->size
			};
		for (uint32_t i = 1; i < fill; i++) {
			const struct symbols_range *part =
				&location.symbols
					 ->parts[location.function->part + i -
						 1];

			ranges[i] = (struct shim_code_range){
				part->start + location.image->bias, part->size
			};
		}
	}
	image_unpin();
	return r;
}

/* --- functions: from debug information --- */

static void take_answer(const struct debuginfo_answer *answer, void *argument)
{
	struct output *output = argument;

	if (output->element == 0)
		output_text(answer->data, answer->count, output->count,
			    output->total, output->buffer);
	else
		output_bytes(answer->data, output->element, answer->count,
			     output->count, output->total, output->buffer);
}

void info_describe(const struct image_entry *image,
		   struct debuginfo_question *question)
{
	question->image = image->id;
	question->path = image->path;
	question->build_id = image->build_id;
	question->build_id_size = image->build_id_size;
	question->device = image->device;
	question->inode = image->inode;
	question->range_count = 0;
	question->inlined = NULL;
}

static void describe(const struct location *location,
		     struct debuginfo_question *question)
{
	const struct symbols_function *function = location->function;

	info_describe(location->image, question);
	question->ranges[0] = (struct debuginfo_range){ function->start,
							function->size };
	question->range_count = 1;
	for (uint32_t i = 0; i < function->part_count &&
			     question->range_count < DEBUGINFO_RANGES;
	     i++) {
		const struct symbols_range *part =
			&location->symbols->parts[function->part + i];

		question->ranges[question->range_count++] =
			(struct debuginfo_range){ part->start, part->size };
	}
}

/* Logs once for each image that a function has no symbol, without which shim cannot
 * query debug information. */
static void log_no_symbol(const struct location *location)
{
	shim_image id = location->image->id;

	if (__atomic_exchange_n(&location->image->logged_id, id,
				__ATOMIC_RELAXED) == id)
		return;
	log_line("no symbol for a function, %s: no lines, no arguments: %s",
		 location->symbols->function_count > 0 ?
			 "it was stripped" :
			 "the file was stripped or differs from the loaded "
			 "object",
		 location->image->path);
}

/* The image stays pinned during the query. */
enum shim_result
info_ask_at(enum helper_verb verb, shim_function function, uintptr_t site,
	    void (*use)(const struct debuginfo_answer *answer, void *argument),
	    void *argument)
{
	struct debuginfo_question question;
	struct location location;
	enum shim_result r;

	r = read_symbols(function);
	if (r != SHIM_OK)
		return r;
	image_pin();
	r = find_symbol(function, &location);
	if (r == SHIM_E_FAIL) {
		log_no_symbol(&location);
		r = SHIM_E_FUNCTION_NOT_IL;
	}
	if (r == SHIM_OK) {
		describe(&location, &question);
		question.site = site - location.image->bias;
		r = helper_ask(verb, &question, NULL, use, argument);
	}
	image_unpin();
	return r;
}

/*
 * Whether a function of an object without hooks was inlined into the object whose hook
 * runs (clang, functions in headers).  The debug information of the second object
 * describes the function.  So shim need not read that of the first object, which may be
 * large (libc).
 */
static bool is_inlined_elsewhere(const struct location *function,
				 const struct location *hook)
{
	return hook->image && hook->image != function->image &&
	       !__atomic_load_n(&function->image->has_hooks, __ATOMIC_ACQUIRE);
}

enum shim_result info_ask_prototype(
	shim_function function, uintptr_t return_address,
	void (*use)(const struct debuginfo_answer *answer, void *argument),
	void *argument)
{
	struct debuginfo_question question;
	struct location location, hook;
	enum shim_result r;

	read_symbols(function);
	image_pin();
	r = find_symbol(function, &location);
	if (r == SHIM_OK && find_address(return_address, &hook) == SHIM_OK &&
	    is_inlined_elsewhere(&location, &hook)) {
		info_describe(hook.image, &question);
		question.site = hook.address;
		question.inlined = location.symbols->text +
				   location.function->names;
		question.inlined_size = location.function->names_size;
		r = helper_ask(HELPER_PROTOTYPE, &question, NULL, use,
			       argument);
		image_unpin();
		return r;
	}
	image_unpin();
	return info_ask(HELPER_PROTOTYPE, function, use, argument);
}

bool info_is_called_from_outside(uintptr_t site, shim_function function,
				 uintptr_t *caller)
{
	struct location location, target;
	bool is_outside;

	read_symbols(site - 1);
	image_pin();
	is_outside = find_address(site - 1, &location) == SHIM_OK &&
		     find_address(function, &target) == SHIM_OK &&
		     location.image != target.image && location.function &&
		     !__atomic_load_n(&location.image->has_hooks,
				      __ATOMIC_ACQUIRE);
	if (is_outside)
		*caller = location.function->start + location.image->bias;
	image_unpin();
	return is_outside;
}

/* A call that does not return may be the last instruction of its function. */
enum shim_result info_ask_callsite(
	enum helper_verb verb, uintptr_t site, shim_function function,
	void (*use)(const struct debuginfo_answer *answer, void *argument),
	void *argument)
{
	struct debuginfo_question question;
	struct location location, target;
	enum shim_result r;

	r = read_symbols(site - 1);
	if (r != SHIM_OK)
		return r;
	image_pin();
	r = find_address(site - 1, &location);
	if (r == SHIM_OK && !location.function)
		r = SHIM_E_FUNCTION_NOT_IL;
	if (r == SHIM_OK) {
		describe(&location, &question);
		question.bias = location.image->bias;
		question.site = site - location.image->bias;
		question.callee = 0;
		if (find_address(function, &target) != SHIM_OK ||
		    target.image == location.image)
			question.callee = function - location.image->bias;
		r = helper_ask(verb, &question, NULL, use, argument);
	}
	image_unpin();
	return r;
}

enum shim_result info_ask(enum helper_verb verb, shim_function function,
			  void (*use)(const struct debuginfo_answer *answer,
				      void *argument),
			  void *argument)
{
	return info_ask_at(verb, function, function, use, argument);
}

static enum shim_result query_debuginfo(enum helper_verb verb,
					shim_function function,
					struct output *output)
{
	if (!output_is_valid(output->count, output->buffer))
		return SHIM_E_INVALIDARG;
	return info_ask(verb, function, take_answer, output);
}

bool info_image(shim_function function, uintptr_t *start, uintptr_t *end,
		uintptr_t *bias)
{
	const struct image_entry *image;

	image_pin();
	image = image_find(function);
	if (image) {
		*start = image->start;
		*end = image->end;
		*bias = image->bias;
	}
	image_unpin();
	return image != NULL;
}

uintptr_t info_code_end(shim_function function)
{
	struct location location;
	uintptr_t end = 0;

	image_pin();
	if (find_symbol(function, &location) == SHIM_OK)
		end = function + location.function->size;
	image_unpin();
	return end;
}

static const char *output_name(const struct location *location,
			       uint64_t *offset)
{
	if (!location->function) {
		*offset = location->address + location->image->bias -
			  location->image->start;
		return text_base(location->image->path);
	}
	*offset = location->address - location->function->start;
	return names_of(location);
}

bool info_name_address(uintptr_t address, bool may_read, char *name,
		       size_t size, uint64_t *offset)
{
	struct location location;
	bool is_known;

	image_pin();
	is_known = find_address(address, &location) == SHIM_OK;
	image_unpin();
	if (is_known && !location.symbols && may_read)
		state_slowly(read_at, (void *)address);
	image_pin();
	is_known = is_known && find_address(address, &location) == SHIM_OK;
	if (is_known) {
		const char *found = output_name(&location, offset);

		output_text(found, text_length(found) + 1, (uint32_t)size, NULL,
			    name);
	}
	image_unpin();
	return is_known;
}

uint32_t info_code_ranges(shim_function function, uint32_t room,
			  struct decode_range *ranges)
{
	struct debuginfo_question question = { .range_count = 0 };
	struct location location;
	uint32_t count = 0;

	image_pin();
	if (find_symbol(function, &location) == SHIM_OK)
		describe(&location, &question);
	image_unpin();
	for (; count < question.range_count && count < room; count++) {
		ranges[count].start = function + question.ranges[count].start -
				      question.ranges[0].start;
		ranges[count].end = ranges[count].start +
				    question.ranges[count].size;
	}
	return count;
}

enum shim_result shim_function_lines(shim_function function, uint32_t count,
				     uint32_t *total, struct shim_line *lines)
{
	struct output output = { sizeof(*lines), count, total, lines };

	ENTRY_MAY_BLOCK();
	return query_debuginfo(HELPER_LINES, function, &output);
}

enum shim_result shim_function_file(shim_function function, uint32_t count,
				    uint32_t *total, char *path)
{
	struct output output = { 0, count, total, path };

	ENTRY_MAY_BLOCK();
	return query_debuginfo(HELPER_FILE, function, &output);
}

enum shim_result shim_function_template_arguments(shim_function function,
						  uint32_t count,
						  uint32_t *total, char *names)
{
	struct output output = { 0, count, total, names };

	ENTRY_MAY_BLOCK();
	return query_debuginfo(HELPER_TEMPLATE_ARGUMENTS, function, &output);
}

static enum shim_result output_demangled(const char *name,
					 const struct output *output)
{
	enum shim_result r = SHIM_E_FUNCTION_NOT_IL;

	if (text_after(name, "_Z"))
		r = helper_ask(HELPER_DEMANGLE, NULL, name, take_answer,
			       (void *)output);
	if (r != SHIM_E_FUNCTION_NOT_IL)
		return r;
	output_text(name, text_length(name) + 1, output->count, output->total,
		    output->buffer);
	return SHIM_OK;
}

enum shim_result shim_function_demangled_name(shim_function function,
					      uint32_t count, uint32_t *total,
					      char *name)
{
	struct output output = { 0, count, total, name };
	struct location location;
	enum shim_result r;

	ENTRY_MAY_BLOCK();
	if (!output_is_valid(count, name))
		return SHIM_E_INVALIDARG;
	r = read_symbols(function);
	if (r != SHIM_OK)
		return r;
	image_pin();
	r = find_symbol(function, &location);
	if (r == SHIM_OK)
		r = output_demangled(names_of(&location), &output);
	image_unpin();
	return r;
}

/* --- instances --- */

struct call_target {
	shim_function function;
	uint32_t name; /* its index among the names of its address */
};

/* The linker merges functions with the same code, so an address may have several
 * names. */
static void choose_name(const struct debuginfo_answer *answer, void *argument)
{
	struct call_target *target = argument;
	struct location location;
	const char *names;

	image_pin();
	if (find_symbol(target->function, &location) == SHIM_OK) {
		names = names_of(&location);
		for (uint32_t at = 0; at < location.function->names_size;
		     at += (uint32_t)text_length(names + at) + 1)
			if (text_equal(names + at, answer->data))
				target->name = at;
	}
	image_unpin();
}

static bool has_several_names(shim_function function)
{
	struct location location;
	bool has_several;

	image_pin();
	has_several = find_symbol(function, &location) == SHIM_OK &&
		      text_length(names_of(&location)) + 1 <
			      location.function->names_size;
	image_unpin();
	return has_several;
}

/* The compiler's copies of a function for some callers append a dot to its name. */
static const char *output_copy_name(const char *name, uintptr_t code)
{
	struct location location;
	const char *rest;

	if (find_symbol(code, &location) != SHIM_OK)
		return name;
	rest = text_after(names_of(&location), name);
	return rest && *rest == '.' ? names_of(&location) : name;
}

enum shim_result info_output_instance(shim_function function, uintptr_t ip,
				      uintptr_t site, uintptr_t *code,
				      const struct output *name)
{
	struct call_target target = { .function = function };
	struct location location;
	enum shim_result r = read_symbols(function);

	if (r != SHIM_OK)
		return r;
	read_symbols(ip - 1);
	if (has_several_names(function))
		info_ask_callsite(HELPER_CALLED, site, function, choose_name,
				  &target);
	image_pin();
	r = find_symbol(function, &location);
	if (r == SHIM_OK) {
		if (ip == 0 ||
		    function_at((const void *)(ip - 1), code) != SHIM_OK)
			*code = function;
		r = output_demangled(
			output_copy_name(names_of(&location) + target.name,
					 *code),
			name);
	}
	image_unpin();
	return r;
}
