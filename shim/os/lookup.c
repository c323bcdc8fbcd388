/*
 * Finds symbols in loaded objects by their hash tables.  dlsym may allocate
 * with the program's malloc and changes the text of dlerror; this code does
 * neither.
 */
#define _GNU_SOURCE
#include "os/lookup.h"

#include "os/text.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/auxv.h>

#include <shim/banned.h>

/* Only glibc has it. */
#pragma weak dladdr1

/* The loader's list.  If the loader does not export it, the program's dynamic section
 * points to it. */
extern struct r_debug _r_debug __attribute__((weak));
/* The dynamic section of the object that contains this code. */
extern ElfW(Dyn) _DYNAMIC[] __attribute__((weak, visibility("hidden")));

/* --- the list --- */

static const ElfW(Dyn) * program_dynamic(void)
{
	const ElfW(Phdr) *part = (const void *)getauxval(AT_PHDR);
	size_t count = getauxval(AT_PHNUM);
	uintptr_t bias = 0, dynamic = 0, first_page;
	bool is_known = false;

	/* A loader that was started as a command has no PT_PHDR.  Its headers are in
	 * its first page. */
	first_page = (uintptr_t)part & -(uintptr_t)4096;
	for (size_t i = 0; part && i < count; i++) {
		if (part[i].p_type == PT_PHDR)
			bias = (uintptr_t)part - part[i].p_vaddr;
		else if (part[i].p_type == PT_LOAD && part[i].p_offset == 0 &&
			 !is_known)
			bias = first_page - part[i].p_vaddr;
		is_known |= part[i].p_type == PT_PHDR;
		if (part[i].p_type == PT_DYNAMIC)
			dynamic = part[i].p_vaddr;
	}
	return dynamic ? (const void *)(bias + dynamic) : NULL;
}

const struct r_debug *lookup_list(void)
{
	const ElfW(Dyn) * entry;

	if (&_r_debug && _r_debug.r_map)
		return &_r_debug;
	for (entry = program_dynamic(); entry && entry->d_tag != DT_NULL;
	     entry++)
		if (entry->d_tag == DT_DEBUG)
			return (const void *)entry->d_un.d_ptr;
	return NULL;
}

/* --- one object --- */

struct object {
	const ElfW(Sym) * symbols;
	const char *strings;
	const uint32_t *gnu_hash, *hash;
	const uint16_t *versions;
	const ElfW(Verdef) * definitions; /* of versions */
	size_t soname;			  /* in the strings; 0: none */
};

/* The loader has relocated the addresses, unless the object's dynamic section is
 * read-only. */
static const void *relocate(const struct link_map *map, uintptr_t address)
{
	return (const void *)(address < map->l_addr ? address + map->l_addr :
						      address);
}

static bool read_object(const struct link_map *map, struct object *object)
{
	*object = (struct object){ 0 };
	for (const ElfW(Dyn) *entry = map->l_ld;
	     entry && entry->d_tag != DT_NULL; entry++) {
		const void *at = relocate(map, entry->d_un.d_ptr);

		switch (entry->d_tag) {
		case DT_SYMTAB: object->symbols = at; break;
		case DT_STRTAB: object->strings = at; break;
		case DT_GNU_HASH: object->gnu_hash = at; break;
		case DT_HASH: object->hash = at; break;
		case DT_VERSYM: object->versions = at; break;
		case DT_VERDEF: object->definitions = at; break;
		case DT_SONAME: object->soname = entry->d_un.d_val; break;
		}
	}
	return object->symbols && object->strings;
}

struct name_hash {
	const char *name;
	const char *version; /* NULL: the default one */
	uint32_t gnu_hash, hash;
};

static struct name_hash hash_of_name(const char *name)
{
	struct name_hash name_hash = { .name = name, .gnu_hash = 5381 };

	for (const unsigned char *at = (const void *)name; *at; at++) {
		uint32_t high;

		name_hash.gnu_hash = name_hash.gnu_hash * 33 + *at;
		name_hash.hash = (name_hash.hash << 4) + *at;
		high = name_hash.hash & 0xf0000000u;
		name_hash.hash = (name_hash.hash ^ high >> 24) & ~high;
	}
	return name_hash;
}

static bool is_version(const struct object *object, unsigned number,
		       const char *version)
{
	const char *at = (const char *)object->definitions;

	while (at) {
		const ElfW(Verdef) *entry = (const void *)at;
		const ElfW(Verdaux) *name = (const void *)(at + entry->vd_aux);

		if (entry->vd_ndx == number)
			return text_equal(object->strings + name->vda_name,
					  version);
		at = entry->vd_next ? at + entry->vd_next : NULL;
	}
	return false;
}

