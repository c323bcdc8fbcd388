/*
 * The table of the two hooks, and the GOT slots through which images call them.  A slot
 * is one aligned word, so one store changes the hook while other threads call it.
 */
#include "dispatch/hook_table.h"

#include "arch.h"
#include "dispatch/got_slots.h"
#include "dispatch/redirects.h"
#include "os/lookup.h"
#include "os/pages.h"
#include "os/sys.h"
#include "os/text.h"
#include "runtime/state.h"

#include <elf.h>
#include <link.h>
#include <sys/mman.h>

#include <shim/banned.h>

#define PAGE	    4096
#define OBJECTS_MAX 16384 /* the search of the loader's list stops there */

/* arch/.../dispatch.S */
void table_nothing(void);
void __cyg_profile_func_enter(void *function, void *site);
void __cyg_profile_func_exit(void *function, void *site);

typedef void (*hook)(void);

/* The enter and leave hook that dispatch.S jumps to.  NULL until shim has started, and
 * before the loader has relocated shim (edge/early.c). */
__attribute__((visibility("hidden"))) hook table_current[2];

/* Entries of an image's dynamic section. */
struct dynamic {
	uintptr_t symbols, strings, jumps, relocations, slots, init;
	size_t jumps_size, relocations_size;
	size_t relative;  /* relocations without a symbol, which come first */
	bool is_symbolic; /* the image's own definitions come first */
};

struct slot {
	hook *place;
	bool leaves;
	bool is_relro; /* its page is read-only */
	bool may_go;
};

static struct slot slots[512];
static unsigned slot_count;

/* Slots of mcount and __fentry__, of any definition, which stay as they are. */
static struct mcount_slot {
	uintptr_t place;
	bool is_entry;
} mcount_slots[512];
static unsigned mcount_count;

static uintptr_t exported_hook(bool leaves)
{
	return leaves ? (uintptr_t)__cyg_profile_func_exit :
			(uintptr_t)__cyg_profile_func_enter;
}

static void point_slot(const struct slot *slot)
{
	hook target = table_current[slot->leaves];
	void *page = (void *)((uintptr_t)slot->place & ~(uintptr_t)(PAGE - 1));

	if (!target)
		return;
	if (slot->may_go) {
		sys_poke(slot->place, &target, sizeof(target));
		return;
	}
	if (!slot->is_relro) {
		__atomic_store_n(slot->place, target, __ATOMIC_RELEASE);
		return;
	}
	/* If a hardened kernel refuses, calls keep taking the jump through the table,
	 * which leads to the same hook. */
	if (sys_protect(page, PAGE, PROT_READ | PROT_WRITE) < 0)
		return;
	__atomic_store_n(slot->place, target, __ATOMIC_RELEASE);
	sys_protect(page, PAGE, PROT_READ);
}

static void point_all_slots(void)
{
	for (unsigned i = 0; i < slot_count; i++)
		if (slots[i].leaves)
			point_slot(&slots[i]);
	for (unsigned i = 0; i < slot_count; i++)
		if (!slots[i].leaves)
			point_slot(&slots[i]);
}

void hook_table_point(void *enter, void *leave)
{
	hook enter_hook = enter ? (hook)enter : table_nothing;
	hook leave_hook = leave ? (hook)leave : table_nothing;

	if (table_current[0] == enter_hook && table_current[1] == leave_hook)
		return;
	/* The leave hook comes first.  So a profiler that is being attached may see a
	 * leave without an enter, as for any open call, but it sees the leave of each
	 * enter.  (The plan no longer has a profiler that is being detached.) */
	__atomic_store_n(&table_current[1], leave_hook, __ATOMIC_RELEASE);
	__atomic_store_n(&table_current[0], enter_hook, __ATOMIC_RELEASE);
	point_all_slots();
}

void *hook_table_hook(bool leaves)
{
	return (void *)__atomic_load_n(&table_current[leaves],
				       __ATOMIC_ACQUIRE);
}

void hook_table_forked(void)
{
	point_all_slots();
}

