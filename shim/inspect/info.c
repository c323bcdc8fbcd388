/*
 * Queries of profilers about images and functions.  Async functions use the data that
 * is already in memory (image.h, symbols.h); other functions may read files first.
 */
#include "image/enumeration.h"
#include "image/image.h"
#include "image/symbols.h"
#include "inspect/info.h"
#include "inspect/info_location.h"
#include "os/text.h"
#include "runtime/contract.h"
#include "runtime/output.h"
#include "unwind/unwind.h"

#include <errno.h>
#include <shim/info.h>

#include <shim/banned.h>

static enum shim_result find_image(shim_image id, struct image_entry **image)
{
	bool has_been;

	*image = image_get(id, &has_been);
	if (*image)
		return SHIM_OK;
	return has_been ? SHIM_E_DATAINCOMPLETE : SHIM_E_INVALIDARG;
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
	state_call_locked(work, request);
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
	struct info_location location;
	enum shim_result r;

	ENTRY_ASYNC();
	if (!image || !address)
		return SHIM_E_INVALIDARG;
	info_scan_for((uintptr_t)address);
	image_pin();
	r = info_find_address((uintptr_t)address, &location);
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

enum shim_result shim_function_from_address(const void *address,
					    shim_function *function)
{
	ENTRY_ASYNC();
	if (!function || !address)
		return SHIM_E_INVALIDARG;
	return info_function_at(address, function);
}

uintptr_t info_whole(uintptr_t part)
{
	shim_function function;

	info_read_symbols(part);
	return info_function_at((const void *)part, &function) == SHIM_OK ?
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
	info_read_symbols((uintptr_t)address);
	r = info_function_at(address, function);
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
	r = info_read_symbols((uintptr_t)address);
	return r == SHIM_OK ? info_function_at(address, function) : r;
}

enum shim_result shim_function_info(shim_function function, shim_image *image,
				    uint64_t *offset)
{
	struct info_location location;
	enum shim_result r;

	ENTRY_ASYNC();
	info_scan_for(function);
	image_pin();
	r = info_find_function(function, &location);
	if (r == SHIM_OK) {
		if (image)
			*image = location.image->id;
		if (offset)
			*offset = location.address;
	}
	image_unpin();
	return r;
}

size_t info_copy_names(shim_function function, char *names, size_t size)
{
	struct info_location location;
	size_t used = 0;

	info_scan_for(function);
	image_pin();
	if (info_find_symbol(function, &location) == SHIM_OK) {
		const char *from = info_names_of(&location);

		for (size_t i = 0;
		     i < location.function->names_size && i < size; i++) {
			names[i] = from[i];
			if (names[i] == '\0')
				used = i + 1;
		}
	}
	image_unpin();
	return used;
}

enum shim_result shim_function_name(shim_function function, uint32_t count,
				    uint32_t *total, char *name)
{
	struct info_location location;
	enum shim_result r;

	ENTRY_ASYNC();
	if (!output_is_valid(count, name))
		return SHIM_E_INVALIDARG;
	info_scan_for(function);
	image_pin();
	r = info_find_symbol(function, &location);
	if (r == SHIM_OK)
		output_text(info_names_of(&location),
			    text_length(info_names_of(&location)) + 1, count,
			    total, name);
	image_unpin();
	return r;
}

enum shim_result shim_function_aliases(shim_function function, uint32_t count,
				       uint32_t *total, char *names)
{
	struct info_location location;
	enum shim_result r;

	ENTRY_MAY_BLOCK();
	if (!output_is_valid(count, names))
		return SHIM_E_INVALIDARG;
	r = info_read_symbols(function);
	if (r != SHIM_OK)
		return r;
	image_pin();
	r = info_find_symbol(function, &location);
	if (r == SHIM_OK)
		output_text(info_names_of(&location),
			    location.function->names_size, count, total, names);
	image_unpin();
	return r;
}

enum shim_result shim_function_code(shim_function function, const void **start,
				    uint32_t *size)
{
	struct info_location location;
	enum shim_result r;

	ENTRY_ASYNC();
	info_scan_for(function);
	image_pin();
	r = info_find_symbol(function, &location);
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
	struct info_location location;
	enum shim_result r;

	ENTRY_ASYNC();
	if (!output_is_valid(count, ranges))
		return SHIM_E_INVALIDARG;
	info_scan_for(function);
	image_pin();
	r = info_find_symbol(function, &location);
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
