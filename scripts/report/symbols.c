/*
 * Names for the addresses of one object, by elfutils.  An object has a Dwfl of
 * its own, with its only module at address 0, so that addresses in the file
 * are addresses in the Dwfl.  There are always fewer addresses than symbols:
 * the symbols are walked once, in their order, and each looks for the address
 * it could name.
 *
 * The file that a recording names may be any file: it is used only if it is a
 * regular one with the build-id that was recorded.
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "object_files.h"
#include "plt.h"
#include "symbols.h"

/* Namespaces and classes in each other; deeper ones are not looked into. */
#define DEPTH_MAX 16
/* Of one object: a hostile file shall not keep us for minutes. */
#define STEPS_MAX 20000000

struct range {
	uint64_t begin, end;
	uint32_t unit;
};

struct declaration {
	uint64_t address;
	Dwarf_Off die;
};

struct unit {
	Dwarf_Die die;
	bool listed;
	struct declaration *declarations;	/* by address */
	uint32_t count, room;
};

struct lines {
	Dwarf *dwarf;
	Dwarf_Addr bias;
	struct range *ranges;			/* by begin */
	uint32_t range_count, range_room;
	struct unit *units;
	uint32_t unit_count, unit_room;
	uint64_t steps;
};

static bool network_allowed;

void symbols_allow_network(void)
{
	network_allowed = true;
}

static int find_nothing(Dwfl_Module *module, void **data, const char *name,
			Dwarf_Addr base, char **file_name, Elf **elf)
{
	(void)module, (void)data, (void)name, (void)base, (void)elf;
	*file_name = NULL;
	return -1;
}

static const Dwfl_Callbacks callbacks = {
	.find_elf = find_nothing,
	.find_debuginfo = dwfl_standard_find_debuginfo,
	.section_address = dwfl_offline_section_address,
};

static const Dwfl_Callbacks network_callbacks = {
	.find_elf = dwfl_build_id_find_elf,
	.find_debuginfo = dwfl_standard_find_debuginfo,
	.section_address = dwfl_offline_section_address,
};

/* A name that could be a device or a pipe is not opened for good. */
static int open_regular(const char *path)
{
	struct stat info;
	int fd;

	if (path[0] != '/')
		return -1;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd >= 0 && (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) ||
			info.st_size == 0)) {
		close(fd);
		return -1;
	}
	return fd;
}

static bool has_build_id(const struct object *object, Dwfl_Module *module)
{
	GElf_Addr bias;
	Elf *elf = dwfl_module_getelf(module, &bias);
	const void *id;
	ssize_t size;

	if (!elf)
		return false;
	size = dwelf_elf_gnu_build_id(elf, &id);
	if (size < 0)
		size = 0;
	return (size_t)size == object->build_id_size &&
	       !memcmp(id, object->build_id, object->build_id_size);
}

/* The module of @path if it is the build that was recorded. */
static Dwfl_Module *report_file(const struct object *object, Dwfl *dwfl,
				const char *path, bool *is_other)
{
	int fd = open_regular(path);
	Dwfl_Module *module;

	if (fd < 0)
		return NULL;
	dwfl_report_begin(dwfl);
	module = dwfl_report_elf(dwfl, object->path, path, fd, 0, true);
	dwfl_report_end(dwfl, NULL, NULL);
	if (!module) {
		close(fd);
		return NULL;
	}
	if (has_build_id(object, module))
		return module;
	*is_other = true;
	dwfl_report_begin(dwfl);
	dwfl_report_end(dwfl, NULL, NULL);
	return NULL;
}

/* The debug file has the symbols too, when the object itself is gone. */
static Dwfl_Module *report_debug_file(const struct object *object, Dwfl *dwfl)
{
	char path[256] = "/usr/lib/debug/.build-id/";
	size_t length = strlen(path), i;
	bool is_other;

	if (object->build_id_size < 2)
		return NULL;
	for (i = 0; i < object->build_id_size; i++) {
		length += (size_t)sprintf(path + length, "%02x",
					  object->build_id[i]);
		if (i == 0)
			path[length++] = '/';
	}
	strcpy(path + length, ".debug");
	return report_file(object, dwfl, path, &is_other);
}