void hook_table_start(void)
{
	ASSERT_LOCKED();
	hook_table_point(NULL, NULL);
}

/* --- unresolved slots --- */

static bool opens_deep;

void hook_table_opens_deep(void)
{
	__atomic_store_n(&opens_deep, true, __ATOMIC_RELEASE);
}

/* Whether the loader, which searches the program's objects in their order, finds shim's
 * definition first. */
static bool shim_is_first(bool leaves)
{
	static enum { UNKNOWN, OURS, ANOTHER } first[2];

	if (first[leaves] == UNKNOWN)
		first[leaves] = lookup_first(
					leaves ? "__cyg_profile_func_exit" :
						 "__cyg_profile_func_enter") ==
						(void *)exported_hook(leaves) ?
					OURS :
					ANOTHER;
	return first[leaves] == OURS;
}

/* Objects in another namespace call the hooks of that namespace: libc's empty
 * functions.  @map is the loader's entry from the object's second slot, which may be
 * freed at any time. */
static bool is_in_our_namespace(uintptr_t map)
{
	const struct r_debug *list = lookup_list();

	for (unsigned i = 0; map && i < OBJECTS_MAX; i++) {
		struct link_map object;

		if (map == (uintptr_t)list->r_map)
			return true;
		if (sys_peek((const void *)map, &object, sizeof(object)) < 0)
			return false;
		map = (uintptr_t)object.l_prev;
	}
	return false;
}

/* Whether the loader resolves an undefined name of the image in the program's list. */
static bool leads_to_our_namespace(const struct hook_table_image *image,
				   const struct dynamic *dynamic)
{
	uintptr_t map;

	if (image->may_go && __atomic_load_n(&opens_deep, __ATOMIC_ACQUIRE))
		return false;
	return dynamic->slots &&
	       sys_peek((const void *)(dynamic->slots + sizeof(map)), &map,
			sizeof(map)) == 0 &&
	       is_in_our_namespace(map);
}

static bool will_lead_to_shim(const struct hook_table_image *image,
			      const struct dynamic *dynamic, bool leaves,
			      bool is_undefined)
{
	if (!shim_is_first(leaves) || (dynamic->is_symbolic && !is_undefined))
		return false;
	return leads_to_our_namespace(image, dynamic);
}

/* Whether shim may change a slot: the slot leads to shim; or it is unresolved (it
 * points into its own image), and the loader will resolve it to shim.  If the program
 * defines hooks, the slot leads to the program's. */
static bool may_change(const struct hook_table_image *image,
		       const struct dynamic *dynamic, uintptr_t value,
		       bool leaves, bool is_undefined)
{
	return value == exported_hook(leaves) ||
	       (value >= image->bias && value < image->dynamic &&
		will_lead_to_shim(image, dynamic, leaves, is_undefined));
}

static void add_slot(const struct hook_table_image *image,
		     const struct dynamic *dynamic, uintptr_t place,
		     bool leaves, bool is_undefined)
{
	uintptr_t value;
	bool is_relro = place >= image->relro &&
			place - image->relro < image->relro_size;
	struct slot slot = {
		.place = (hook *)place,
		.leaves = leaves,
		.is_relro = is_relro,
		.may_go = image->may_go,
	};

	if (slot_count == sizeof(slots) / sizeof(*slots) ||
	    sys_peek((const void *)place, &value, sizeof(value)) < 0 ||
	    !may_change(image, dynamic, value, leaves, is_undefined))
		return;
	slots[slot_count++] = slot;
	point_slot(&slot);
}

static void add_mcount(uintptr_t place, const char *name)
{
	bool is_entry = text_equal(name, "__fentry__");

	if ((is_entry || text_equal(name, "mcount") ||
	     text_equal(name, "_mcount")) &&
	    mcount_count < sizeof(mcount_slots) / sizeof(*mcount_slots))
		mcount_slots[mcount_count++] = (struct mcount_slot){ place,
								     is_entry };
}

