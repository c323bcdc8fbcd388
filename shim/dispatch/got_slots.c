/*
 * GOT slots of images for the allocator and for locks.  If a profiler enables their
 * events, a slot holds the address of shim's wrapper.  Otherwise it holds libc's
 * address, and a call costs nothing.
 */
#include "dispatch/got_slots.h"

#include "os/pages.h"
#include "os/sys.h"
#include "os/text.h"
#include "runtime/state.h"

#include <sys/mman.h>

#include <shim/banned.h>

#define PAGE 4096

struct slot {
	uintptr_t place;
	uint8_t family, function;
	bool is_relro; /* its page is read-only */
	bool may_go;
	void *stored_target; /* the value that shim has stored, or NULL */
	/* A slot that points into this range is unresolved.  The loader will resolve it
	 * to the wrapper. */
	uintptr_t lazy_start, lazy_end;
};

/* The slots of families that may bypass the wrappers, now or later. */
static struct slot first_slots[512];
static struct slot *slots = first_slots;
static size_t slot_room = sizeof(first_slots) / sizeof(*first_slots);
static unsigned slot_count;

static struct family {
	bool uses_wrappers, bypasses;
	bool wrappers_are_first;
	struct got_slots_function targets[SLOTS_FUNCTIONS];
} families[SLOTS_FAMILIES];

static const char *const names[SLOTS_FAMILIES][SLOTS_FUNCTIONS] = {
	[SLOTS_ALLOCATIONS] = {
		"malloc", "calloc", "realloc", "reallocarray", "free",
		"posix_memalign", "aligned_alloc", "memalign", "valloc",
		"pvalloc",
	},
	[SLOTS_LOCKS] = {
		"pthread_mutex_lock", "pthread_mutex_trylock",
		"pthread_mutex_timedlock", "pthread_mutex_clocklock",
		"pthread_rwlock_rdlock", "pthread_rwlock_tryrdlock",
		"pthread_rwlock_timedrdlock", "pthread_rwlock_clockrdlock",
		"pthread_rwlock_wrlock", "pthread_rwlock_trywrlock",
		"pthread_rwlock_timedwrlock", "pthread_rwlock_clockwrlock",
		"pthread_cond_wait", "pthread_cond_timedwait",
		"pthread_cond_clockwait", "pthread_cond_init",
		"pthread_cond_destroy", "pthread_cond_signal",
		"pthread_cond_broadcast", "pthread_spin_lock",
		"pthread_spin_trylock", "sem_wait", "sem_trywait",
		"sem_timedwait", "sem_clockwait", "mtx_lock", "mtx_trylock",
		"mtx_timedlock", "cnd_wait", "cnd_timedwait",
	},
};

static int find_name(enum got_slots_family family, const char *name)
{
	for (int i = 0; i < SLOTS_FUNCTIONS && names[family][i]; i++)
		if (text_equal(name, names[family][i]))
			return i;
	return -1;
}

/* Compares prefixes only, because images call thousands of functions. */
static enum got_slots_family family_of(const char *name)
{
	bool is_lock = text_after(name, "pthread_") ||
		       text_after(name, "sem_") || text_after(name, "mtx_") ||
		       text_after(name, "cnd_");

	return is_lock ? SLOTS_LOCKS : SLOTS_ALLOCATIONS;
}

static struct got_slots_function *target_of(const struct slot *slot)
{
	return &families[slot->family].targets[slot->function];
}

typedef int slot_read(const void *from, void *to, size_t size);

static bool leads_to_wrapper(const struct slot *slot, const void *place,
			     slot_read *read)
{
	uintptr_t value;

	if (read(place, &value, sizeof(value)) < 0)
		return false;
	if (value == (uintptr_t)target_of(slot)->wrapper ||
	    (slot->stored_target && value == (uintptr_t)slot->stored_target))
		return true;
	return families[slot->family].wrappers_are_first &&
	       value >= slot->lazy_start && value < slot->lazy_end;
}