static Dwfl_Module *report_from_network(const struct object *object,
					Dwfl *dwfl)
{
	Dwfl_Module *module;
	GElf_Addr bias;

	if (!network_allowed || !object->build_id_size)
		return NULL;
	dwfl_report_begin(dwfl);
	module = dwfl_report_module(dwfl, object->path, 0, UINT64_MAX / 2);
	if (module)
		dwfl_module_report_build_id(module, object->build_id,
					    object->build_id_size, 0);
	dwfl_report_end(dwfl, NULL, NULL);
	return module && dwfl_module_getelf(module, &bias) ? module : NULL;
}

static void open_object(struct object *object)
{
	struct object_files *files;
	Dwfl_Module *module;
	bool is_other = false;
	Dwfl *dwfl;

	object->opened = true;
	if (!network_allowed)
		unsetenv("DEBUGINFOD_URLS");
	dwfl = dwfl_begin(network_allowed ? &network_callbacks : &callbacks);
	if (!dwfl)
		return;
	module = report_file(object, dwfl, object->path, &is_other);
	if (!module)
		module = report_debug_file(object, dwfl);
	if (!module)
		module = report_from_network(object, dwfl);
	/* Of what is in no file nobody expects one. */
	if (!module && object->path[0] != '/') {
		dwfl_end(dwfl);
		return;
	}
	if (!module) {
		warn("%s: %s: its functions are shown by address",
		     object->path, is_other ?
		     "not the file that was recorded (its build-id differs)" :
		     "is not there, or no ELF file");
		dwfl_end(dwfl);
		return;
	}
	files = allocate(1, sizeof(*files));
	files->dwfl = dwfl;
	files->module = module;
	object->files = files;
}

/* "memcpy@@GLIBC_2.14" is what .symtab has for memcpy. */
size_t symbols_name_length(const char *name)
{
	const char *at = strchr(name, '@');

	return at && at != name ? (size_t)(at - name) : strlen(name);
}

bool symbols_is_function(const GElf_Sym *symbol, const char *name)
{
	int type = GELF_ST_TYPE(symbol->st_info);

	return name && name[0] && name[0] != '$' &&
	       symbol->st_shndx != SHN_UNDEF &&
	       (type == STT_FUNC || type == STT_GNU_IFUNC ||
		type == STT_NOTYPE);
}

static bool has_dot(const char *name, size_t length)
{
	return memchr(name, '.', length) != NULL;
}

/*
 * Which of two names for one address: a global one, then one that is not a
 * compiler's clone, then the first in the table.
 */
static bool is_better(const struct symbol *old, const char *name, size_t length,
		      bool is_global)
{
	if (!old->name)
		return true;
	if (is_global != old->is_global)
		return is_global;
	return !has_dot(name, length) && strchr(old->name, '.') != NULL;
}

/* The first of @count records that is not below @address.  They are of @size bytes,
 * begin with their address, and are sorted by it. */