bool hook_table_has_mcount(void)
{
	return __atomic_load_n(&mcount_count, __ATOMIC_RELAXED) > 0;
}

/* An address of the dynamic section, which the loader may have relocated already. */
static uintptr_t relocate(const struct hook_table_image *image,
			  uintptr_t address)
{
	return address < image->bias ? address + image->bias : address;
}

static void skip_relative(struct dynamic *dynamic)
{
	size_t count = dynamic->relocations_size / sizeof(Elf64_Rela);

	if (dynamic->relative > count)
		dynamic->relative = count;
	dynamic->relocations += dynamic->relative * sizeof(Elf64_Rela);
	dynamic->relocations_size -= dynamic->relative * sizeof(Elf64_Rela);
}

static bool read_dynamic(const struct hook_table_image *image,
			 struct dynamic *dynamic)
{
	Elf64_Dyn entry;

	*dynamic = (struct dynamic){ 0 };
	for (size_t at = 0; at + sizeof(entry) <= image->dynamic_size;
	     at += sizeof(entry)) {
		if (pages_read((const void *)(image->dynamic + at), &entry,
			       sizeof(entry)) < 0)
			return false;
		switch (entry.d_tag) {
		case DT_NULL: at = image->dynamic_size; break;
		case DT_SYMTAB:
			dynamic->symbols = relocate(image, entry.d_un.d_ptr);
			break;
		case DT_STRTAB:
			dynamic->strings = relocate(image, entry.d_un.d_ptr);
			break;
		case DT_PLTGOT:
			dynamic->slots = relocate(image, entry.d_un.d_ptr);
			break;
		case DT_INIT:
			dynamic->init = relocate(image, entry.d_un.d_ptr);
			break;
		case DT_SYMBOLIC: dynamic->is_symbolic = true; break;
		case DT_FLAGS:
			dynamic->is_symbolic |= entry.d_un.d_val & DF_SYMBOLIC;
			break;
		case DT_JMPREL:
			dynamic->jumps = relocate(image, entry.d_un.d_ptr);
			break;
		case DT_PLTRELSZ: dynamic->jumps_size = entry.d_un.d_val; break;
		case DT_RELA:
			dynamic->relocations = relocate(image,
							entry.d_un.d_ptr);
			break;
		case DT_RELASZ:
			dynamic->relocations_size = entry.d_un.d_val;
			break;
		case DT_RELACOUNT: dynamic->relative = entry.d_un.d_val; break;
		}
	}
	skip_relative(dynamic);
	return dynamic->symbols && dynamic->strings;
}

/* The size of the longest name that shim searches, with its NUL. */
#define NAME_SIZE sizeof("pthread_rwlock_clockrdlock")

/* Reads the memory of an image directly if no thread can unload it, as during the first
 * scan. */
static int read_from(const struct hook_table_image *image, const void *from,
		     void *to, size_t size)
{
	if (image->may_go)
		return pages_read(from, to, size);
	for (size_t i = 0; i < size; i++)
		((char *)to)[i] = ((const char *)from)[i];
	return 0;
}

/* Reads the name of a symbol; false if it is longer than all names that shim searches. */
static bool read_name(const struct hook_table_image *image,
		      const struct dynamic *dynamic, size_t number,
		      char name[NAME_SIZE], bool *is_undefined)
{
	const char *at;
	Elf64_Sym symbol;

	if (read_from(image, (const Elf64_Sym *)dynamic->symbols + number,
		      &symbol, sizeof(symbol)))
		return false;
	*is_undefined = symbol.st_shndx == SHN_UNDEF;
	at = (const char *)dynamic->strings + symbol.st_name;
	if (image->may_go)
		return pages_read_text(at, name, NAME_SIZE);
	for (size_t i = 0; i < NAME_SIZE; i++) {
		name[i] = at[i];
		if (at[i] == '\0')
			return true;
	}
	return false;
}