/* Indexes 0 and 1 mean no version; a hidden version is not the default. */
static bool has_version(const struct object *object, uint32_t index,
			const char *version)
{
	unsigned number = object->versions ? object->versions[index] : 0;
	bool is_hidden = number & 0x8000;

	number &= 0x7fff;
	if (!version)
		return number < 2 || !is_hidden;
	return number < 2 ? !is_hidden : is_version(object, number, version);
}

static bool is_definition(const struct object *object, uint32_t index,
			  const struct name_hash *name_hash)
{
	const ElfW(Sym) *symbol = &object->symbols[index];
	unsigned type = ELF64_ST_TYPE(symbol->st_info);

	return symbol->st_shndx != SHN_UNDEF && symbol->st_value != 0 &&
	       (type <= STT_FUNC || type == STT_GNU_IFUNC) &&
	       ELF64_ST_BIND(symbol->st_info) != STB_LOCAL &&
	       text_equal(object->strings + symbol->st_name, name_hash->name) &&
	       has_version(object, index, name_hash->version);
}

/* The table has nbuckets, symoffset, bloom_size, bloom_shift, bloom[], buckets[] and
 * chain[].  A chain ends with an odd hash. */
static const ElfW(Sym) *
	find_gnu(const struct object *object, const struct name_hash *name_hash)
{
	const uint32_t *table = object->gnu_hash;
	const uint32_t *buckets = table + 4 +
				  table[2] *
					  (sizeof(ElfW(Addr)) / sizeof(*table));
	const uint32_t *chain = buckets + table[0] - table[1];
	uint32_t index = table[0] ? buckets[name_hash->gnu_hash % table[0]] : 0;

	for (; index >= table[1] && index != 0; index++) {
		if ((chain[index] | 1) == (name_hash->gnu_hash | 1) &&
		    is_definition(object, index, name_hash))
			return &object->symbols[index];
		if (chain[index] & 1)
			break;
	}
	return NULL;
}

/* The table has nbucket, nchain, buckets[] and chain[]. */
static const ElfW(Sym) *
	find_old(const struct object *object, const struct name_hash *name_hash)
{
	const uint32_t *table = object->hash;
	uint32_t index = table[0] ? table[2 + name_hash->hash % table[0]] : 0;

	for (; index != 0; index = table[2 + table[0] + index])
		if (is_definition(object, index, name_hash))
			return &object->symbols[index];
	return NULL;
}

static const ElfW(Sym) * find_symbol(const struct link_map *map,
				     const struct name_hash *name_hash)
{
	struct object object;

	if (!read_object(map, &object))
		return NULL;
	if (object.gnu_hash)
		return find_gnu(&object, name_hash);
	return object.hash ? find_old(&object, name_hash) : NULL;
}

static uintptr_t address_of(const struct link_map *map,
			    const ElfW(Sym) * symbol)
{
	return symbol->st_shndx == SHN_ABS ? symbol->st_value :
					     map->l_addr + symbol->st_value;
}

static bool is_ifunc(const ElfW(Sym) * symbol)
{
	return ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC;
}

static uintptr_t resolve(const struct link_map *map, const ElfW(Sym) * symbol)
{
	uintptr_t address = address_of(map, symbol);

	return is_ifunc(symbol) ? ((uintptr_t(*)(void))address)() : address;
}

static void *find_in_object(const struct link_map *map,
			    const struct name_hash *name_hash, size_t *size)
{
	const ElfW(Sym) *symbol = find_symbol(map, name_hash);

	if (!symbol)
		return NULL;
	*size = symbol->st_size;
	return (void *)resolve(map, symbol);
}

/* --- objects loaded at the start --- */

/* The last object that was loaded at the start.  Objects that the program opens later
 * follow in the list and may be unloaded. */
static const struct link_map *last_at_start;

/* shim's entry if it was attached to a running program; otherwise NULL. */
static const struct link_map *attached;

static const struct link_map *first_object(void)
{
	const struct r_debug *list = lookup_list();
	const struct link_map *first = list ? list->r_map : NULL, *map = first;

	if (map && !__atomic_load_n(&last_at_start, __ATOMIC_ACQUIRE)) {
		while (map->l_next)
			map = map->l_next;
		__atomic_store_n(&last_at_start, map, __ATOMIC_RELEASE);
	}
	return first;
}

