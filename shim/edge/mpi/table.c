/*
 * A hash table for all kinds of handles, and one for counts.  Threads may call MPI at the
 * same time, so each access takes a lock, for a few loads and stores.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "edge/mpi/table.h"

#define ROOM_AT_FIRST 64

struct table {
	struct handle *all;
	uint64_t room; /* a power of two */
	uint64_t count;
};

static struct table handles, counts;
static uint64_t requests;
static char lock;

static void acquire(void)
{
	while (__atomic_test_and_set(&lock, __ATOMIC_ACQUIRE))
		while (__atomic_load_n(&lock, __ATOMIC_RELAXED))
			;
}

static void release(void)
{
	__atomic_clear(&lock, __ATOMIC_RELEASE);
}

static uint64_t key_of(enum handle_kind kind, uint64_t value)
{
	return value << 2 | kind;
}

static uint64_t place_of(const struct table *table, uint64_t key)
{
	return (key * 0x9e3779b97f4a7c15ull >> 20) & (table->room - 1);
}

/* The entry of @key, or the unused one where it belongs. */
static struct handle *find(const struct table *table, uint64_t key)
{
	uint64_t at = place_of(table, key);

	while (table->all[at].key != 0 && table->all[at].key != key)
		at = (at + 1) & (table->room - 1);
	return &table->all[at];
}

static bool enlarge(struct table *table)
{
	struct table old = *table, larger = { .count = old.count };
	int error = errno;
	void *memory;

	larger.room = old.room ? old.room * 2 : ROOM_AT_FIRST;
	memory = mmap(NULL, larger.room * sizeof(*larger.all),
		      PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
	errno = error;
	if (memory == MAP_FAILED)
		return false;
	larger.all = memory;
	for (uint64_t i = 0; i < old.room; i++)
		if (old.all[i].key)
			*find(&larger, old.all[i].key) = old.all[i];
	*table = larger;
	if (old.all)
		munmap(old.all, old.room * sizeof(*old.all));
	return true;
}

/* Returns the entry of @key, which may be new; NULL: no memory. */
static struct handle *add(struct table *table, uint64_t key)
{
	struct handle *entry;

	if (table->count * 2 >= table->room && !enlarge(table))
		return NULL;
	entry = find(table, key);
	if (!entry->key) {
		*entry = (struct handle){ .key = key };
		table->count++;
	}
	return entry;
}

/* Entries that were moved on because of this one move back. */
static void drop(struct table *table, struct handle *entry)
{
	uint64_t mask = table->room - 1;
	uint64_t hole = (uint64_t)(entry - table->all), at = hole;

	for (;;) {
		at = (at + 1) & mask;
		if (!table->all[at].key)
			break;
		if (((at - place_of(table, table->all[at].key)) & mask) <
		    ((at - hole) & mask))
			continue;
		table->all[hole] = table->all[at];
		hole = at;
	}
	table->all[hole].key = 0;
	table->count--;
}

bool table_find(enum handle_kind kind, uint64_t value, struct handle *found)
{
	const struct handle *entry;

	acquire();
	found->key = 0;
	if (handles.room) {
		entry = find(&handles, key_of(kind, value));
		if (entry->key)
			*found = *entry;
	}
	release();
	return found->key != 0;
}

void table_set(enum handle_kind kind, uint64_t value,
	       const struct handle *handle)
{
	uint64_t key = key_of(kind, value), before;
	struct handle *entry;

	acquire();
	before = handles.count;
	entry = add(&handles, key);
	if (entry) {
		*entry = *handle;
		entry->key = key;
	}
	if (kind == HANDLE_REQUEST && handles.count > before)
		__atomic_add_fetch(&requests, 1, __ATOMIC_RELAXED);
	release();
}

void table_remove(enum handle_kind kind, uint64_t value)
{
	struct handle *entry;

	acquire();
	if (handles.room) {
		entry = find(&handles, key_of(kind, value));
		if (entry->key) {
			drop(&handles, entry);
			if (kind == HANDLE_REQUEST)
				__atomic_sub_fetch(&requests, 1,
						   __ATOMIC_RELAXED);
		}
	}
	release();
}

bool table_has_requests(void)
{
	return __atomic_load_n(&requests, __ATOMIC_RELAXED) != 0;
}

uint64_t table_count(uint64_t hash)
{
	struct handle *entry;
	uint64_t count;

	acquire();
	entry = add(&counts, hash ? hash : 1);
	count = entry ? entry->bytes++ : 0;
	release();
	return count;
}