static void point_slot(struct slot *slot, slot_read *read)
{
	void *target = target_of(slot)->target;
	void *page = (void *)(slot->place & ~(uintptr_t)(PAGE - 1));
	struct slot_thunk thunk = { .place = slot->place };

	NOTIFY(slot_thunk_wanted, &thunk);
	if (!target ||
	    !leads_to_wrapper(slot,
			      thunk.target ? thunk.target : (void *)slot->place,
			      thunk.target ? sys_peek : read))
		return;
	slot->stored_target = target;
	if (thunk.target) {
		__atomic_store_n(thunk.target, (uintptr_t)target,
				 __ATOMIC_RELEASE);
		return;
	}
	if (slot->may_go) {
		sys_poke((void *)slot->place, &target, sizeof(target));
		return;
	}
	/* If a hardened kernel refuses, the slot still leads to the wrapper. */
	if (slot->is_relro &&
	    sys_protect(page, PAGE, PROT_READ | PROT_WRITE) < 0)
		return;
	__atomic_store_n((void **)slot->place, target, __ATOMIC_RELEASE);
	if (slot->is_relro)
		sys_protect(page, PAGE, PROT_READ);
}

static bool grow_slots(void)
{
	struct slot *more;
	void *memory;

	if (slot_count < slot_room)
		return true;
	if (sys_map(2 * slot_room * sizeof(*slots), &memory) < 0)
		return false;
	more = memory;
	for (unsigned i = 0; i < slot_count; i++)
		more[i] = slots[i];
	if (slots != first_slots)
		sys_unmap(slots, slot_room * sizeof(*slots));
	slots = more;
	slot_room *= 2;
	return true;
}

void got_slots_add(const struct hook_table_image *image, const char *name,
		   uintptr_t place, bool is_undefined)
{
	enum got_slots_family family = family_of(name);
	struct slot slot;
	int function;

	if (!is_undefined || families[family].uses_wrappers)
		return;
	function = find_name(family, name);
	if (function < 0)
		return;
	slot = (struct slot){
		.place = place,
		.family = (uint8_t)family,
		.function = (uint8_t)function,
		.is_relro = place - image->relro < image->relro_size,
		.may_go = image->may_go,
	};
	/* For an object that is loaded later, the loader may search the object's
	 * libraries before shim. */
	if (!image->may_go) {
		slot.lazy_start = image->bias;
		slot.lazy_end = image->dynamic;
	}
	/* Without room for the slot, the slot still leads to the wrapper. */
	if (!grow_slots())
		return;
	if (families[family].bypasses)
		point_slot(&slot, image->may_go ? pages_read : sys_peek);
	slots[slot_count++] = slot;
}

/* Points the slots of a family that bypasses the wrappers; removes those of a family
 * that uses the wrappers. */
static void apply_decision(enum got_slots_family family)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < slot_count; i++) {
		if (slots[i].family == family && families[family].bypasses)
			point_slot(&slots[i], sys_peek);
		if (slots[i].family != family || families[family].bypasses)
			slots[kept++] = slots[i];
	}
	slot_count = kept;
}

struct bypass {
	enum got_slots_family family;
	const struct got_slots_function *functions;
	bool is_first;
};

static int bypass_locked(void *argument)
{
	const struct bypass *bypass = argument;
	const struct got_slots_function *functions = bypass->functions;
	enum got_slots_family family = bypass->family;

	for (unsigned i = 0; i < SLOTS_FUNCTIONS && functions[i].name; i++) {
		int number = find_name(family, functions[i].name);

		if (number >= 0)
			families[family].targets[number] = functions[i];
	}
	families[family].wrappers_are_first = bypass->is_first;
	families[family].bypasses = true;
	apply_decision(family);
	return 0;
}

void got_slots_bypass(
	enum got_slots_family family,
	const struct got_slots_function functions[SLOTS_FUNCTIONS],
	bool is_first)
{
	struct bypass bypass = { family, functions, is_first };

	state_call_locked(bypass_locked, &bypass);
}

static int use_wrappers_locked(void *family)
{
	families[*(enum got_slots_family *)family].uses_wrappers = true;
	apply_decision(*(enum got_slots_family *)family);
	return 0;
}

void got_slots_use_wrappers(enum got_slots_family family)
{
	state_call_locked(use_wrappers_locked, &family);
}

void got_slots_forget(uintptr_t start, uintptr_t end)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < slot_count; i++)
		if (slots[i].place < start || slots[i].place >= end)
			slots[kept++] = slots[i];
	slot_count = kept;
}
