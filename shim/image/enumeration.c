/*
 * Enumerations: snapshots of ids.  A snapshot is one mapping that shim fills once, so a
 * reader needs no lock, and sees the same ids when images or threads end.
 */
#include "image/enumeration.h"

#include "os/sys.h"
#include "runtime/contract.h"

#include <shim/banned.h>

#define MAGIC 0x6d756e655f6d6873ull

struct shim_enum {
	uint64_t magic;
	size_t size; /* of this memory */
	uint32_t count;
	uint32_t position;
	uint64_t ids[];
};

static struct shim_enum *enumerations[ENUMERATIONS_MAX];

static struct shim_enum **find_place(const struct shim_enum *which)
{
	for (unsigned i = 0; i < ENUMERATIONS_MAX; i++)
		if (__atomic_load_n(&enumerations[i], __ATOMIC_ACQUIRE) ==
		    which)
			return &enumerations[i];
	return NULL;
}

static bool is_valid(const struct shim_enum *enumeration)
{
	return enumeration && find_place(enumeration) &&
	       enumeration->magic == MAGIC;
}

static bool add_to_list(struct shim_enum *enumeration)
{
	for (;;) {
		struct shim_enum **place = find_place(NULL), *empty = NULL;

		if (!place)
			return false;
		if (__atomic_compare_exchange_n(place, &empty, enumeration,
						false, __ATOMIC_ACQ_REL,
						__ATOMIC_RELAXED))
			return true;
	}
}

enum shim_result enumeration_make(uint32_t count, struct shim_enum **made,
				  uint64_t **ids)
{
	struct shim_enum *enumeration;
	size_t size = sizeof(*enumeration) + (size_t)count * sizeof(uint64_t);
	void *memory;

	if (sys_map(size, &memory) < 0)
		return SHIM_E_OUTOFMEMORY;
	enumeration = memory;
	enumeration->magic = MAGIC;
	enumeration->size = size;
	*ids = enumeration->ids;
	if (!add_to_list(enumeration)) {
		sys_unmap(memory, size);
		return SHIM_E_OUTOFMEMORY;
	}
	*made = enumeration;
	return SHIM_OK;
}

void enumeration_fill(struct shim_enum *made, uint32_t count)
{
	made->count = count;
}

enum shim_result shim_enum_next(struct shim_enum *enumeration, uint32_t count,
				uint64_t *ids, uint32_t *fetched)
{
	uint32_t left, n;

	ENTRY_ASYNC();
	if (!is_valid(enumeration) || !ids || (count > 1 && !fetched))
		return SHIM_E_INVALIDARG;
	left = enumeration->count - enumeration->position;
	n = count < left ? count : left;
	for (uint32_t i = 0; i < n; i++)
		ids[i] = enumeration->ids[enumeration->position + i];
	enumeration->position += n;
	if (fetched)
		*fetched = n;
	return n < count ? SHIM_S_FALSE : SHIM_OK;
}

enum shim_result shim_enum_skip(struct shim_enum *enumeration, uint32_t count)
{
	uint32_t left;

	ENTRY_ASYNC();
	if (!is_valid(enumeration))
		return SHIM_E_INVALIDARG;
	left = enumeration->count - enumeration->position;
	enumeration->position += count < left ? count : left;
	return count > left ? SHIM_S_FALSE : SHIM_OK;
}

enum shim_result shim_enum_reset(struct shim_enum *enumeration)
{
	ENTRY_ASYNC();
	if (!is_valid(enumeration))
		return SHIM_E_INVALIDARG;
	enumeration->position = 0;
	return SHIM_OK;
}

enum shim_result shim_enum_clone(struct shim_enum *enumeration,
				 struct shim_enum **copy)
{
	struct shim_enum *made;
	enum shim_result r;
	uint64_t *ids;

	ENTRY_MAY_BLOCK();
	if (!is_valid(enumeration) || !copy)
		return SHIM_E_INVALIDARG;
	r = enumeration_make(enumeration->count, &made, &ids);
	if (r != SHIM_OK)
		return r;
	for (uint32_t i = 0; i < enumeration->count; i++)
		ids[i] = enumeration->ids[i];
	made->count = enumeration->count;
	made->position = enumeration->position;
	*copy = made;
	return SHIM_OK;
}

enum shim_result shim_enum_count(struct shim_enum *enumeration, uint32_t *count)
{
	ENTRY_ASYNC();
	if (!is_valid(enumeration) || !count)
		return SHIM_E_INVALIDARG;
	*count = enumeration->count;
	return SHIM_OK;
}

enum shim_result shim_enum_remaining(struct shim_enum *enumeration,
				     uint32_t *count)
{
	ENTRY_ASYNC();
	if (!is_valid(enumeration) || !count)
		return SHIM_E_INVALIDARG;
	*count = enumeration->count - enumeration->position;
	return SHIM_OK;
}

/* The call that removes the enumeration from the list unmaps it; a second call does
 * nothing.  A profiler that is being detached may call this function, too. */
void shim_enum_destroy(struct shim_enum *enumeration)
{
	struct shim_enum **place, *expected = enumeration;

	if (!is_valid(enumeration))
		return;
	place = find_place(enumeration);
	if (place &&
	    __atomic_compare_exchange_n(place, &expected, NULL, false,
					__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		sys_unmap(enumeration, enumeration->size);
}