static size_t find_address(const void *records, size_t size, size_t count,
			   uint64_t address)
{
	size_t low = 0, high = count, middle;
	uint64_t found;

	while (low < high) {
		middle = low + (high - low) / 2;
		memcpy(&found, (const char *)records + middle * size,
		       sizeof(found));
		if (found < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

_Static_assert(offsetof(struct symbol, address) == 0 &&
	       offsetof(struct data_symbol, address) == 0, "find_address");

static bool is_rival(const struct symbol *symbol, const char *name,
		     size_t length, bool is_global)
{
	return is_global == symbol->is_global &&
	       has_dot(name, length) ==
		       has_dot(symbol->name, strlen(symbol->name)) &&
	       (strlen(symbol->name) != length ||
		strncmp(symbol->name, name, length));
}

/* Constructors of complete and of base objects are the same in the source. */
static void note_rival(struct symbol *symbol, const char *name, size_t length)
{
	symbol->has_others = true;
	if (!symbol->is_in_doubt)
		symbol->is_in_doubt = strcmp(demangle(symbol->name),
					     demangle(keep_text(name, length)));
}

static void take_name(struct symbol *symbol, const GElf_Sym *elf_symbol,
		      const char *name)
{
	size_t length = symbols_name_length(name);
	bool is_global = GELF_ST_BIND(elf_symbol->st_info) != STB_LOCAL;

	if (!is_better(symbol, name, length, is_global)) {
		if (is_rival(symbol, name, length, is_global))
			note_rival(symbol, name, length);
		return;
	}
	symbol->has_others = symbol->is_in_doubt = false;
	symbol->name = keep_text(name, length);
	symbol->is_global = is_global;
}

static void find_exact(Dwfl_Module *module, struct symbol *symbols,
		       size_t count)
{
	int i, all = dwfl_module_getsymtab(module);
	const char *name;
	GElf_Addr value;
	GElf_Sym symbol;
	struct symbol *found;

	for (i = 0; i < all; i++) {
		name = dwfl_module_getsym_info(module, i, &symbol, &value, NULL,
					       NULL, NULL);
		if (!symbols_is_function(&symbol, name))
			continue;
		found = symbols_at(symbols, count, value);
		if (!found)
			continue;
		take_name(found, &symbol, name);
		found->is_exact = true;
	}
}

static int compare_symbols(const void *left, const void *right)
{
	const struct symbol *a = left, *b = right;

	return a->address < b->address ? -1 : a->address > b->address;
}

static int compare_functions(const void *left, const void *right)
{
	const struct function_symbol *a = left, *b = right;

	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	if (a->is_global != b->is_global)
		return a->is_global ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

/* One name for each address. */
static size_t keep_best(struct function_symbol *all, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		if (!kept || all[kept - 1].address != all[i].address)
			all[kept++] = all[i];
	}
	return kept;
}

struct function_symbol *symbols_list(struct object *object, size_t *count)
{
	struct function_symbol *all = NULL;
	size_t room = 0;
	int i, end;

	*count = 0;
	if (!symbols_open(object))
		return NULL;
	end = dwfl_module_getsymtab(object->files->module);
	for (i = 0; i < end; i++) {
		GElf_Addr value;
		GElf_Sym symbol;
		const char *name = dwfl_module_getsym_info(
			object->files->module, i, &symbol, &value, NULL, NULL,
			NULL);

		if (!symbols_is_function(&symbol, name) || symbol.st_size == 0 ||
		    strchr(name, '.'))
			continue;
		GROW(all, *count, room);
		all[(*count)++] = (struct function_symbol){
			.address = value,
			.size = symbol.st_size,
			.name = keep_text(name, symbols_name_length(name)),
			.is_global = GELF_ST_BIND(symbol.st_info) != STB_LOCAL,
			.order = i,
		};
	}
	if (*count)
		qsort(all, *count, sizeof(*all), compare_functions);
	*count = keep_best(all, *count);
	return all;
}

/*
 * Addresses within a function, which nobody should pass to us: the innermost
 * symbol around them.  @starts keeps where the best so far begins.
 */
static void find_around(Dwfl_Module *module, struct symbol *symbols,
			size_t count)
{
	int i, all = dwfl_module_getsymtab(module);
	uint64_t *starts = allocate(count, sizeof(*starts));
	/* A hostile file could have every symbol cover every address. */
	uint64_t steps = 10000000;
	const char *name;
	GElf_Addr value;
	GElf_Sym symbol;
	size_t j;

	for (i = 0; i < all; i++) {
		name = dwfl_module_getsym_info(module, i, &symbol, &value, NULL,
					       NULL, NULL);
		if (!symbols_is_function(&symbol, name) || symbol.st_size == 0)
			continue;
		j = find_address(symbols, sizeof(*symbols), count,
					 value);
		for (; j < count && symbols[j].address - value < symbol.st_size;
		     j++) {
			if (steps-- == 0)
				goto out;
			if (symbols[j].is_exact ||
			    (symbols[j].name && starts[j] > value))
				continue;
			if (starts[j] < value)
				symbols[j].name = NULL;
			take_name(&symbols[j], &symbol, name);
			starts[j] = value;
		}
	}
out:
	free(starts);
}

/* The names of functions that choose what an entry jumps to: their addresses are
 * in @entries, by slot. */
static void name_choosers(Dwfl_Module *module, struct symbol *symbols,
			  const struct plt_entry *entries, size_t count)
{
	struct symbol *choosers = allocate(count, sizeof(*choosers));
	struct symbol key = { 0 }, *found;
	size_t i, n = 0, kept = 0;

	for (i = 0; i < count; i++)
		if (entries[i].chooser)
			choosers[n++].address = entries[i].chooser;
	if (n)
		qsort(choosers, n, sizeof(*choosers), compare_symbols);
	for (i = 0; i < n; i++)
		if (!kept || choosers[kept - 1].address != choosers[i].address)
			choosers[kept++] = choosers[i];
	find_exact(module, choosers, kept);
	for (i = 0; i < count; i++) {
		key.address = entries[i].chooser;
		found = kept ? bsearch(&key, choosers, kept, sizeof(key),
				       compare_symbols) :
			       NULL;
		if (found)
			symbols[entries[i].symbol].name = found->name;
	}
	free(choosers);
}

static void find_behind_plt(Dwfl_Module *module, struct symbol *symbols,
			    size_t count)
{
	struct plt_entry *entries = NULL;
	size_t i, n = 0, room = 0;
	GElf_Addr bias;
	Elf *elf = dwfl_module_getelf(module, &bias);
	uint64_t slot;

	for (i = 0; elf && i < count; i++) {
		if (symbols[i].name ||
		    !plt_slot(elf, symbols[i].address, &slot))
			continue;
		GROW(entries, n, room);
		entries[n++] = (struct plt_entry){ .slot = slot, .symbol = i };
	}
	if (!n)
		return;
	plt_resolve(elf, entries, n);
	for (i = 0; i < n; i++)
		if (entries[i].name && entries[i].name[0])
			symbols[entries[i].symbol].name =
				keep_text(entries[i].name,
					  symbols_name_length(entries[i].name));
	name_choosers(module, symbols, entries, n);
	free(entries);
}

struct symbol *symbols_at(struct symbol *symbols, size_t count,
			  uint64_t address)
{
	size_t found = find_address(symbols, sizeof(*symbols), count, address);

	return found < count && symbols[found].address == address ?
		       &symbols[found] :
		       NULL;
}

struct object_files *symbols_open(struct object *object)
{
	if (!object->opened)
		open_object(object);
	return object->files;
}

void symbols_find(struct object *object, struct symbol *symbols, size_t count)
{
	size_t i;

	if (!symbols_open(object))
		return;
	find_exact(object->files->module, symbols, count);
	for (i = 0; i < count; i++)
		if (!symbols[i].is_exact)
			break;
	if (i == count)
		return;
	find_around(object->files->module, symbols, count);
	find_behind_plt(object->files->module, symbols, count);
}

/* The innermost, then the first in the alphabet: which one it is does not hang on
 * the order of the table. */
static bool is_better_data(const struct data_symbol *old, uint64_t start,
			   const char *name, size_t length)
{
	if (!old->name || start != old->start)
		return !old->name || start > old->start;
	return strncmp(name, old->name, length) < 0;
}

static void name_data(struct data_symbol *symbols, size_t count,
		      const GElf_Sym *symbol, uint64_t start, const char *name)
{
	size_t length = symbols_name_length(name), i = find_address(symbols, sizeof(*symbols),
							 count, start);

	for (; i < count && symbols[i].address - start < symbol->st_size; i++) {
		if (!is_better_data(&symbols[i], start, name, length))
			continue;
		symbols[i].name = keep_text(name, length);
		symbols[i].start = start;
	}
}

void symbols_find_data(struct object *object, struct data_symbol *symbols,
		       size_t count)
{
	uint64_t steps = 0;
	GElf_Addr value;
	const char *name;
	GElf_Sym symbol;
	int i, all;

	if (!symbols_open(object))
		return;
	all = dwfl_module_getsymtab(object->files->module);
	for (i = 0; i < all && steps < STEPS_MAX; i++, steps += count) {
		name = dwfl_module_getsym_info(object->files->module, i,
					       &symbol, &value, NULL, NULL,
					       NULL);
		if (name && name[0] && symbol.st_shndx != SHN_UNDEF &&
		    GELF_ST_TYPE(symbol.st_info) == STT_OBJECT)
			name_data(symbols, count, &symbol, value, name);
	}
}

/*
 * Where functions were written.  Compilation units are found by a table of
 * their ranges made once (clang leaves out .debug_aranges); in a unit that is
 * asked for, the functions are listed once.  A function that is not listed
 * gets the row of the line table at its entry.
 */
static int compare_ranges(const void *left, const void *right)
{
	const struct range *a = left, *b = right;

	return a->begin < b->begin ? -1 : a->begin > b->begin;
}

static int compare_declarations(const void *left, const void *right)
{
	const struct declaration *a = left, *b = right;

	return a->address < b->address ? -1 : a->address > b->address;
}

static void add_ranges(struct lines *lines, Dwarf_Die *die, uint32_t unit)
{
	Dwarf_Addr base, begin, end;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(die, at, &base, &begin, &end)) > 0 &&
	       lines->steps++ < STEPS_MAX) {
		/* What the linker dropped stays here with address 0. */
		if (begin == 0 || begin >= end)
			continue;
		GROW(lines->ranges, lines->range_count, lines->range_room);
		lines->ranges[lines->range_count++] =
			(struct range){ begin, end, unit };
	}
}

/* @dwarf may be NULL; @bias is added to its addresses.  Never NULL. */
static struct lines *lines_open(Dwarf *dwarf, Dwarf_Addr bias)
{
	struct lines *lines = allocate(1, sizeof(*lines));
	Dwarf_Off at = 0, next;
	size_t header;
	Dwarf_Die die;

	lines->dwarf = dwarf;
	lines->bias = bias;
	if (!dwarf)
		return lines;
	while (dwarf_nextcu(dwarf, at, &next, &header, NULL, NULL, NULL) == 0 &&
	       lines->steps++ < STEPS_MAX) {
		if (dwarf_offdie(dwarf, at + header, &die)) {
			GROW(lines->units, lines->unit_count, lines->unit_room);
			lines->units[lines->unit_count] =
				(struct unit){ .die = die };
			add_ranges(lines, &die, lines->unit_count++);
		}
		at = next;
	}
	if (lines->range_count)
		qsort(lines->ranges, lines->range_count, sizeof(*lines->ranges),
		      compare_ranges);
	return lines;
}

static struct unit *find_unit(struct lines *lines, uint64_t address)
{
	uint32_t low = 0, high = lines->range_count, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (lines->ranges[middle].begin <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || address >= lines->ranges[low - 1].end)
		return NULL;
	return &lines->units[lines->ranges[low - 1].unit];
}

static void add_declaration(struct unit *unit, Dwarf_Die *die)
{
	Dwarf_Addr address, base, end;

	/* A function in two parts, hot and cold, has ranges; hot first. */
	if (dwarf_lowpc(die, &address) != 0 &&
	    dwarf_ranges(die, 0, &base, &address, &end) <= 0)
		return;
	GROW(unit->declarations, unit->count, unit->room);
	unit->declarations[unit->count++] =
		(struct declaration){ address, dwarf_dieoffset(die) };
}

static bool has_scope(Dwarf_Die *die)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
		return true;
	default:
		return false;
	}
}

