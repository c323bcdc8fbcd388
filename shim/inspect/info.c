/*
 * Queries of profilers about images and functions.  Async functions use what is in
 * memory (image.h, symbols.h); the others may read files first.
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

/* --- finding the place of a query; the image must be pinned --- */

struct place {
	struct image_entry *image;
	uint64_t address;			 /* in the file */
	const struct symbols *symbols;		 /* NULL: not read yet */
	const struct symbols_function *function; /* NULL: it has no symbol */
};

static enum shim_result find_image(shim_image id, struct image_entry **image)
{
	bool has_been;

	*image = image_get(id, &has_been);
	if (*image)
		return SHIM_OK;
	return has_been ? SHIM_E_DATAINCOMPLETE : SHIM_E_INVALIDARG;
}

/* The image of @address may be loaded without shim's knowledge.  A caller that shim
 * called with the state lock held cannot search for it. */
static void look_for(uintptr_t address)
{
	bool found;

	image_pin();
	found = image_find(address) != NULL;
	image_unpin();
	if (!found && state_get() == STATE_RUNNING && !state_is_held())
		image_look_for(address);
}

static enum shim_result find_address(uintptr_t address, struct place *place)
{
	*place = (struct place){ .image = image_find(address) };
	if (!place->image)
		return image_was_at(address) ? SHIM_E_DATAINCOMPLETE :
					       SHIM_E_INVALIDARG;
	place->address = address - place->image->bias;
	place->symbols = __atomic_load_n(&place->image->symbols,
					 __ATOMIC_ACQUIRE);
	if (place->symbols)
		place->function = symbols_find(place->symbols, place->address);
	return SHIM_OK;
}

/* Interior addresses are no functions. */
static enum shim_result find_function(shim_function function,
				      struct place *place)
{
	enum shim_result r = find_address(function, place);

	if (r == SHIM_OK && place->function &&
	    place->function->start != place->address)
		return SHIM_E_INVALIDARG;
	return r;
}

/* The same; the function must have a symbol. */
static enum shim_result find_symbol(shim_function function, struct place *place)
{
	enum shim_result r = find_function(function, place);

	if (r != SHIM_OK)
		return r;
	if (!place->symbols)
		return SHIM_E_NOT_YET_AVAILABLE;
	return place->function ? SHIM_OK : SHIM_E_FAIL;
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
	struct place place;
	bool is_read;
	int r = 0;

	image_pin();
	is_read = find_address(address, &place) == SHIM_OK && place.symbols;
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

/* Scans first, so that images are listed that were loaded without shim's knowledge. */
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
	struct place place;
	enum shim_result r;

	ENTRY_ASYNC();
	if (!image || !address)
		return SHIM_E_INVALIDARG;
	look_for((uintptr_t)address);
	image_pin();
	r = find_address((uintptr_t)address, &place);
	if (r == SHIM_OK)
		*image = place.image->id;
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
	struct place place;
	enum shim_result r;

	look_for((uintptr_t)address);
	image_pin();
	r = find_address((uintptr_t)address, &place);
	if (r == SHIM_OK && !place.symbols)
		r = SHIM_E_NOT_YET_AVAILABLE;
	else if (r == SHIM_E_INVALIDARG || (r == SHIM_OK && !place.function))
		r = SHIM_E_FAIL;
	else if (r == SHIM_OK)
		*function = place.function->start + place.image->bias;
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
	struct place place;
	enum shim_result r;

	ENTRY_ASYNC();
	look_for(function);
	image_pin();
	r = find_function(function, &place);
	if (r == SHIM_OK) {
		if (image)
			*image = place.image->id;
		if (offset)
			*offset = place.address;
	}
	image_unpin();
	return r;
}

static const char *names_of(const struct place *place)
{
	return place->symbols->text + place->function->names;
}

enum shim_result shim_function_name(shim_function function, uint32_t count,
				    uint32_t *total, char *name)
{
	struct place place;
	enum shim_result r;

	ENTRY_ASYNC();
	if (!output_is_valid(count, name))
		return SHIM_E_INVALIDARG;
	look_for(function);
	image_pin();
	r = find_symbol(function, &place);
	if (r == SHIM_OK)
		output_text(names_of(&place), text_length(names_of(&place)) + 1,
			    count, total, name);
	image_unpin();
	return r;
}

