/*
 * The linker's stubs that lead to shim since the attach, and their former distances.
 */
#include "dispatch/stub_redirects.h"

#include "arch.h"
#include "dispatch/near.h"
#include "dispatch/patch.h"
#include "os/sys.h"
#include "runtime/state.h"

#include <shim/banned.h>

#define PAGE	   4096u
#define CODE_SIZE  (256u << 10) /* of the stubs of one image, at most */
#define STUB_ALIGN 8
#define NOTES_MAX  8
#define STUBS_MAX  512

static struct note {
	uintptr_t place, ours;
	uintptr_t distance_at; /* in its stub; 0: not found */
} notes[NOTES_MAX];
static unsigned note_count;

static struct stub {
	uintptr_t distance_at;
	uintptr_t page; /* which has shim's slots */
	uint32_t former, ours;
} stubs[STUBS_MAX];
static unsigned stub_count;

void stub_redirects_begin(void)
{
	note_count = 0;
}

void stub_redirects_note(uintptr_t place, uintptr_t ours)
{
	ASSERT_LOCKED();
	if (note_count < NOTES_MAX)
		notes[note_count++] = (struct note){ place, ours, 0 };
}

static void find_in(const unsigned char *code, uintptr_t address)
{
	uintptr_t slot;

	if (!arch_plt_slot(code, address, &slot))
		return;
	for (unsigned i = 0; i < note_count; i++)
		if (notes[i].place == slot && notes[i].distance_at == 0)
			notes[i].distance_at = address +
					       arch_plt_distance(code);
}

static bool has_all(void)
{
	for (unsigned i = 0; i < note_count; i++)
		if (notes[i].distance_at == 0)
			return false;
	return true;
}

/* One store changes the distance only within a line of the cache. */
static bool find_stubs(uintptr_t code)
{
	static unsigned char bytes[PAGE + ARCH_PLT_SIZE];
	uintptr_t at = (code + STUB_ALIGN - 1) & -(uintptr_t)STUB_ALIGN;
	uintptr_t end = at + CODE_SIZE;

	for (; at < end && !has_all(); at += PAGE) {
		if (sys_peek((const void *)at, bytes, sizeof(bytes)) < 0)
			break;
		for (unsigned i = 0; i < PAGE; i += STUB_ALIGN)
			find_in(bytes + i, at + i);
	}
	for (unsigned i = 0; i < note_count; i++)
		if (!patch_is_one_store(notes[i].distance_at))
			return false;
	return has_all();
}

static bool add_stub(const struct note *note, uintptr_t page, unsigned number)
{
	uintptr_t slot = page + number * sizeof(uintptr_t);
	struct stub *stub = &stubs[stub_count];

	*stub = (struct stub){
		.distance_at = note->distance_at,
		.page = page,
		.ours = (uint32_t)(slot - (note->distance_at + 4)),
	};
	if (sys_peek((const void *)note->distance_at, &stub->former,
		     sizeof(stub->former)) < 0)
		return false;
	((uintptr_t *)page)[number] = note->ours;
	stub_count++;
	return true;
}

static int store(const struct stub *stub, bool is_on)
{
	struct patch patch;
	int r;

	patch_open(&patch, stub->distance_at, stub->distance_at + 4);
	r = patch_store(&patch, stub->distance_at,
			is_on ? stub->ours : stub->former);
	patch_close(&patch);
	return r;
}

/* The first of them has the page, even if it could not be added.  A stub that cannot be put
 * back needs it. */
static void remove_from(unsigned first)
{
	uintptr_t page = stubs[first].page;
	bool is_unused = true;

	while (stub_count > first)
		is_unused &= store(&stubs[--stub_count], false) == 0;
	if (is_unused)
		sys_unmap((void *)page, PAGE);
}

bool stub_redirects_make(uintptr_t code, bool is_undone)
{
	unsigned first = stub_count;
	bool is_made = true;
	uintptr_t page;

	ASSERT_LOCKED();
	if (note_count == 0)
		return true;
	if (!code || stub_count + note_count > STUBS_MAX || !find_stubs(code))
		return false;
	page = near_map(code, PAGE);
	if (!page)
		return false;
	for (unsigned i = 0; i < note_count && is_made; i++)
		is_made = add_stub(&notes[i], page, i) &&
			  (is_undone ||
			   store(&stubs[stub_count - 1], true) == 0);
	if (!is_made)
		remove_from(first);
	return is_made;
}

void stub_redirects_switch(bool is_on)
{
	ASSERT_LOCKED();
	for (unsigned i = 0; i < stub_count; i++)
		store(&stubs[i], is_on);
	if (stub_count > 0)
		sys_sync_cores();
}

void stub_redirects_forget(uintptr_t start, uintptr_t end)
{
	unsigned kept = 0;
	uintptr_t unmapped = 0;

	for (unsigned i = 0; i < stub_count; i++) {
		const struct stub *stub = &stubs[i];

		if (stub->distance_at < start || stub->distance_at >= end) {
			stubs[kept++] = *stub;
		} else if (stub->page != unmapped) {
			unmapped = stub->page;
			sys_unmap((void *)unmapped, PAGE);
		}
	}
	stub_count = kept;
}
