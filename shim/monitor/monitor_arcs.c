/*
 * Arcs (caller and callee) of a program compiled with -pg, which mcount counts.
 *
 * The arcs are in a table with open addressing.  A thread claims an entry by storing
 * the return address, then stores the function.  If two threads create the same arc at
 * the same time, they get two entries, and readers add them.
 */
#include "monitor/monitor.h"

#include "os/sys.h"

#include <shim/format.h>
#include <shim/record.h>

#include <shim/banned.h>

#define ROOM   65536u
#define PROBES 512u

bool monitor_counts_arcs;

static struct monitor_arc *table;
static bool is_kept; /* the table is in the recording */
static uint64_t lost;

_Static_assert(sizeof(struct monitor_arc) == sizeof(struct shim_arc), "layout");

static void *make_kept(void)
{
	enum shim_lost cause;
	size_t size;
	void *memory;
	struct shim_record *record = shim_record_open("arcs", &memory, &size,
						      &cause);

	if (!record)
		return NULL;
	return shim_record_grow(record, ROOM * sizeof(*table), &size, &cause);
}

static void make_table(void)
{
	struct monitor_arc *none = NULL;
	void *memory = make_kept();

	is_kept = memory != NULL;
	if (!memory && sys_map(ROOM * sizeof(*table), &memory) < 0)
		return;
	if (!__atomic_compare_exchange_n(&table, &none, memory, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED) &&
	    !is_kept)
		sys_unmap(memory, ROOM * sizeof(*table));
}

static bool claim(struct monitor_arc *arc, uintptr_t from)
{
	uintptr_t empty = 0;

	return __atomic_load_n(&arc->from, __ATOMIC_ACQUIRE) == 0 &&
	       __atomic_compare_exchange_n(&arc->from, &empty, from, false,
					   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static struct monitor_arc *find_arc(uintptr_t from, uintptr_t self)
{
	uint64_t i = (from * 0x9e3779b97f4a7c15ull ^ self) *
			     0xff51afd7ed558ccdull >>
		     40;

	for (uint32_t probe = 0; probe < PROBES; probe++, i++) {
		struct monitor_arc *arc = &table[i % ROOM];

		if (claim(arc, from)) {
			__atomic_store_n(&arc->self, self, __ATOMIC_RELEASE);
			return arc;
		}
		if (arc->from == from &&
		    __atomic_load_n(&arc->self, __ATOMIC_ACQUIRE) == self)
			return arc;
	}
	return NULL;
}

void monitor_count_arc(uintptr_t from, uintptr_t self)
{
	struct monitor_arc *arc;

	if (!__atomic_load_n(&monitor_counts_arcs, __ATOMIC_RELAXED))
		return;
	if (!__atomic_load_n(&table, __ATOMIC_ACQUIRE))
		make_table();
	arc = table && from ? find_arc(from, self) : NULL;
	__atomic_add_fetch(arc ? &arc->calls : &lost, 1, __ATOMIC_RELAXED);
}

struct monitor_arc *monitor_next_arc(struct monitor_arc *arc)
{
	if (!table)
		return NULL;
	for (arc = arc ? arc + 1 : table; arc < table + ROOM; arc++)
		if (__atomic_load_n(&arc->self, __ATOMIC_ACQUIRE))
			return arc;
	return NULL;
}

void monitor_forget_arcs(void)
{
	/* A table in the recording belongs to the parent. */
	if (is_kept)
		table = NULL;
	for (uint32_t i = 0; table && i < ROOM; i++)
		if (table[i].calls)
			__atomic_store_n(&table[i].calls, 0, __ATOMIC_RELAXED);
	lost = 0;
}

uint64_t monitor_lost_arcs(void)
{
	return __atomic_load_n(&lost, __ATOMIC_RELAXED);
}
