/*
 * Queries about functions that need debug information: lines, files, template
 * arguments, demangled names, prototypes, call sites and instances.  helper.h makes
 * them; this file describes the function to it, and keeps its image pinned meanwhile.
 */
#include "image/image.h"
#include "image/symbols.h"
#include "inspect/helper.h"
#include "inspect/info.h"
#include "inspect/info_location.h"
#include "inspect/known.h"
#include "os/text.h"
#include "runtime/contract.h"
#include "runtime/log.h"
#include "runtime/output.h"

#include <shim/info.h>

#include <shim/banned.h>

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

static void describe(const struct info_location *location,
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
static void log_no_symbol(const struct info_location *location)
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

static bool ends_with(const char *name, const char *end)
{
	size_t length = text_length(name), size = text_length(end);

	return length > size && text_equal(name + length - size, end);
}

/* clang's parts of a coroutine get its frame and return nothing, but their debug information
 * has the parameters and the result of the coroutine. */
static bool is_coroutine_part(const struct info_location *location)
{
	static const char *const ends[] = { ".resume", ".destroy", ".cleanup" };
	const char *names = info_names_of(location);

	for (uint32_t at = 0; at < location->function->names_size;
	     at += (uint32_t)text_length(names + at) + 1)
		for (unsigned i = 0; i < sizeof(ends) / sizeof(*ends); i++)
			if (ends_with(names + at, ends[i]))
				return true;
	return false;
}

/* The image stays pinned during the query. */
enum shim_result
info_ask_at(enum helper_verb verb, shim_function function, uintptr_t site,
	    void (*use)(const struct debuginfo_answer *answer, void *argument),
	    void *argument)
{
	struct debuginfo_question question;
	struct info_location location;
	enum shim_result r;

	r = info_read_symbols(function);
	if (r != SHIM_OK)
		return r;
	image_pin();
	r = info_find_symbol(function, &location);
	if (r == SHIM_E_FAIL) {
		log_no_symbol(&location);
		r = SHIM_E_FUNCTION_NOT_IL;
	}
	if (r == SHIM_OK &&
	    (verb == HELPER_PROTOTYPE || verb == HELPER_SIGNATURE) &&
	    is_coroutine_part(&location))
		r = SHIM_E_FUNCTION_NOT_IL;
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
static bool is_inlined_elsewhere(const struct info_location *function,
				 const struct info_location *hook)
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
	struct info_location location, hook;
	enum shim_result r;

	if (known_answer(HELPER_PROTOTYPE, function, use, argument))
		return SHIM_OK;
	info_read_symbols(function);
	image_pin();
	r = info_find_symbol(function, &location);
	if (r == SHIM_OK &&
	    info_find_address(return_address, &hook) == SHIM_OK &&
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
	struct info_location location, target;
	bool is_outside;

	info_read_symbols(site - 1);
	image_pin();
	is_outside = info_find_address(site - 1, &location) == SHIM_OK &&
		     info_find_address(function, &target) == SHIM_OK &&
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
	struct info_location location, target;
	enum shim_result r;

	r = info_read_symbols(site - 1);
	if (r != SHIM_OK)
		return r;
	image_pin();
	r = info_find_address(site - 1, &location);
	if (r == SHIM_OK && !location.function)
		r = SHIM_E_FUNCTION_NOT_IL;
	if (r == SHIM_OK) {
		describe(&location, &question);
		question.bias = location.image->bias;
		question.site = site - location.image->bias;
		question.callee = 0;
		if (info_find_address(function, &target) != SHIM_OK ||
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
	return known_answer(verb, function, use, argument) ?
		       SHIM_OK :
		       info_ask_at(verb, function, function, use, argument);
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
	struct info_location location;
	uintptr_t end = 0;

	image_pin();
	if (info_find_symbol(function, &location) == SHIM_OK)
		end = function + location.function->size;
	image_unpin();
	return end;
}

static const char *output_name(const struct info_location *location,
			       uint64_t *offset)
{
	if (!location->function) {
		*offset = location->address + location->image->bias -
			  location->image->start;
		return text_base(location->image->path);
	}
	*offset = location->address - location->function->start;
	return info_names_of(location);
}

bool info_name_address(uintptr_t address, bool may_read, char *name,
		       size_t size, uint64_t *offset)
{
	struct info_location location;
	bool is_known;

	image_pin();
	is_known = info_find_address(address, &location) == SHIM_OK;
	image_unpin();
	if (is_known && !location.symbols && may_read)
		info_read_symbols(address);
	image_pin();
	is_known = is_known && info_find_address(address, &location) == SHIM_OK;
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
	struct info_location location;
	uint32_t count = 0;

	image_pin();
	if (info_find_symbol(function, &location) == SHIM_OK)
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
	struct info_location location;
	enum shim_result r;

	ENTRY_MAY_BLOCK();
	if (!output_is_valid(count, name))
		return SHIM_E_INVALIDARG;
	r = info_read_symbols(function);
	if (r != SHIM_OK)
		return r;
	image_pin();
	r = info_find_symbol(function, &location);
	if (r == SHIM_OK)
		r = output_demangled(info_names_of(&location), &output);
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
	struct info_location location;
	const char *names;

	image_pin();
	if (info_find_symbol(target->function, &location) == SHIM_OK) {
		names = info_names_of(&location);
		for (uint32_t at = 0; at < location.function->names_size;
		     at += (uint32_t)text_length(names + at) + 1)
			if (text_equal(names + at, answer->data))
				target->name = at;
	}
	image_unpin();
}

static bool has_several_names(shim_function function)
{
	struct info_location location;
	bool has_several;

	image_pin();
	has_several = info_find_symbol(function, &location) == SHIM_OK &&
		      text_length(info_names_of(&location)) + 1 <
			      location.function->names_size;
	image_unpin();
	return has_several;
}

/* The compiler's copies of a function for some callers append a dot to its name. */
static const char *output_copy_name(const char *name, uintptr_t code)
{
	struct info_location location;
	const char *rest;

	if (info_find_symbol(code, &location) != SHIM_OK)
		return name;
	rest = text_after(info_names_of(&location), name);
	return rest && *rest == '.' ? info_names_of(&location) : name;
}

enum shim_result info_output_instance(shim_function function, uintptr_t ip,
				      uintptr_t site, uintptr_t *code,
				      const struct output *name)
{
	struct call_target target = { .function = function };
	struct info_location location;
	enum shim_result r = info_read_symbols(function);

	if (r != SHIM_OK)
		return r;
	info_read_symbols(ip - 1);
	if (has_several_names(function))
		info_ask_callsite(HELPER_CALLED, site, function, choose_name,
				  &target);
	image_pin();
	r = info_find_symbol(function, &location);
	if (r == SHIM_OK) {
		if (ip == 0 ||
		    info_function_at((const void *)(ip - 1), code) != SHIM_OK)
			*code = function;
		r = output_demangled(
			output_copy_name(info_names_of(&location) + target.name,
					 *code),
			name);
	}
	image_unpin();
	return r;
}
