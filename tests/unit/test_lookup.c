/*
 * Definitions in single objects: os/lookup.c.
 */
#define _GNU_SOURCE
#include "os/lookup.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <dlfcn.h>
#include <link.h>
#include <string.h>

Test(lookup, a_definition_is_found_in_its_object_only)
{
	struct link_map *map = dlopen(PLUGIN, RTLD_NOW);
	void *libc = dlopen("libc.so.6", RTLD_NOW);
	uintptr_t of_plugin, of_libc;
	size_t size = 0;

	cr_assert(map != NULL);
	cr_assert(libc != NULL);
	of_plugin = (uintptr_t)map->l_ld;
	of_libc = (uintptr_t)((struct link_map *)libc)->l_ld;
	cr_expect(eq(ptr,
		     lookup_within(of_plugin, of_plugin + 1, "plugin_function",
				   &size),
		     dlsym(map, "plugin_function")));
	cr_expect(gt(sz, size, 0));
	cr_expect(eq(
		ptr,
		lookup_within(of_libc, of_libc + 1, "plugin_function", &size),
		NULL));
	cr_expect(eq(ptr, lookup_within(of_libc, of_libc + 1, "atoi", &size),
		     dlsym(libc, "atoi")));
	cr_expect(eq(ptr,
		     lookup_within(of_plugin, of_plugin + 1, "atoi", &size),
		     NULL));
	/* No object begins there. */
	cr_expect(eq(ptr,
		     lookup_within(of_plugin + 1, of_plugin + 2,
				   "plugin_function", &size),
		     NULL));
	cr_expect(eq(ptr,
		     lookup_within(of_plugin - 1, of_plugin, "plugin_function",
				   &size),
		     NULL));
}

/* --- tables of hashes --- */

/* An object with the old table of hashes only, as --hash-style=sysv makes them.  Chains
 * lead from the bucket's symbol to others. */
static struct {
	uint32_t hash[2 + 8 + 8];
	ElfW(Sym) symbols[8];
	char strings[8 * 8];
	ElfW(Dyn) dynamic[4];
	struct link_map map;
} old;

static uint32_t old_hash(const char *name)
{
	uint32_t hash = 0, high;

	for (; *name; name++) {
		hash = (hash << 4) + (unsigned char)*name;
		high = hash & 0xf0000000;
		hash ^= high >> 24;
		hash &= ~high;
	}
	return hash;
}

static void name_of(unsigned number, char *name)
{
	memcpy(name, "name_?", 7);
	name[5] = (char)('a' + number);
}

/* Seven functions; the first symbol is none. */
static void make_old(uint32_t buckets)
{
	memset(&old, 0, sizeof(old));
	old.hash[0] = buckets;
	old.hash[1] = 8;
	for (unsigned i = 1; i < 8; i++) {
		char *name = old.strings + i * 8;
		uint32_t *bucket;

		name_of(i, name);
		old.symbols[i].st_name = (ElfW(Word))(i * 8);
		old.symbols[i].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
		old.symbols[i].st_shndx = 1;
		old.symbols[i].st_value = 0x100 * i;
		if (buckets == 0)
			continue;
		bucket = &old.hash[2 + old_hash(name) % buckets];
		old.hash[2 + buckets + i] = *bucket;
		*bucket = i;
	}
	old.dynamic[0].d_tag = DT_SYMTAB;
	old.dynamic[0].d_un.d_ptr = (uintptr_t)old.symbols;
	old.dynamic[1].d_tag = DT_STRTAB;
	old.dynamic[1].d_un.d_ptr = (uintptr_t)old.strings;
	old.dynamic[2].d_tag = DT_HASH;
	old.dynamic[2].d_un.d_ptr = (uintptr_t)old.hash;
	old.map.l_ld = old.dynamic;
	old.map.l_addr = 0x10000;
}

Test(lookup, all_definitions_are_found_by_the_old_table_of_hashes)
{
	for (uint32_t buckets = 1; buckets <= 8; buckets++) {
		make_old(buckets);
		for (unsigned i = 0; i < 9; i++) {
			uintptr_t want = 0x10000 + 0x100 * i;
			char name[8];

			name_of(i, name);
			cr_expect(eq(u64, (uintptr_t)lookup_in(&old.map, name),
				     i == 0 || i == 8 ? 0 : want),
				  "%u of %u", i, buckets);
		}
	}
	make_old(0);
	cr_expect(zero(ptr, lookup_in(&old.map, "name_b")));
}

Test(lookup, a_symbol_that_is_no_definition_is_not_found)
{
	make_old(2);
	old.symbols[1].st_shndx = SHN_UNDEF;
	old.symbols[2].st_value = 0;
	old.symbols[3].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_TLS);
	old.symbols[4].st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC);
	old.symbols[5].st_info = ELF64_ST_INFO(STB_WEAK, STT_OBJECT);
	old.symbols[6].st_shndx = SHN_ABS;
	for (unsigned i = 1; i < 5; i++) {
		char name[8];

		name_of(i, name);
		cr_expect(zero(ptr, lookup_in(&old.map, name)), "%u", i);
	}
	cr_expect(eq(u64, (uintptr_t)lookup_in(&old.map, "name_f"), 0x10500));
	cr_expect(eq(u64, (uintptr_t)lookup_in(&old.map, "name_g"), 0x600));
	old.dynamic[2].d_tag = DT_DEBUG;
	cr_expect(zero(ptr, lookup_in(&old.map, "name_g")));
}
