/*
 * Gives functions their numbers.  The process has one table, N.functions: word I is
 * function I.  Readers search a hash table of numbers without a lock, and compare the
 * word of each number.  A function is added once, off the fast path, with a lock and
 * with signals blocked.
 */
#include "trace/trace.h"

#include <shim/banned.h>

#define SLOTS  (1u << 18)
#define PROBES 256

static struct {
	struct shim_record *record;
	uint64_t *chunk[SHIM_FILE_CHUNKS];
	uint32_t room[SHIM_FILE_CHUNKS]; /* words in the chunk */
	uint32_t chunks;
	uint32_t count; /* number of words, including word 0 */
	uint32_t lock;
	uint32_t *slots;
	enum shim_lost cause; /* why no function can be added */
	uint64_t retry_clock; /* time of the next try */
} table;

static uint64_t *word_of(uint32_t number)
{
	uint32_t chunks = __atomic_load_n(&table.chunks, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < chunks; i++) {
		if (number < table.room[i])
			return &table.chunk[i][number];
		number -= table.room[i];
	}
	return NULL;
}

static uint32_t first_slot(uint64_t function)
{
	return (uint32_t)((function >> 4) * 0x9e3779b97f4a7c15ull >> 46);
}

static uint32_t find_number(uint64_t function)
{
	uint32_t *slots = __atomic_load_n(&table.slots, __ATOMIC_ACQUIRE);
	uint32_t at = first_slot(function);

	for (uint32_t i = 0; slots && i < PROBES; i++) {
		uint32_t number = __atomic_load_n(&slots[(at + i) % SLOTS],
						  __ATOMIC_ACQUIRE);
		const uint64_t *word = number ? word_of(number) : NULL;

		/* Another recording may have begun meanwhile. */
		if (!word)
			return 0;
		if (*word == function)
			return number;
	}
	return 0;
}

static bool add_chunk(void)
{
	void *memory;
	size_t size;

	if (word_of(table.count))
		return true;
	if (!table.slots)
		table.slots = shim_memory_map(SLOTS * sizeof(*table.slots));
	table.cause = table.slots ? SHIM_LOST_LIMIT : SHIM_LOST_MEMORY;
	if (!table.slots || table.chunks == SHIM_FILE_CHUNKS)
		return false;
	if (table.record)
		memory = shim_record_grow(table.record, 65536, &size,
					  &table.cause);
	else
		table.record = shim_record_open("functions", &memory, &size,
						&table.cause);
	if (!table.record || !memory)
		return false;
	if (table.count == 0)
		table.count = 1;
	table.chunk[table.chunks] = memory;
	table.room[table.chunks] = (uint32_t)(size / sizeof(uint64_t));
	__atomic_store_n(&table.chunks, table.chunks + 1, __ATOMIC_RELEASE);
	return true;
}

static uint32_t add_function(uint64_t function)
{
	uint32_t at = first_slot(function), number;

	/* A try makes system calls, so lost calls try only at intervals. */
	if (!word_of(table.count) && now() < table.retry_clock)
		return 0;
	if (!add_chunk()) {
		table.retry_clock = now() + 20000 * tree_long_clock;
		return 0;
	}
	number = table.count++;
	__atomic_store_n(word_of(number), function, __ATOMIC_RELEASE);
	for (uint32_t i = 0; i < PROBES; i++) {
		uint32_t *slot = &table.slots[(at + i) % SLOTS];

		if (*slot == 0) {
			__atomic_store_n(slot, number, __ATOMIC_RELEASE);
			break;
		}
	}
	return number;
}

uint32_t trace_number(uint64_t function, enum shim_lost *cause)
{
	uint32_t number = find_number(function);
	uint64_t signals;

	if (number)
		return number;
	signals = shim_signals_block();
	while (__atomic_exchange_n(&table.lock, 1, __ATOMIC_ACQUIRE))
		;
	number = find_number(function);
	if (!number)
		number = add_function(function);
	*cause = table.cause;
	__atomic_store_n(&table.lock, 0, __ATOMIC_RELEASE);
	shim_signals_restore(signals);
	return number;
}

void trace_forget(uintptr_t low, uintptr_t high, uint32_t generation)
{
	for (uint32_t i = 1; i < table.count; i++) {
		uint64_t *word = word_of(i);

		if (word && *word >= low && *word < high)
			*word |= (uint64_t)generation << 48;
	}
}

static void restart(void)
{
	uint32_t *slots = table.slots;

	table.record = NULL;
	table.chunks = table.count = 0;
	table.retry_clock = 0;
	if (slots)
		shim_memory_discard(slots, SLOTS * sizeof(*slots));
}

/* The table belongs to the parent, and another thread may have held the lock. */
void trace_functions_forked(void)
{
	restart();
	table.lock = 0;
}

void trace_functions_restart(void)
{
	uint64_t signals = shim_signals_block();

	while (__atomic_exchange_n(&table.lock, 1, __ATOMIC_ACQUIRE))
		;
	restart();
	__atomic_store_n(&table.lock, 0, __ATOMIC_RELEASE);
	shim_signals_restore(signals);
}