static const struct link_map *next_at_start(const struct link_map *map)
{
	return map == last_at_start ? NULL : map->l_next;
}

static void *find_from(const struct link_map *map, const char *name,
		       size_t *size)
{
	struct name_hash name_hash = hash_of_name(name);
	void *found = NULL;

	for (; map && !found; map = next_at_start(map))
		found = find_in_object(map, &name_hash, size);
	return found;
}

void *lookup_first_sized(const char *name, size_t *size)
{
	return find_from(first_object(), name, size);
}

void *lookup_first(const char *name)
{
	size_t size;

	return lookup_first_sized(name, &size);
}

static const struct link_map *find_ours(void)
{
	const struct link_map *map = first_object();

	if (attached)
		return attached;
	while (map && map->l_ld != _DYNAMIC)
		map = next_at_start(map);
	return map;
}

bool lookup_is_possible(void)
{
	return find_ours() != NULL;
}

/* Whether shim precedes libc in the list.  It does not if the program has opened shim by
 * dlopen; then lookup_next searches all objects except shim. */
static bool precedes_libc(const struct link_map *ours)
{
	size_t size;

	return find_from(next_at_start(ours), "__libc_start_main", &size) !=
	       NULL;
}

void *lookup_next(const char *name)
{
	const struct link_map *ours = find_ours(), *map;
	struct name_hash name_hash = hash_of_name(name);
	void *found;
	size_t size;

	if (!ours)
		return NULL;
	if (attached)
		return lookup_first(name);
	found = find_from(next_at_start(ours), name, &size);
	if (found || precedes_libc(ours))
		return found;
	for (map = first_object(); map && !found; map = next_at_start(map))
		if (map != ours)
			found = find_in_object(map, &name_hash, &size);
	return found;
}

void *lookup_real(const char *name)
{
	return lookup_is_possible() ? lookup_next(name) :
				      dlsym(RTLD_NEXT, name);
}

struct other_search {
	const char *symbol;
	void *found;
};

static int search_other(struct dl_phdr_info *info, size_t unused,
			void *argument)
{
	struct other_search *search = argument;
	struct name_hash name_hash = hash_of_name(search->symbol);
	struct link_map map = { .l_addr = info->dlpi_addr };
	size_t size;

	(void)unused;
	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			map.l_ld = (void *)(info->dlpi_addr +
					    info->dlpi_phdr[i].p_vaddr);
	if (map.l_ld && map.l_ld != _DYNAMIC)
		search->found = find_in_object(&map, &name_hash, &size);
	return search->found != NULL;
}

void *lookup_dlsym(const char *name)
{
	struct other_search search = { name, lookup_next(name) };

	if (!search.found)
		dl_iterate_phdr(search_other, &search);
	return search.found;
}

bool lookup_import(const char *name, const char *version, bool resolves,
		   struct lookup_import *import)
{
	const struct link_map *ours = find_ours(), *map = first_object();
	struct name_hash name_hash = hash_of_name(name);

	*import = (struct lookup_import){ .target = 0 };
	name_hash.version = version;
	for (; map; map = next_at_start(map)) {
		const ElfW(Sym) *symbol = find_symbol(map, &name_hash);

		if (!symbol)
			continue;
		if (resolves && import->target == 0)
			import->target = resolve(map, symbol);
		if (map == ours)
			continue;
		import->function = address_of(map, symbol);
		import->is_chosen = is_ifunc(symbol);
		import->is_data = ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT;
		return true;
	}
	return false;
}

void *lookup_in(const struct link_map *object, const char *name)
{
	struct name_hash name_hash = hash_of_name(name);
	size_t size;

	return find_in_object(object, &name_hash, &size);
}

/* --- objects loaded at any time --- */

static bool is_named(const struct link_map *map, const char *name)
{
	struct object object;

	return text_equal(text_base(map->l_name), name) ||
	       (read_object(map, &object) && object.soname &&
		text_equal(object.strings + object.soname, name));
}

static const struct link_map *find_named(const char *name)
{
	const struct link_map *map = lookup_list()->r_map;

	while (map && !is_named(map, text_base(name)))
		map = map->l_next;
	return map;
}

/* --- attached to a running program --- */

bool lookup_is_opened_as(const char *prefix)
{
	const struct r_debug *list = lookup_list();
	const struct link_map *map = list ? list->r_map : NULL;

	while (map && map->l_ld != _DYNAMIC)
		map = map->l_next;
	return map && map->l_name &&
	       text_after(text_base(map->l_name), prefix) != NULL;
}