static void scan_relocations(const struct hook_table_image *image,
			     const struct dynamic *dynamic, uintptr_t start,
			     size_t size)
{
	static Elf64_Rela part[64];
	const Elf64_Rela *next = (const Elf64_Rela *)start;
	size_t left = size / sizeof(*next), have = 0;
	const Elf64_Rela *r = NULL;

	for (; left > 0; left--, next++, r++, have--) {
		const char *rest;
		char name[NAME_SIZE];
		bool is_undefined;

		if (have == 0) {
			have = left < 64 ? left : 64;
			r = part;
			if (read_from(image, next, part, have * sizeof(*part)))
				return;
		}
		if (ELF64_R_TYPE(r->r_info) != ARCH_RELOC_JUMP_SLOT &&
		    ELF64_R_TYPE(r->r_info) != ARCH_RELOC_GLOB_DAT)
			continue;
		if (!read_name(image, dynamic, ELF64_R_SYM(r->r_info), name,
			       &is_undefined))
			continue;
		if (is_undefined &&
		    redirects_want(name, ELF64_R_TYPE(r->r_info) ==
						 ARCH_RELOC_JUMP_SLOT))
			redirects_add(image, name, image->bias + r->r_offset,
				      leads_to_our_namespace(image, dynamic));
		if (is_undefined &&
		    ELF64_R_TYPE(r->r_info) == ARCH_RELOC_GLOB_DAT)
			redirects_note_address(name, image->bias + r->r_offset);
		if (ELF64_R_TYPE(r->r_info) == ARCH_RELOC_JUMP_SLOT)
			got_slots_add(image, name, image->bias + r->r_offset,
				      is_undefined);
		if (is_undefined)
			add_mcount(image->bias + r->r_offset, name);
		rest = text_after(name, "__cyg_profile_func_");
		if (rest && text_equal(rest, "enter"))
			add_slot(image, dynamic, image->bias + r->r_offset,
				 false, is_undefined);
		else if (rest && text_equal(rest, "exit"))
			add_slot(image, dynamic, image->bias + r->r_offset,
				 true, is_undefined);
	}
}

void hook_table_bind(const struct hook_table_image *image)
{
	struct dynamic dynamic;

	if (!image->dynamic)
		return;
	pages_begin(image->end);
	if (read_dynamic(image, &dynamic)) {
		redirects_begin();
		if (dynamic.relocations)
			scan_relocations(image, &dynamic, dynamic.relocations,
					 dynamic.relocations_size);
		redirects_end_addresses(image, dynamic.init);
		if (dynamic.jumps)
			scan_relocations(image, &dynamic, dynamic.jumps,
					 dynamic.jumps_size);
	}
}

unsigned hook_table_slots(uintptr_t start, uintptr_t end, uintptr_t *places,
			  unsigned room)
{
	unsigned count = 0;

	for (unsigned i = 0; i < slot_count && count < room; i++) {
		uintptr_t place = (uintptr_t)slots[i].place;

		if (place >= start && place < end)
			places[count++] = place;
	}
	return count;
}

unsigned hook_table_mcount_slots(uintptr_t start, uintptr_t end, bool is_entry,
				 uintptr_t *places, unsigned room)
{
	unsigned count = 0;

	for (unsigned i = 0; i < mcount_count && count < room; i++)
		if (mcount_slots[i].is_entry == is_entry &&
		    mcount_slots[i].place >= start &&
		    mcount_slots[i].place < end)
			places[count++] = mcount_slots[i].place;
	return count;
}

static void forget_mcount(uintptr_t start, uintptr_t end)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < mcount_count; i++)
		if (mcount_slots[i].place < start ||
		    mcount_slots[i].place >= end)
			mcount_slots[kept++] = mcount_slots[i];
	mcount_count = kept;
}

void hook_table_unbind(uintptr_t start, uintptr_t end)
{
	unsigned kept = 0;

	got_slots_forget(start, end);
	redirects_forget(start, end);
	forget_mcount(start, end);
	for (unsigned i = 0; i < slot_count; i++) {
		uintptr_t place = (uintptr_t)slots[i].place;

		if (place < start || place >= end)
			slots[kept++] = slots[i];
	}
	slot_count = kept;
}
