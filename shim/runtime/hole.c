/*
 * Handles SIGBUS for files of the recording that another process has truncated.  The
 * handler maps zeroed private memory from the page of the fault to the end of the
 * mapping.  Then the program repeats the store.
 */
#include "runtime/hole.h"

#include "arch.h"
#include "os/sys.h"
#include "runtime/kept_signals.h"
#include "runtime/log.h"
#include "runtime/state.h"

#include <stdint.h>

#include <shim/banned.h>

#define PAGE  4096u
#define CHUNK 127

/* A mapping of a file; it exists as long as the process. */
struct mapping {
	uintptr_t start;
	uintptr_t end; /* of the part that maps the file; only decreases */
	const char *name;
	uint64_t size;
	bool is_logged; /* in the first mapping of a file, for all its mappings */
};

/* The handler may read the list at any time.  Entries are only added. */
struct mappings {
	struct mappings *next;
	uint64_t count;
	struct mapping mapping[CHUNK];
};

static struct mappings *mappings;

void hole_watch(const void *memory, size_t size, const char *name)
{
	struct mappings *last = mappings;
	struct mapping *mapping;
	void *fresh;

	ASSERT_LOCKED();
	if (!last || last->count == CHUNK) {
		if (sys_map(sizeof(*last), &fresh) < 0)
			return;
		last = fresh;
		last->next = mappings;
		__atomic_store_n(&mappings, last, __ATOMIC_RELEASE);
	}
	mapping = &last->mapping[last->count];
	mapping->start = (uintptr_t)memory;
	mapping->end = mapping->start + size;
	mapping->name = name;
	mapping->size = size;
	__atomic_store_n(&last->count, last->count + 1, __ATOMIC_RELEASE);
}

static struct mapping *find_mapping(uintptr_t address)
{
	struct mappings *at = __atomic_load_n(&mappings, __ATOMIC_ACQUIRE);

	for (; at; at = at->next)
		for (uint64_t i = __atomic_load_n(&at->count, __ATOMIC_ACQUIRE);
		     i-- > 0;)
			if (address - at->mapping[i].start <
			    at->mapping[i].size)
				return &at->mapping[i];
	return NULL;
}

static struct mapping *first_mapping(struct mapping *of)
{
	struct mapping *first = of;

	for (struct mappings *at = mappings; at; at = at->next)
		for (uint64_t i = at->count; i-- > 0;)
			if (at->mapping[i].name == of->name)
				first = &at->mapping[i];
	return first;
}

static void log_once(struct mapping *of)
{
	if (__atomic_exchange_n(&first_mapping(of)->is_logged, true,
				__ATOMIC_RELAXED))
		return;
	NOTIFY(file_shortened, of->name, (const void *)of->start);
}

/* Maps private memory from the page of @address to mapping->end.  Another thread may do the
 * same at this time. */
static bool map_over_hole(struct mapping *mapping, uintptr_t address)
{
	uintptr_t page = address & -(uintptr_t)PAGE;
	uintptr_t end = __atomic_load_n(&mapping->end, __ATOMIC_ACQUIRE);

	do
		if (page >= end)
			return true;
	while (!__atomic_compare_exchange_n(&mapping->end, &end, page, false,
					    __ATOMIC_ACQ_REL,
					    __ATOMIC_ACQUIRE));
	if (sys_map_over((void *)page, end - page) < 0)
		return false;
	log_once(mapping);
	return true;
}

static void handle_sigbus(int signal, siginfo_t *info, void *context)
{
	uintptr_t address = (uintptr_t)info->si_addr;
	struct mapping *mapping;

	if (info->si_code <= 0) {
		kept_take_sent(signal, info, context);
		return;
	}
	mapping = info->si_code == BUS_ADRERR ? find_mapping(address) : NULL;
	if (!mapping || !map_over_hole(mapping, address))
		kept_take_raised(signal, info, context,
				 info->si_code != BUS_MCEERR_AO);
}

void hole_start(void)
{
	ASSERT_LOCKED();
	if (ARCH_HAS_RESTORER == 0 || kept_is_on(SIGBUS))
		return;
	kept_start(SIGBUS, handle_sigbus);
}
