/*
 * Handles SIGBUS for files of the recording that another process truncated: maps zeroed
 * private memory from the page to the end of the mapping.  The store is then repeated.
 */
#include "runtime/hole.h"

#include "arch.h"
#include "os/sys.h"
#include "runtime/kept_signals.h"
#include "runtime/log.h"
#include "runtime/record.h"
#include "runtime/state.h"

#include <stdint.h>

#include <shim/banned.h>

#define PAGE 4096u
#define MANY 127

/* A mapping of a file; it lasts as long as the process. */
struct part {
	uintptr_t start;
	uintptr_t end; /* of the part that maps the file; it only falls */
	const char *name;
	uint64_t size;
	bool is_said; /* valid in the first part of a file, for all its parts */
};

/* The handler may read the list at any time; it only grows. */
struct parts {
	struct parts *next;
	uint64_t count;
	struct part part[MANY];
};

static struct parts *parts;

void hole_watch(const void *memory, size_t size, const char *name)
{
	struct parts *last = parts;
	struct part *part;
	void *fresh;

	ASSERT_LOCKED();
	if (!last || last->count == MANY) {
		if (sys_map(sizeof(*last), &fresh) < 0)
			return;
		last = fresh;
		last->next = parts;
		__atomic_store_n(&parts, last, __ATOMIC_RELEASE);
	}
	part = &last->part[last->count];
	part->start = (uintptr_t)memory;
	part->end = part->start + size;
	part->name = name;
	part->size = size;
	__atomic_store_n(&last->count, last->count + 1, __ATOMIC_RELEASE);
}

static struct part *find_part(uintptr_t address)
{
	struct parts *at = __atomic_load_n(&parts, __ATOMIC_ACQUIRE);

	for (; at; at = at->next)
		for (uint64_t i = __atomic_load_n(&at->count, __ATOMIC_ACQUIRE);
		     i-- > 0;)
			if (address - at->part[i].start < at->part[i].size)
				return &at->part[i];
	return NULL;
}

static struct part *first_part(struct part *of)
{
	struct part *first = of;

	for (struct parts *at = parts; at; at = at->next)
		for (uint64_t i = at->count; i-- > 0;)
			if (at->part[i].name == of->name)
				first = &at->part[i];
	return first;
}

static void say_once(struct part *of)
{
	if (__atomic_exchange_n(&first_part(of)->is_said, true,
				__ATOMIC_RELAXED))
		return;
	record_is_short(of->name, (const void *)of->start);
}

/* Maps private memory from the page of @address to part->end.  Another thread may be
 * doing the same. */
static bool fill(struct part *part, uintptr_t address)
{
	uintptr_t page = address & -(uintptr_t)PAGE;
	uintptr_t end = __atomic_load_n(&part->end, __ATOMIC_ACQUIRE);

	do
		if (page >= end)
			return true;
	while (!__atomic_compare_exchange_n(&part->end, &end, page, false,
					    __ATOMIC_ACQ_REL,
					    __ATOMIC_ACQUIRE));
	if (sys_map_over((void *)page, end - page) < 0)
		return false;
	say_once(part);
	return true;
}

static void handle(int signal, siginfo_t *info, void *context)
{
	uintptr_t address = (uintptr_t)info->si_addr;
	struct part *part;

	if (info->si_code <= 0) {
		kept_take_sent(signal, info, context);
		return;
	}
	part = info->si_code == BUS_ADRERR ? find_part(address) : NULL;
	if (!part || !fill(part, address))
		kept_take_raised(signal, info, context,
				 info->si_code != BUS_MCEERR_AO);
}

void hole_start(void)
{
	ASSERT_LOCKED();
	if (ARCH_HAS_RESTORER == 0 || kept_is_on(SIGBUS))
		return;
	kept_start(SIGBUS, handle);
}
