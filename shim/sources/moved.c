/*
 * Replaces an address in a thunk or a veneer, and the stack pointer there, by those that the
 * thread would have in the function's own code.  A reader takes no lock, because it runs in signal
 * handlers; while the table changes, it finds nothing.
 */
#include "sources/moved.h"

#include "os/sys.h"
#include "runtime/state.h"
#include "sources/mark_code.h"
#include "sources/route.h"
#include "sources/thunks.h"
#include "unwind/unwind.h"

#include <shim/builtin.h>
#include <shim/banned.h>

#define RANGES_MAX 1024 /* as many as images */

struct range {
	uintptr_t start, end;
	uint32_t size; /* of a thunk */
	const struct thunk_data *data;
};

static struct range ranges[RANGES_MAX];
static uint32_t count;
static uint32_t changes; /* odd: the table is being changed */

static void begin_change(void)
{
	__atomic_store_n(&changes, changes + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static void end_change(void)
{
	__atomic_store_n(&changes, changes + 1, __ATOMIC_RELEASE);
}

void moved_note(const struct source_image *image, size_t size)
{
	ASSERT_LOCKED();
	if (count == RANGES_MAX)
		return;
	begin_change();
	ranges[count] = (struct range){
		.start = image->thunks,
		.end = image->thunks + size,
		.size = image->thunk_size,
		.data = image->thunk_data,
	};
	__atomic_store_n(&count, count + 1, __ATOMIC_RELEASE);
	end_change();
}

void moved_forget(uintptr_t thunks)
{
	for (uint32_t i = 0; i < count; i++) {
		if (ranges[i].start != thunks)
			continue;
		begin_change();
		ranges[i] = ranges[count - 1];
		__atomic_store_n(&count, count - 1, __ATOMIC_RELEASE);
		end_change();
		return;
	}
}

static bool find(uintptr_t ip, struct range *range)
{
	uint32_t before = __atomic_load_n(&changes, __ATOMIC_ACQUIRE);
	uint32_t ranges_count = __atomic_load_n(&count, __ATOMIC_ACQUIRE);
	bool is_found = false;

	for (uint32_t i = 0; i < ranges_count && !is_found; i++) {
		*range = ranges[i];
		is_found = ip >= range->start && ip < range->end;
	}
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return is_found && !(before & 1) &&
	       __atomic_load_n(&changes, __ATOMIC_RELAXED) == before;
}

/* The address that the moved instruction at @offset had; *@sp changes if a part of a call has
 * run. */
static uintptr_t find_original(const struct thunk_data *data, uintptr_t thunk,
			       size_t offset, uintptr_t *sp)
{
	size_t place = 0;
	unsigned at = 0;

	if (offset >= data->size)
		return data->address + data->length;
	for (unsigned i = 0; i < ENTRY_SIZE; i++) {
		if (data->places[i] == 0 || data->places[i] - 1u > offset)
			continue;
		at = i;
		place = data->places[i] - 1u;
	}
	*sp += patched_pushed_by_call((const unsigned char *)thunk +
					      PATCHED_MOVED + place,
				      offset - place);
	return data->address + at;
}

int shim_is_thunk(uintptr_t address)
{
	struct range range;
	size_t offset;

	if (route_part(address))
		return 1;
	if (__atomic_load_n(&count, __ATOMIC_RELAXED) == 0 ||
	    !find(address, &range))
		return 0;
	offset = address - range.start;
	return range.data[offset / range.size].site != 0 ||
	       offset % range.size >= PATCHED_COUNTS;
}

/* The thread goes back to the sled that has called the veneer. */
static void leave_veneer(uintptr_t *ip, uintptr_t *sp, size_t offset)
{
	*ip = *(const uintptr_t *)*sp;
	*sp += veneers_pushed(offset);
}

/* A thread between the two instructions of a sled has pushed a word, which the function's
 * tables do not know.  Behind the call it is popped.  (There may be no code at *@ip: the
 * thread has jumped to it.) */
static bool leave_push(uintptr_t *ip, uintptr_t *sp)
{
	unsigned char call[MARK_CALL_SIZE];
	uintptr_t veneer, part;

	if (!route_is_used() ||
	    sys_peek((const void *)*ip, call, sizeof(call)) < 0)
		return false;
	veneer = mark_calls(call, *ip);
	part = veneer ? route_part(veneer) : 0;
	if (!part || veneers_pushed(veneer - part) < 2 * sizeof(uintptr_t))
		return false;
	*ip += sizeof(call);
	*sp += sizeof(uintptr_t);
	return true;
}

static void translate(uintptr_t *ip, uintptr_t *sp)
{
	uintptr_t part = route_part(*ip), thunk;
	struct range range;
	size_t number, offset;

	if (part) {
		leave_veneer(ip, sp, *ip - part);
		return;
	}
	if (leave_push(ip, sp))
		return;
	if (__atomic_load_n(&count, __ATOMIC_RELAXED) == 0 ||
	    !find(*ip, &range))
		return;
	number = (*ip - range.start) / range.size;
	offset = (*ip - range.start) % range.size;
	thunk = *ip - offset;
	if (range.data[number].site) {
		*sp += thunk_pushed(offset);
		*ip = range.data[number].site;
	} else if (range.data[number].size == 0 && offset >= PATCHED_RESUMES &&
		   offset < PATCHED_COUNTS) {
		*sp += patched_pushed_by_mcount((const unsigned char *)thunk,
						offset);
		*ip = range.data[number].address + range.data[number].length;
	} else if (offset < PATCHED_MOVED || offset >= PATCHED_COUNTS) {
		*sp += patched_pushed(offset);
		*ip = range.data[number].address;
	} else {
		*ip = find_original(&range.data[number], thunk,
				    offset - PATCHED_MOVED, sp);
	}
}

SUBSCRIBE(unwind_interrupted, translate);
