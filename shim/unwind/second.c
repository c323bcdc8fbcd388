/*
 * Opens libshim-unwind.so and takes turns in it.
 */
#define _GNU_SOURCE
#include "unwind/second.h"

#include "image/image.h"
#include "os/lookup.h"
#include "os/sys.h"
#include "runtime/contract.h"
#include "runtime/log.h"
#include "runtime/thread.h"
#include "unwind/eh_frame.h"

#include <errno.h>
#include <shim/stack.h>

#include <shim/banned.h>

#define FILE_NAME "libshim-unwind.so"

static uint32_t wanted; /* enum shim_unwinder */
static const struct second_unwinder *second;
static bool begun;

/* --- opening --- */

static bool read_memory(const struct unwind *walk, uintptr_t at,
			uintptr_t *value)
{
	if (at >= walk->stack_low && at < walk->stack_high)
		return unwind_read(walk, at, value);
	return eh_frame_read(at, value, sizeof(*value)) ||
	       unwind_read(walk, at, value);
}

static bool find_tables(uintptr_t address, struct second_tables *tables)
{
	const struct image_entry *image;
	bool found;

	image_pin();
	image = image_find(address);
	found = image && image->frames;
	if (found)
		*tables = (struct second_tables){ image->start, image->end,
						  image->frames };
	image_unpin();
	return found;
}

static const struct second_calls calls = {
	.read = read_memory,
	.find_tables = find_tables,
	.is_signal_frame = unwind_is_signal_frame,
};

static const struct second_unwinder *open_library(void)
{
	const struct second_unwinder *found = NULL;
	void *library = lookup_open_beside_us(FILE_NAME);

	if (library)
		found = lookup_in(library, SECOND_SYMBOL);
	if (!found || found->version != SECOND_VERSION || !found->start(&calls))
		return NULL;
	return found;
}

void second_start(void)
{
	const struct second_unwinder *found;
	int before = errno;
	bool ours;

	if (__atomic_load_n(&wanted, __ATOMIC_RELAXED) == SHIM_UNWINDER_OWN ||
	    __atomic_exchange_n(&begun, true, __ATOMIC_ACQ_REL))
		return;
	ours = thread_ours_begins();
	found = open_library();
	thread_ours_ends(ours);
	if (found)
		__atomic_store_n(&second, found, __ATOMIC_RELEASE);
	else
		log_line("%s", FILE_NAME
			 " cannot be used: stacks are found by shim's own "
			 "unwinder");
	errno = before;
}

uint32_t second_wanted(void)
{
	return __atomic_load_n(&second, __ATOMIC_ACQUIRE) ?
		       __atomic_load_n(&wanted, __ATOMIC_RELAXED) :
		       SHIM_UNWINDER_OWN;
}

enum shim_result shim_stack_set_unwinder(uint32_t unwinder)
{
	ENTRY_ASYNC();
	if (unwinder > SHIM_UNWINDER_BOTH)
		return SHIM_E_INVALIDARG;
	__atomic_store_n(&wanted, unwinder, __ATOMIC_RELAXED);
	return unwinder == SHIM_UNWINDER_OWN ||
			       __atomic_load_n(&second, __ATOMIC_ACQUIRE) ?
		       SHIM_OK :
		       SHIM_S_FALSE;
}

/* --- taking turns --- */

/* A turn takes microseconds, but its thread may lose the processor. */
#define YIELDS_MAX 1000
/* After so many waits in vain without a turn between them, the library's user is taken for
 * lost: a handler of the program has left it by a jump. */
#define VAIN_MAX 8

static int user; /* a tid, or 0 */
static bool is_outdated;
static uint32_t vain;

/* Not if the calling thread is in the library: a sample has interrupted it. */
static bool begin_turn(void)
{
	int self = sys_gettid(), none;

	for (unsigned i = 0; i < YIELDS_MAX; i++) {
		none = 0;
		if (__atomic_compare_exchange_n(&user, &none, self, false,
						__ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED)) {
			__atomic_store_n(&vain, 0, __ATOMIC_RELAXED);
			return true;
		}
		if (none == self)
			return false;
		sys_yield();
	}
	if (__atomic_add_fetch(&vain, 1, __ATOMIC_RELAXED) >= VAIN_MAX)
		__atomic_store_n(&second, NULL, __ATOMIC_RELAXED);
	return false;
}

bool second_step(struct unwind *walk)
{
	const struct second_unwinder *library = __atomic_load_n(
		&second, __ATOMIC_ACQUIRE);
	struct unwind next;
	bool done;

	/* Where there are no tables, libunwind would guess. */
	walk->function = unwind_function(walk);
	next = *walk;
	if (!library || walk->function == 0 || !begin_turn())
		return false;
	if (__atomic_exchange_n(&is_outdated, false, __ATOMIC_ACQ_REL))
		library->forget();
	done = library->step(&next);
	__atomic_store_n(&user, 0, __ATOMIC_RELEASE);
	if (done)
		*walk = next;
	else
		walk->is_last = next.is_last;
	return done;
}

void second_closed(void)
{
	__atomic_store_n(&is_outdated, true, __ATOMIC_RELEASE);
}

/* Another thread was in the library, and does not exist here. */
void second_forked(void)
{
	if (user != 0 && user != sys_gettid())
		second = NULL;
}
