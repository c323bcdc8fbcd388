/*
 * Tables of answers about the program's code.  A table receives the pointer to an entry
 * after the entry is complete, so readers take no lock.  A larger table replaces a full
 * one.
 */
#include "inspect/code_cache.h"

#include "os/sys.h"
#include "runtime/state.h"

#include <shim/banned.h>

#define BLOCK_SIZE (64u << 10)
#define ROOM_FIRST 1024u

uint32_t code_cache_current_age = 1;
const struct code_cache_entry *code_cache_fronts[2][KNOWN_FRONT_SIZE];

void code_cache_closed(void)
{
	const struct code_cache_entry **front = code_cache_fronts[0];

	__atomic_add_fetch(&code_cache_current_age, 1, __ATOMIC_SEQ_CST);
	for (size_t i = 0; i < sizeof(code_cache_fronts) / sizeof(*front); i++)
		if (__atomic_load_n(&front[i], __ATOMIC_SEQ_CST))
			__atomic_store_n(&front[i], NULL, __ATOMIC_SEQ_CST);
}

/* If the program closes an object meanwhile, either the closing thread removes the
 * entry, or this function reads the new age. */
void code_cache_put_in_front(enum code_cache_front front,
			     const struct code_cache_entry *entry)
{
	const struct code_cache_entry **place =
		&code_cache_fronts[front]
				  [code_cache_front_place(entry->address)];

	ASSERT_LOCKED();
	__atomic_store_n(place, entry, __ATOMIC_SEQ_CST);
	if (entry->age !=
	    __atomic_load_n(&code_cache_current_age, __ATOMIC_SEQ_CST))
		__atomic_store_n(place, NULL, __ATOMIC_SEQ_CST);
}

void *code_cache_allocate(size_t size)
{
	static char *block;
	static size_t left;
	void *memory;

	ASSERT_LOCKED();
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

/* The slot of the entry with the same key, or a free slot for it. */
static struct code_cache_entry **find_slot(struct code_cache_slots *in,
					   const struct code_cache_entry *entry)
{
	for (uint32_t i = code_cache_start(entry->address, entry->site);; i++) {
		struct code_cache_entry **place = &in->entries[i & in->mask];

		if (!*place || code_cache_is(*place, entry->address,
					     entry->function, entry->site))
			return place;
	}
}

/* The old slots are never freed, because a reader may still use them. */
static bool grow_table(struct code_cache *table)
{
	struct code_cache_slots *slots = table->slots, *larger;
	uint32_t room = slots ? (slots->mask + 1) * 2 : ROOM_FIRST;

	if (slots && slots->used * 2 <= slots->mask)
		return true;
	larger = code_cache_allocate(sizeof(*larger) + room * sizeof(void *));
	if (!larger)
		return false;
	larger->mask = room - 1;
	for (uint32_t i = 0; slots && i <= slots->mask; i++) {
		struct code_cache_entry *old = slots->entries[i];

		if (!old)
			continue;
		*find_slot(larger, old) = old;
		larger->used++;
	}
	__atomic_store_n(&table->slots, larger, __ATOMIC_RELEASE);
	return true;
}

/* Compares everything except the age. */
static bool is_equal(const struct code_cache_entry *a,
		     const struct code_cache_entry *b)
{
	const unsigned char *x = (const void *)(a + 1),
			    *y = (const void *)(b + 1);

	if (a->size != b->size)
		return false;
	for (size_t i = 0; i < a->size - sizeof(*a); i++)
		if (x[i] != y[i])
			return false;
	return true;
}

bool code_cache_publish(struct code_cache *table,
			struct code_cache_entry *entry)
{
	struct code_cache_entry **place;

	ASSERT_LOCKED();
	if (!grow_table(table))
		return false;
	place = find_slot(table->slots, entry);
	__atomic_store_n(&table->slots->used, table->slots->used + !*place,
			 __ATOMIC_RELAXED);
	__atomic_store_n(place, entry, __ATOMIC_RELEASE);
	return true;
}

const struct code_cache_entry *
code_cache_keep(struct code_cache *table, const struct code_cache_entry *draft)
{
	struct code_cache_entry *old = table->slots ?
					       *find_slot(table->slots, draft) :
					       NULL;
	struct code_cache_entry *kept;

	ASSERT_LOCKED();
	if (old && is_equal(old, draft)) {
		__atomic_store_n(&old->age, draft->age, __ATOMIC_RELEASE);
		return old;
	}
	kept = code_cache_allocate(draft->size);
	if (!kept)
		return NULL;
	__builtin_memcpy(kept, draft, draft->size);
	return code_cache_publish(table, kept) ? kept : NULL;
}