static bool is_in_list(const struct link_map *first,
		       const struct link_map *last, const char *name)
{
	for (; first; first = first->l_next) {
		if (is_named(first, name))
			return true;
		if (first == last)
			break;
	}
	return false;
}

/* The last of the dependencies of @map that come after @last in the list, or @last. */
static const struct link_map *extend(const struct link_map *first,
				     const struct link_map *last,
				     const struct link_map *map)
{
	struct object object;

	if (!read_object(map, &object))
		return last;
	for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL;
	     entry++) {
		const char *name = object.strings + entry->d_un.d_val;
		const struct link_map *found;

		if (entry->d_tag != DT_NEEDED || is_in_list(first, last, name))
			continue;
		found = find_named(name);
		last = found ? found : last;
	}
	return last;
}

/*
 * Called with the loader's lock held.  The loader's list begins with the program and all
 * its dependencies, which are never unloaded.  Objects that the program has opened
 * follow, and then shim.
 */
static int find_start(struct dl_phdr_info *unused, size_t size, void *found)
{
	const struct r_debug *list = lookup_list();
	const struct link_map *first = list->r_map, *last = first, *map;

	(void)unused;
	(void)size;
	for (map = first; map; map = map->l_next) {
		last = extend(first, last, map);
		if (map == last)
			break;
	}
	for (map = first; map && map->l_ld != _DYNAMIC; map = map->l_next)
		;
	__atomic_store_n(&last_at_start, last, __ATOMIC_RELEASE);
	attached = map;
	*(bool *)found = map != NULL && map != last;
	return 1;
}

bool lookup_attach(void)
{
	bool found = false;

	if (lookup_list())
		dl_iterate_phdr(find_start, &found);
	return found;
}

bool lookup_was_attached(void)
{
	return attached != NULL;
}

bool lookup_stays(uintptr_t dynamic)
{
	const struct link_map *map = first_object();

	while (map && (uintptr_t)map->l_ld != dynamic)
		map = next_at_start(map);
	return map != NULL;
}

void *lookup_ours(const char *name)
{
	struct name_hash name_hash = hash_of_name(name);
	size_t size;

	return attached ? find_in_object(attached, &name_hash, &size) : NULL;
}

void *lookup_libc(const char *name)
{
	struct name_hash start = hash_of_name("__libc_start_main");
	struct name_hash wanted = hash_of_name(name);
	const struct link_map *map = first_object();
	size_t size;

	while (map && !find_in_object(map, &start, &size))
		map = next_at_start(map);
	return map ? find_in_object(map, &wanted, &size) : NULL;
}

/* --- an object and its dependencies --- */

#define NEEDED_MAX 64

/* An object and its dependencies, in the loader's order. */
struct family {
	const struct link_map *members[NEEDED_MAX];
	unsigned count;
};

static void add_object(struct family *family, const struct link_map *map)
{
	for (unsigned i = 0; i < family->count; i++)
		if (family->members[i] == map)
			return;
	if (map && family->count < NEEDED_MAX)
		family->members[family->count++] = map;
}

static void add_needed(struct family *family, const struct link_map *map)
{
	struct object object;

	if (!read_object(map, &object))
		return;
	for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL;
	     entry++)
		if (entry->d_tag == DT_NEEDED)
			add_object(family, find_named(object.strings +
						      entry->d_un.d_val));
}

struct family_search {
	const struct link_map *from; /* NULL: the object with this name */
	const char *object;
	const char *symbol;
	void *found;
};

/* Called with the loader's lock held: no object is loaded or unloaded. */
static int search_family(struct dl_phdr_info *unused, size_t size,
			 void *argument)
{
	struct family_search *family_search = argument;
	struct name_hash name_hash = hash_of_name(family_search->symbol);
	struct family family = { .count = 0 };

	(void)unused;
	if (!family_search->from)
		family_search->from = find_named(family_search->object);
	add_object(&family, family_search->from);
	for (unsigned i = 0; i < family.count && !family_search->found; i++) {
		family_search->found = find_in_object(family.members[i],
						      &name_hash, &size);
		add_needed(&family, family.members[i]);
	}
	return 1;
}

