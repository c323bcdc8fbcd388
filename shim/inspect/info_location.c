/*
 * Finds the image and the function of a query in the data that is already in memory,
 * and reads the symbols that it lacks.
 */
#include "inspect/info_location.h"

#include "runtime/contract.h"

#include <errno.h>

#include <shim/banned.h>

void info_scan_for(uintptr_t address)
{
	bool found;

	image_pin();
	found = image_find(address) != NULL;
	image_unpin();
	if (!found && state_get() == STATE_RUNNING && !state_is_held())
		image_look_for(address);
}

enum shim_result info_find_address(uintptr_t address,
				   struct info_location *location)
{
	*location = (struct info_location){ .image = image_find(address) };
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

enum shim_result info_find_function(shim_function function,
				    struct info_location *location)
{
	enum shim_result r = info_find_address(function, location);

	if (r == SHIM_OK && location->function &&
	    location->function->start != location->address)
		return SHIM_E_INVALIDARG;
	return r;
}

enum shim_result info_find_symbol(shim_function function,
				  struct info_location *location)
{
	enum shim_result r = info_find_function(function, location);

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

enum shim_result info_read_symbols(uintptr_t address)
{
	struct info_location location;
	bool is_read;
	int r = 0;

	image_pin();
	is_read = info_find_address(address, &location) == SHIM_OK &&
		  location.symbols;
	image_unpin();
	if (!is_read)
		r = state_call_locked(read_at, (void *)address);
	return r == -ENOMEM ? SHIM_E_OUTOFMEMORY : SHIM_OK;
}

enum shim_result info_function_at(const void *address, shim_function *function)
{
	struct info_location location;
	enum shim_result r;

	info_scan_for((uintptr_t)address);
	image_pin();
	r = info_find_address((uintptr_t)address, &location);
	if (r == SHIM_OK && !location.symbols)
		r = SHIM_E_NOT_YET_AVAILABLE;
	else if (r == SHIM_E_INVALIDARG || (r == SHIM_OK && !location.function))
		r = SHIM_E_FAIL;
	else if (r == SHIM_OK)
		*function = location.function->start + location.image->bias;
	image_unpin();
	return r;
}