static void list_declarations(struct lines *lines, struct unit *unit)
{
	Dwarf_Die stack[DEPTH_MAX + 1];
	int depth = 0;

	unit->listed = true;
	if (dwarf_child(&unit->die, &stack[0]) != 0)
		return;
	while (depth >= 0 && lines->steps++ < STEPS_MAX) {
		if (dwarf_tag(&stack[depth]) == DW_TAG_subprogram)
			add_declaration(unit, &stack[depth]);
		if (depth < DEPTH_MAX && has_scope(&stack[depth]) &&
		    dwarf_child(&stack[depth], &stack[depth + 1]) == 0) {
			depth++;
			continue;
		}
		while (depth >= 0 &&
		       dwarf_siblingof(&stack[depth], &stack[depth]) != 0)
			depth--;
	}
	if (unit->count)
		qsort(unit->declarations, unit->count,
		      sizeof(*unit->declarations), compare_declarations);
}

/* In DWARF 5 file 0 is the unit's own; clang says so, elfutils before 0.189
 * takes it for "no file". */
static const char *find_decl_file(Dwarf_Die *unit, Dwarf_Die *die)
{
	const char *file = dwarf_decl_file(die);
	Dwarf_Half version = 0;
	Dwarf_Files *files;
	size_t count;

	if (file || dwarf_cu_info(unit->cu, &version, NULL, NULL, NULL, NULL,
				  NULL, NULL) != 0 || version < 5 ||
	    dwarf_getsrcfiles(unit, &files, &count) != 0 || count == 0)
		return file;
	return dwarf_filesrc(files, 0, NULL, NULL);
}