enum shim_result shim_function_aliases(shim_function function, uint32_t count,
				       uint32_t *total, char *names)
{
	struct place place;
	enum shim_result r;

	ENTRY_MAY_BLOCK();
	if (!output_is_valid(count, names))
		return SHIM_E_INVALIDARG;
	r = read_symbols(function);
	if (r != SHIM_OK)
		return r;
	image_pin();
	r = find_symbol(function, &place);
	if (r == SHIM_OK)
		output_text(names_of(&place), place.function->names_size, count,
			    total, names);
	image_unpin();
	return r;
}

enum shim_result shim_function_code(shim_function function, const void **start,
				    uint32_t *size)
{
	struct place place;
	enum shim_result r;

	ENTRY_ASYNC();
	look_for(function);
	image_pin();
	r = find_symbol(function, &place);
	if (r == SHIM_OK) {
		if (start)
			*start = (const void *)function;
		if (size)
			*size = place.function->size;
	}
	image_unpin();
	return r;
}

enum shim_result shim_function_ranges(shim_function function, uint32_t count,
				      uint32_t *total,
				      struct shim_code_range *ranges)
{
	struct place place;
	enum shim_result r;

	ENTRY_ASYNC();
	if (!output_is_valid(count, ranges))
		return SHIM_E_INVALIDARG;
	look_for(function);
	image_pin();
	r = find_symbol(function, &place);
	if (r == SHIM_OK) {
		uint32_t fill = output_count(1ull + place.function->part_count,
					     count, total);

		if (fill > 0)
			ranges[0] = (struct shim_code_range){
				function, place.function->size
			};
		for (uint32_t i = 1; i < fill; i++) {
			const struct symbols_range *part =
				&place.symbols
					 ->parts[place.function->part + i - 1];

			ranges[i] = (struct shim_code_range){
				part->start + place.image->bias, part->size
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

static void describe(const struct place *place,
		     struct debuginfo_question *question)
{
	const struct symbols_function *function = place->function;

	info_describe(place->image, question);
	question->ranges[0] = (struct debuginfo_range){ function->start,
							function->size };
	question->range_count = 1;
	for (uint32_t i = 0; i < function->part_count &&
			     question->range_count < DEBUGINFO_RANGES;
	     i++) {
		const struct symbols_range *part =
			&place->symbols->parts[function->part + i];

		question->ranges[question->range_count++] =
			(struct debuginfo_range){ part->start, part->size };
	}
}

/* Debug information cannot be queried without a symbol; logs that once for each
 * image. */
static void note_no_symbol(const struct place *place)
{
	shim_image id = place->image->id;

	if (__atomic_exchange_n(&place->image->logged_id, id,
				__ATOMIC_RELAXED) == id)
		return;
	log_line("no symbol for a function, %s: no lines, no arguments: %s",
		 place->symbols->function_count > 0 ?
			 "it was stripped" :
			 "the file was stripped or differs from the loaded "
			 "object",
		 place->image->path);
}

/* The image stays pinned during the query. */
enum shim_result
info_ask_at(enum helper_verb verb, shim_function function, uintptr_t site,
	    void (*use)(const struct debuginfo_answer *answer, void *argument),
	    void *argument)
{
	struct debuginfo_question question;
	struct place place;
	enum shim_result r;

	r = read_symbols(function);
	if (r != SHIM_OK)
		return r;
	image_pin();
	r = find_symbol(function, &place);
	if (r == SHIM_E_FAIL) {
		note_no_symbol(&place);
		r = SHIM_E_FUNCTION_NOT_IL;
	}
	if (r == SHIM_OK) {
		describe(&place, &question);
		question.site = site - place.image->bias;
		r = helper_ask(verb, &question, NULL, use, argument);
	}
	image_unpin();
	return r;
}

/*
 * Whether a function of an object without hooks was inlined into another object, whose
 * hook runs (clang, functions in headers).  The debug information of the other object
 * describes it, so shim need not read the function's own, which may be large (libc).
 */
static bool is_inlined_elsewhere(const struct place *function,
				 const struct place *hook)
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
	struct place place, hook;
	enum shim_result r;

	read_symbols(function);
	image_pin();
	r = find_symbol(function, &place);
	if (r == SHIM_OK && find_address(return_address, &hook) == SHIM_OK &&
	    is_inlined_elsewhere(&place, &hook)) {
		info_describe(hook.image, &question);
		question.site = hook.address;
		question.inlined = place.symbols->text + place.function->names;
		question.inlined_size = place.function->names_size;
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
	struct place place, called;
	bool is_outside;

	read_symbols(site - 1);
	image_pin();
	is_outside = find_address(site - 1, &place) == SHIM_OK &&
		     find_address(function, &called) == SHIM_OK &&
		     place.image != called.image && place.function &&
		     !__atomic_load_n(&place.image->has_hooks,
				      __ATOMIC_ACQUIRE);
	if (is_outside)
		*caller = place.function->start + place.image->bias;
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
	struct place place, called;
	enum shim_result r;

	r = read_symbols(site - 1);
	if (r != SHIM_OK)
		return r;
	image_pin();
	r = find_address(site - 1, &place);
	if (r == SHIM_OK && !place.function)
		r = SHIM_E_FUNCTION_NOT_IL;
	if (r == SHIM_OK) {
		describe(&place, &question);
		question.bias = place.image->bias;
		question.site = site - place.image->bias;
		question.callee = 0;
		if (find_address(function, &called) != SHIM_OK ||
		    called.image == place.image)
			question.callee = function - place.image->bias;
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
	struct place place;
	uintptr_t end = 0;

	image_pin();
	if (find_symbol(function, &place) == SHIM_OK)
		end = function + place.function->size;
	image_unpin();
	return end;
}

static const char *name_place(const struct place *place, uint64_t *offset)
{
	if (!place->function) {
		*offset = place->address + place->image->bias -
			  place->image->start;
		return text_base(place->image->path);
	}
	*offset = place->address - place->function->start;
	return names_of(place);
}

bool info_name_address(uintptr_t address, bool may_read, char *name,
		       size_t size, uint64_t *offset)
{
	struct place place;
	bool is_known;

	image_pin();
	is_known = find_address(address, &place) == SHIM_OK;
	image_unpin();
	if (is_known && !place.symbols && may_read)
		state_slowly(read_at, (void *)address);
	image_pin();
	is_known = is_known && find_address(address, &place) == SHIM_OK;
	if (is_known) {
		const char *found = name_place(&place, offset);

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
	struct place place;
	uint32_t count = 0;

	image_pin();
	if (find_symbol(function, &place) == SHIM_OK)
		describe(&place, &question);
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

static enum shim_result tell_demangled(const char *name,
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
	struct place place;
	enum shim_result r;

	ENTRY_MAY_BLOCK();
	if (!output_is_valid(count, name))
		return SHIM_E_INVALIDARG;
	r = read_symbols(function);
	if (r != SHIM_OK)
		return r;
	image_pin();
	r = find_symbol(function, &place);
	if (r == SHIM_OK)
		r = tell_demangled(names_of(&place), &output);
	image_unpin();
	return r;
}

/* --- instances --- */

struct called {
	shim_function function;
	uint32_t name; /* its place among the names of its address */
};

/* The linker merges functions with the same code. */
static void find_called(const struct debuginfo_answer *answer, void *argument)
{
	struct called *called = argument;
	struct place place;
	const char *names;

	image_pin();
	if (find_symbol(called->function, &place) == SHIM_OK) {
		names = names_of(&place);
		for (uint32_t at = 0; at < place.function->names_size;
		     at += (uint32_t)text_length(names + at) + 1)
			if (text_equal(names + at, answer->data))
				called->name = at;
	}
	image_unpin();
}

static bool has_several_names(shim_function function)
{
	struct place place;
	bool has_several;

	image_pin();
	has_several = find_symbol(function, &place) == SHIM_OK &&
		      text_length(names_of(&place)) + 1 <
			      place.function->names_size;
	image_unpin();
	return has_several;
}

/* The compiler's copies of a function for some callers append a dot to its name. */
static const char *name_copy(const char *name, uintptr_t code)
{
	struct place place;
	const char *rest;

	if (find_symbol(code, &place) != SHIM_OK)
		return name;
	rest = text_after(names_of(&place), name);
	return rest && *rest == '.' ? names_of(&place) : name;
}

enum shim_result info_tell_instance(shim_function function, uintptr_t ip,
				    uintptr_t site, uintptr_t *code,
				    const struct output *name)
{
	struct called called = { .function = function };
	struct place place;
	enum shim_result r = read_symbols(function);

	if (r != SHIM_OK)
		return r;
	read_symbols(ip - 1);
	if (has_several_names(function))
		info_ask_callsite(HELPER_CALLED, site, function, find_called,
				  &called);
	image_pin();
	r = find_symbol(function, &place);
	if (r == SHIM_OK) {
		if (ip == 0 ||
		    function_at((const void *)(ip - 1), code) != SHIM_OK)
			*code = function;
		r = tell_demangled(
			name_copy(names_of(&place) + called.name, *code), name);
	}
	image_unpin();
	return r;
}
