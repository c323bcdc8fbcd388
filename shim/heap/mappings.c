/*
 * The list of mappings that the program made.  A program has few mappings, so a list
 * under the state lock is enough.
 */
#include "heap/mappings.h"

#include "heap/allocations.h"
#include "os/assert.h"
#include "os/sys.h"
#include "runtime/events.h"
#include "runtime/state.h"

#include <sys/mman.h>

#include <shim/banned.h>

#define PAGE 4096ul

struct entry {
	uintptr_t low, high;
	uint64_t serial, note;
	uint32_t protection, flags;
};

/* Changed only under the state lock. */
static struct entry *entries;
static size_t count, room;
static uint64_t last_serial;

/* --- the list --- */

static bool grow_list(void)
{
	size_t more = room ? room * 2 : 4 * PAGE / sizeof(struct entry);
	void *memory;

	if (count < room)
		return true;
	if (sys_map(more * sizeof(struct entry), &memory) < 0)
		return false;
	for (size_t i = 0; i < count; i++)
		((struct entry *)memory)[i] = entries[i];
	if (entries)
		sys_unmap(entries, room * sizeof(struct entry));
	entries = memory;
	room = more;
	return true;
}

static int add_mapping(void *argument)
{
	const struct entry *entry = argument;

	SHIM_ASSERT(entry->low < entry->high);
	if (!grow_list())
		return -1;
	entries[count++] = *entry;
	return 0;
}

struct cut {
	uintptr_t low, high;
	struct entry taken;
	bool found;
};

/* Cuts the range out of the first mapping that overlaps it.  If the list has no room
 * for the piece above the range, shim drops that piece. */
static int cut_mapping(void *argument)
{
	struct cut *cut = argument;

	for (size_t i = 0; i < count; i++) {
		struct entry *entry = &entries[i], rest = *entry;

		if (entry->low >= cut->high || entry->high <= cut->low)
			continue;
		SHIM_ASSERT(entry->low < entry->high);
		cut->taken = *entry;
		if (cut->taken.low < cut->low)
			cut->taken.low = cut->low;
		if (cut->taken.high > cut->high)
			cut->taken.high = cut->high;
		entry->high = cut->taken.low;
		rest.low = cut->taken.high;
		if (entry->low == entry->high)
			*entry = entries[--count];
		if (rest.low < rest.high)
			add_mapping(&rest);
		cut->found = true;
		return 0;
	}
	cut->found = false;
	return 0;
}

static bool cut_one(struct cut *cut)
{
	return state_call_locked(cut_mapping, cut) == 0 && cut->found;
}

static struct shim_mapping describe(const struct entry *entry, uint64_t *note)
{
	*note = entry->note;
	return (struct shim_mapping){
		.address = entry->low,
		.size = entry->high - entry->low,
		.serial = entry->serial,
		.protection = entry->protection,
		.flags = entry->flags,
		.note = note,
	};
}

static size_t whole_pages(size_t size)
{
	return (size + PAGE - 1) & ~(PAGE - 1);
}

/* --- reports of the wrappers --- */

void mappings_give(uintptr_t address, size_t size)
{
	struct cut cut = { .low = address,
			   .high = address + whole_pages(size) };
	uint64_t note;

	while (cut_one(&cut)) {
		struct shim_mapping mapping = describe(&cut.taken, &note);

		RAISE(unmapping, &mapping);
	}
}

static void store_mapping(const struct shim_mapping *mapping)
{
	struct entry entry = {
		.low = mapping->address,
		.high = mapping->address + mapping->size,
		.serial = mapping->serial,
		.note = *mapping->note,
		.protection = mapping->protection,
		.flags = mapping->flags,
	};

	state_call_locked(add_mapping, &entry);
}

void mappings_got(uintptr_t address, size_t size, int protection, int flags)
{
	uint64_t note = 0;
	struct shim_mapping mapping = {
		.address = address,
		.size = whole_pages(size),
		.protection = (uint32_t)protection,
		.flags = (uint32_t)flags,
		.note = &note,
	};

	mappings_give(address, size);
	mapping.serial = __atomic_add_fetch(&last_serial, 1, __ATOMIC_RELAXED);
	RAISE(mapping, &mapping);
	store_mapping(&mapping);
}

void mappings_change_begins(struct mappings_change *change, uintptr_t address,
			    size_t size)
{
	struct cut cut = { .low = address,
			   .high = address + whole_pages(size) };

	change->is_known = cut_one(&cut);
	if (change->is_known)
		change->before = describe(&cut.taken, &change->note);
}

void mappings_changed(struct mappings_change *change, uintptr_t address,
		      size_t size)
{
	struct shim_mapping after = change->before;
	uint64_t note = change->note;

	if (!change->is_known)
		return;
	change->before.note = &change->note;
	if (address) {
		mappings_give(address, size);
		after.address = address;
		after.size = whole_pages(size);
	}
	after.note = &note;
	if (address)
		RAISE(remapping, &change->before, &after);
	store_mapping(&after);
}

void mappings_break_moved(uintptr_t before, uintptr_t after)
{
	RAISE(break_moved, before, after);
}

/* --- roots of the leak scan --- */

struct next_search {
	uintptr_t at, low, high;
};

static int find_next_locked(void *argument)
{
	struct next_search *search = argument;

	for (size_t i = 0; i < count; i++)
		if (entries[i].high > search->at &&
		    (entries[i].protection & PROT_WRITE) &&
		    (search->high == 0 || entries[i].low < search->low)) {
			search->low = entries[i].low;
			search->high = entries[i].high;
		}
	return 0;
}

uintptr_t mappings_next(uintptr_t at, uintptr_t *low)
{
	struct next_search search = { .at = at };

	if (state_call_locked(find_next_locked, &search) < 0)
		return 0;
	*low = search.low;
	return search.high;
}