static bool find_declaration(struct lines *lines, struct unit *unit,
			     uint64_t address, const char **file, int *line)
{
	const struct declaration key = { .address = address }, *found = NULL;
	Dwarf_Die die;

	if (unit->count)
		found = bsearch(&key, unit->declarations, unit->count,
				sizeof(key), compare_declarations);
	if (!found || !dwarf_offdie(lines->dwarf, found->die, &die))
		return false;
	*file = find_decl_file(&unit->die, &die);
	return *file && dwarf_decl_line(&die, line) == 0;
}

static bool find_row(struct unit *unit, uint64_t address, const char **file,
		     int *line)
{
	Dwarf_Line *row = dwarf_getsrc_die(&unit->die, address);

	if (!row)
		return false;
	*file = dwarf_linesrc(row, NULL, NULL);
	return *file && dwarf_lineno(row, line) == 0;
}

static bool lines_find(struct lines *lines, uint64_t address, const char **file,
		int *line)
{
	struct unit *unit;

	address -= lines->bias;
	unit = find_unit(lines, address);
	if (!unit)
		return false;
	if (!unit->listed)
		list_declarations(lines, unit);
	if (!find_declaration(lines, unit, address, file, line) &&
	    !find_row(unit, address, file, line))
		return false;
	*file = keep_text(*file, SIZE_MAX);
	return true;
}

