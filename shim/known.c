#include "known.h"

#include "sys.h"

#include <shim/banned.h>

#define BLOCK_SIZE (64u << 10)
#define ROOM_FIRST 1024u

uint32_t known_current_age = 1;

void known_closed(void)
{
	__atomic_add_fetch(&known_current_age, 1, __ATOMIC_ACQ_REL);
}

void *known_allocate(size_t size)
{
	static char *block;
	static size_t left;
	void *memory;

	size = (size + 15) / 16 * 16;
	if (size > BLOCK_SIZE / 4)
		return sys_map(size, &memory) < 0 ? NULL : memory;
	if (size > left) {
		if (sys_map(BLOCK_SIZE, &memory) < 0)
			return NULL;
		block = memory;
		left = BLOCK_SIZE;
	}
	memory = block;
	block += size;
	left -= size;
	return memory;
}

/* A reader may still be in the old slots, which therefore stay. */
static bool make_room(struct known_table *table)
{
	struct known_slots *slots = table->slots, *larger;
	uint32_t room = slots ? (slots->mask + 1) * 2 : ROOM_FIRST;

	if (slots && slots->used * 2 <= slots->mask)
		return true;
	larger = known_allocate(sizeof(*larger) + room * sizeof(void *));
	if (!larger)
		return false;
	larger->mask = room - 1;
	for (uint32_t i = 0; slots && i <= slots->mask; i++) {
		struct known *old = slots->entries[i];

		if (!old)
			continue;
		*known_place(larger, old->address, old->function, old->site) =
			old;
		larger->used++;
	}
	__atomic_store_n(&table->slots, larger, __ATOMIC_RELEASE);
	return true;
}

/* But for the age. */
static bool is_equal(const struct known *a, const struct known *b)
{
	const unsigned char *x = (const void *)(a + 1), *y = (const void *)(b + 1);

	if (a->size != b->size)
		return false;
	for (size_t i = 0; i < a->size - sizeof(*a); i++)
		if (x[i] != y[i])
			return false;
	return true;
}

bool known_publish(struct known_table *table, struct known *entry)
{
	struct known **place;

	if (!make_room(table))
		return false;
	place = known_place(table->slots, entry->address, entry->function,
			    entry->site);
	__atomic_store_n(&table->slots->used, table->slots->used + !*place,
			 __ATOMIC_RELAXED);
	__atomic_store_n(place, entry, __ATOMIC_RELEASE);
	return true;
}

const struct known *known_keep(struct known_table *table,
			       const struct known *draft)
{
	struct known *old = table->slots ? *known_place(table->slots,
							draft->address,
							draft->function,
							draft->site) :
					   NULL;
	struct known *kept;

	if (old && is_equal(old, draft)) {
		__atomic_store_n(&old->age, draft->age, __ATOMIC_RELEASE);
		return old;
	}
	kept = known_allocate(draft->size);
	if (!kept)
		return NULL;
	__builtin_memcpy(kept, draft, draft->size);
	return known_publish(table, kept) ? kept : NULL;
}