void *lookup_near(const void *code, const char *name)
{
	struct family_search family_search = { .symbol = name };
	Dl_info info;

	if (lookup_list() && dladdr1 &&
	    dladdr1(code, &info, (void **)&family_search.from, RTLD_DL_LINKMAP))
		dl_iterate_phdr(search_family, &family_search);
	return family_search.found;
}

void *lookup_beside(const char *object, const char *name)
{
	struct family_search family_search = { .object = object,
					       .symbol = name };

	if (lookup_list())
		dl_iterate_phdr(search_family, &family_search);
	return family_search.found;
}

/* --- an object by its addresses --- */

struct range_search {
	uintptr_t start, end;
	const char *symbol;
	size_t *symbol_size;
	void *found;
};

static bool is_in(const struct link_map *object, uintptr_t start, uintptr_t end)
{
	return (uintptr_t)object->l_ld >= start &&
	       (uintptr_t)object->l_ld < end;
}

/* Called with the loader's lock held: no object is loaded or unloaded. */
static int search_range(struct dl_phdr_info *unused, size_t size,
			void *argument)
{
	struct range_search *search = argument;
	struct name_hash name_hash = hash_of_name(search->symbol);
	const struct link_map *map = lookup_list()->r_map;

	(void)unused;
	(void)size;
	while (map && !is_in(map, search->start, search->end))
		map = map->l_next;
	if (map)
		search->found = find_in_object(map, &name_hash,
					       search->symbol_size);
	return 1;
}

void *lookup_within(uintptr_t start, uintptr_t end, const char *name,
		    size_t *size)
{
	struct range_search search = { start, end, name, size, NULL };

	if (lookup_list())
		dl_iterate_phdr(search_range, &search);
	return search.found;
}

/* --- the last objects --- */

struct last_search {
	unsigned long long count;
	const char *symbol;
	bool is_found;
};

/* Called with the loader's lock held: no object is loaded or unloaded. */
static int search_last(struct dl_phdr_info *unused, size_t size, void *argument)
{
	struct last_search *search = argument;
	struct name_hash name_hash = hash_of_name(search->symbol);
	const struct link_map *map = lookup_list()->r_map;

	(void)unused;
	(void)size;
	while (map && map->l_next)
		map = map->l_next;
	for (; map && search->count > 0 && !search->is_found;
	     map = map->l_prev, search->count--)
		search->is_found = find_symbol(map, &name_hash) != NULL;
	return 1;
}

bool lookup_last_define(unsigned long long count, const char *name)
{
	struct last_search search = { count, name, false };

	if (lookup_list())
		dl_iterate_phdr(search_last, &search);
	return search.is_found;
}

/* --- libraries of shim --- */

#define OPENED_MAX 16

/* One of each namespace; other threads read the list. */
static const struct link_map *opened[OPENED_MAX];
static unsigned opened_count;

static void *note_opened(void *library)
{
	unsigned i = __atomic_load_n(&opened_count, __ATOMIC_RELAXED);

	if (library && i < OPENED_MAX) {
		opened[i] = library;
		__atomic_store_n(&opened_count, i + 1, __ATOMIC_RELEASE);
	}
	return library;
}

bool lookup_is_beside_us(uintptr_t start, uintptr_t end)
{
	unsigned count = __atomic_load_n(&opened_count, __ATOMIC_ACQUIRE);

	for (unsigned i = 0; i < count; i++) {
		for (const struct link_map *at = opened[i]; at; at = at->l_prev)
			if (is_in(at, start, end))
				return true;
		for (const struct link_map *at = opened[i]; at; at = at->l_next)
			if (is_in(at, start, end))
				return true;
	}
	return false;
}

void *lookup_open_ours(const char *path)
{
	/* Bypasses shim's wrapper of dlopen, which would raise events. */
	void *(*open)(Lmid_t, const char *,
		      int) = (void *(*)(Lmid_t, const char *,
					int))lookup_next("dlmopen");

	return open ? note_opened(
			      open(LM_ID_NEWLM, path, RTLD_NOW | RTLD_LOCAL)) :
		      NULL;
}

void *lookup_open_beside_us(const char *name)
{
	char path[4096];
	struct text text;
	Dl_info self;
	const char *base;

	if (!dladdr((void *)lookup_open_beside_us, &self) || !self.dli_fname)
		return NULL;
	base = text_base(self.dli_fname);
	text_init(&text, path, sizeof(path));
	text_add_part(&text, self.dli_fname, (size_t)(base - self.dli_fname));
	text_add(&text, name);
	return text.cut ? NULL : lookup_open_ours(path);
}