static bool has_symbol_table(Elf *elf)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(elf, section)) != NULL)
		if (gelf_getshdr(section, &header) &&
		    header.sh_type == SHT_SYMTAB)
			return true;
	return false;
}

bool symbols_are_stripped(struct object *object)
{
	const char *debug_file = NULL;
	GElf_Addr bias;
	Elf *elf;

	if (!object->files)
		return false;
	elf = dwfl_module_getelf(object->files->module, &bias);
	dwfl_module_getsymtab(object->files->module);
	dwfl_module_info(object->files->module, NULL, NULL, NULL, NULL, NULL,
			 NULL, &debug_file);
	return elf && !debug_file && !has_symbol_table(elf);
}

static struct lines *lines_of(struct object_files *files)
{
	Dwarf_Addr bias;
	Dwarf *dwarf;

	if (!files->lines) {
		dwarf = dwfl_module_getdwarf(files->module, &bias);
		files->lines = lines_open(dwarf, bias);
	}
	return files->lines;
}

bool symbols_have_lines(struct object *object)
{
	return !object->files || lines_of(object->files)->unit_count > 0;
}

bool symbols_line(struct object *object, uint64_t address, const char **file,
		  int *line)
{
	return object->files &&
	       lines_find(lines_of(object->files), address, file, line);
}
