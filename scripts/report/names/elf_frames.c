/*
 * Finds chains of inlined functions with libdw.  The functions of a unit are
 * listed once, with all their ranges, because cold code is separate.  From the
 * function around an address, the search descends through the functions that
 * were inlined there.
 *
 * An inlined function and its out-of-line code, if there is any, are one
 * function: both refer to the same abstract function.
 */
#include <dwarf.h>
#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "names/elf_dies.h"
#include "names/elf_frames.h"
#include "names/elf_lines.h"
#include "names/symbol_choice.h"

/* Limit for nested namespaces and classes; deeper ones are not searched. */
#define SCOPE_MAX 16
/* Limit for nested blocks and inlined functions; deeper ones are not
 * searched. */
#define NESTING_MAX 128
/* Limit for one object: a hostile file must not take minutes. */
#define STEPS_MAX 20000000

/* A contiguous part of a function's code. */
struct part {
	uint64_t begin, end;
	Dwarf_Off die;
};

struct frames {
	struct lines *lines;
	Dwarf *dwarf;
	Dwarf_Addr bias;
	/* the units whose functions are listed, by DIE offset */
	struct map units;
	struct part *parts;
	uint32_t part_count, part_room;
	bool is_sorted;
	struct map starts; /* abstract function, to the number of its start */
	uint64_t *start;
	uint32_t start_count, start_room;
	uint64_t steps; /* that remain */
};

struct frames *frames_open(struct lines *lines, Dwarf *dwarf, Dwarf_Addr bias)
{
	struct frames *frames = allocate(1, sizeof(*frames));

	frames->lines = lines;
	frames->dwarf = dwarf;
	frames->bias = bias;
	frames->steps = STEPS_MAX;
	return frames;
}

/* --- the functions of a unit --- */

static int compare_parts(const void *left, const void *right)
{
	const struct part *a = left, *b = right;

	if (a->begin != b->begin)
		return a->begin < b->begin ? -1 : 1;
	return a->die < b->die ? -1 : a->die > b->die;
}

/* The first range holds the hot part. */
static bool find_start(Dwarf_Die *die, uint64_t *start)
{
	Dwarf_Addr base, end;

	return dwarf_entrypc(die, start) == 0 ||
	       dwarf_ranges(die, 0, &base, start, &end) > 0;
}

static Dwarf_Off abstract_of(Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	Dwarf_Die origin;

	return dwarf_attr(die, DW_AT_abstract_origin, &attribute) &&
			       dwarf_formref_die(&attribute, &origin) ?
		       dwarf_dieoffset(&origin) :
		       0;
}

static void add_function(struct frames *frames, Dwarf_Die *die)
{
	Dwarf_Addr base, begin, end, start;
	Dwarf_Off abstract = abstract_of(die);
	uint32_t number;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(die, at, &base, &begin, &end)) > 0 &&
	       frames->steps > 0) {
		frames->steps--;
		/* Code that the linker dropped stays in the tables with address
		 * 0. */
		if (begin == 0 || begin >= end)
			continue;
		GROW(frames->parts, frames->part_count, frames->part_room);
		frames->parts[frames->part_count++] = (struct part){
			begin, end, dwarf_dieoffset(die)
		};
		frames->is_sorted = false;
	}
	if (!abstract || !find_start(die, &start) || start == 0)
		return;
	number = map_add(&frames->starts, abstract, frames->start_count);
	if (number != frames->start_count)
		return;
	GROW(frames->start, frames->start_count, frames->start_room);
	frames->start[frames->start_count++] = start;
}

static bool visit_function(Dwarf_Die *die, void *frames)
{
	if (dwarf_tag(die) == DW_TAG_subprogram)
		add_function(frames, die);
	return die_is_scope(die);
}

static bool find_function(struct frames *frames, uint64_t address,
			  Dwarf_Die *die)
{
	uint32_t low = 0, high = frames->part_count, middle;

	if (!frames->is_sorted && frames->part_count)
		qsort(frames->parts, frames->part_count, sizeof(*frames->parts),
		      compare_parts);
	frames->is_sorted = true;
	while (low < high) {
		middle = low + (high - low) / 2;
		if (frames->parts[middle].begin <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 && address < frames->parts[low - 1].end &&
	       dwarf_offdie(frames->dwarf, frames->parts[low - 1].die, die);
}

/* --- inlined functions --- */

static const char *name_of(Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	const char *name = NULL;

	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute) ||
	    dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute))
		name = dwarf_formstring(&attribute);
	return name ? name : dwarf_diename(die);
}

/* Returns false if the inlined function cannot be identified. */
static bool describe_inlined(struct frames *frames, Dwarf_Die *unit,
			     Dwarf_Die *die, struct frame_function *function)
{
	Dwarf_Off abstract = abstract_of(die);
	uint32_t start = abstract ? map_get(&frames->starts, abstract) : NONE;

	*function = (struct frame_function){ .die = abstract };
	if (start != NONE) {
		function->start = frames->start[start] + frames->bias;
		function->die = 0;
		return true;
	}
	function->name = name_of(die);
	if (!lines_declared(unit, die, &function->file, &function->line))
		function->file = NULL;
	return abstract && function->name && function->name[0];
}

/* Where the source calls the inlined function @die. */
static void find_call(Dwarf_Die *unit, Dwarf_Die *die,
		      struct frame_function *caller)
{
	Dwarf_Attribute attribute;
	Dwarf_Word file, line;
	Dwarf_Files *files;
	size_t count;

	caller->place_file = NULL;
	if (dwarf_formudata(dwarf_attr(die, DW_AT_call_file, &attribute),
			    &file) != 0 ||
	    dwarf_formudata(dwarf_attr(die, DW_AT_call_line, &attribute),
			    &line) != 0 ||
	    dwarf_getsrcfiles(unit, &files, &count) != 0 || file >= count ||
	    line > INT32_MAX)
		return;
	caller->place_file = lines_path(unit,
					dwarf_filesrc(files, file, NULL, NULL));
	caller->place_line = (int)line;
}

static bool is_around(struct frames *frames, Dwarf_Die *die, uint64_t address)
{
	int tag = dwarf_tag(die);

	/* The file decides how many ranges there are. */
	frames->steps -= frames->steps < 4 ? frames->steps : 4;
	return (tag == DW_TAG_inlined_subroutine ||
		tag == DW_TAG_lexical_block || tag == DW_TAG_try_block ||
		tag == DW_TAG_catch_block) &&
	       dwarf_haspc(die, address) == 1;
}

static uint32_t go_down(struct frames *frames, Dwarf_Die *unit,
			Dwarf_Die *function, uint64_t address,
			struct frame_function *chain, uint32_t count)
{
	Dwarf_Die die;
	uint32_t nesting;

	if (dwarf_child(function, &die) != 0)
		return count;
	for (nesting = 0; nesting < NESTING_MAX; nesting++) {
		while (!is_around(frames, &die, address))
			if (frames->steps == 0 ||
			    dwarf_siblingof(&die, &die) != 0)
				return count;
		if (dwarf_tag(&die) == DW_TAG_inlined_subroutine &&
		    count < FRAMES_DEPTH &&
		    describe_inlined(frames, unit, &die, &chain[count])) {
			find_call(unit, &die, &chain[count - 1]);
			count++;
		}
		if (dwarf_child(&die, &die) != 0)
			return count;
	}
	return count;
}

void frames_list(struct frames *frames, uint64_t address)
{
	uint32_t next = (uint32_t)frames->units.count;
	Dwarf_Die unit;

	if (lines_unit(frames->lines, &address, &unit) &&
	    map_add(&frames->units, dwarf_dieoffset(&unit), next) == next)
		dies_walk(&unit, SCOPE_MAX, &frames->steps, visit_function,
			  frames);
}

uint32_t frames_find(struct frames *frames, uint64_t address, bool wants_places,
		     struct frame_function chain[FRAMES_DEPTH])
{
	Dwarf_Die unit, function;
	uint64_t start;
	uint32_t depth;

	if (!lines_unit(frames->lines, &address, &unit))
		return 0;
	if (!find_function(frames, address, &function) ||
	    !find_start(&function, &start) || start == 0)
		return 0;
	chain[0] = (struct frame_function){ .start = start + frames->bias };
	depth = go_down(frames, &unit, &function, address, chain, 1);
	if (wants_places)
		lines_row(frames->lines, address + frames->bias,
			  &chain[depth - 1].place_file,
			  &chain[depth - 1].place_line);
	return depth;
}

/* --- without debug information --- */

static uint32_t first_from(const uint64_t *addresses, uint32_t count,
			   uint64_t address)
{
	uint32_t low = 0, high = count, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (addresses[middle] < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Assembly code has symbols without a size: such a function ends at the next symbol, or at
 * the end of its section. */
struct loose_symbol {
	uint64_t start, end;
	bool has_size;
};

static uint64_t section_end(Elf *elf, const GElf_Sym *symbol, uint64_t bias)
{
	Elf_Scn *section = elf ? elf_getscn(elf, symbol->st_shndx) : NULL;
	GElf_Shdr header;

	return section && gelf_getshdr(section, &header) &&
			       header.sh_flags & SHF_EXECINSTR ?
		       header.sh_addr + bias + header.sh_size :
		       0;
}

static void take_loosely(struct loose_symbol *nearest, const GElf_Sym *symbol,
			 uint64_t start, uint64_t end)
{
	if (end == 0 || start < nearest->start)
		return;
	*nearest = (struct loose_symbol){ start, end,
					  symbol->st_size != 0 ||
						  (start == nearest->start &&
						   nearest->has_size) };
}

static void store_loosely(struct loose_symbol *nearest,
			  const uint64_t *addresses, uint32_t count,
			  uint64_t *loose)
{
	uint32_t n;

	for (n = 0; n < count; n++) {
		if (n > 0 && nearest[n - 1].start > nearest[n].start)
			nearest[n] = nearest[n - 1];
		if (!nearest[n].has_size && addresses[n] < nearest[n].end)
			loose[n] = nearest[n].start;
	}
}

/* Finds the innermost symbol around each address. */
void frames_starts_by_symbols(Dwfl_Module *module, const uint64_t *addresses,
			      uint32_t count, uint64_t *starts, uint64_t *loose)
{
	struct loose_symbol *nearest = allocate(count, sizeof(*nearest));
	int i, all = dwfl_module_getsymtab(module), type;
	/* In a hostile file, every symbol could cover every address. */
	uint64_t steps = 0;
	const char *name;
	GElf_Addr value;
	GElf_Sym symbol;
	uint32_t n;
	Elf *elf;

	for (i = 0; i < all; i++) {
		name = dwfl_module_getsym_info(module, i, &symbol, &value, NULL,
					       &elf, NULL);
		type = GELF_ST_TYPE(symbol.st_info);
		if (!name || !symbol_is_function(&symbol, name))
			continue;
		n = first_from(addresses, count, value);
		if (n < count)
			take_loosely(&nearest[n], &symbol, value,
				     section_end(elf, &symbol,
						 value - symbol.st_value));
		if (type == STT_NOTYPE)
			continue;
		for (; n < count && addresses[n] - value < symbol.st_size;
		     n++) {
			if (steps++ > STEPS_MAX)
				goto out;
			if (starts[n] < value)
				starts[n] = value;
		}
	}
	if (loose)
		store_loosely(nearest, addresses, count, loose);
out:
	free(nearest);
}

/* The kind of table in .eh_frame_hdr that all linkers write: sorted pairs of
 * 32-bit numbers, relative to the section: the start of a function and of its
 * description. */
#define TABLE_ENCODING 0x3b
#define TABLE_HEADER   12

static bool find_table(Elf *elf, GElf_Shdr *header, Elf_Data **data)
{
	Elf_Scn *section = NULL;
	size_t names;
	const char *name;

	if (elf_getshdrstrndx(elf, &names) != 0)
		return false;
	while ((section = elf_nextscn(elf, section))) {
		if (!gelf_getshdr(section, header) ||
		    header->sh_type == SHT_NOBITS)
			continue;
		name = elf_strptr(elf, names, header->sh_name);
		if (!name || strcmp(name, ".eh_frame_hdr"))
			continue;
		*data = elf_rawdata(section, NULL);
		return *data && (*data)->d_buf &&
		       (*data)->d_size >= TABLE_HEADER;
	}
	return false;
}

static int32_t load_offset(const unsigned char *at)
{
	int32_t offset;

	memcpy(&offset, at, sizeof(offset));
	return offset;
}

/*
 * The table has no ends of functions.  libdw does not find the table where it is behind the
 * entries (gold, lld), and reads all entries before the one that is looked for.  It keeps
 * them while the entries are open.
 */
static bool is_in_tables(Elf *elf, uint64_t address)
{
	static Elf *opened;
	static Dwarf_CFI *tables;
	Dwarf_Frame *frame;

	if (opened != elf) {
		opened = elf;
		tables = dwarf_getcfi_elf(elf);
	}
	if (!tables || dwarf_cfi_addrframe(tables, address, &frame) != 0)
		return false;
	free(frame);
	return true;
}

uint64_t frames_start_by_unwinding(Elf *elf, uint64_t address)
{
	const unsigned char *table;
	uint32_t count, low = 0, middle;
	int64_t wanted;
	GElf_Shdr header;
	Elf_Data *data;

	if (!elf || !find_table(elf, &header, &data))
		return 0;
	table = data->d_buf;
	/* Version 1; a pointer, a count of 4 bytes, the table. */
	if (table[0] != 1 || table[2] != 0x03 || table[3] != TABLE_ENCODING)
		return 0;
	memcpy(&count, table + 8, sizeof(count));
	if (count > (data->d_size - TABLE_HEADER) / 8)
		return 0;
	wanted = (int64_t)(address - header.sh_addr);
	while (low < count) {
		middle = low + (count - low) / 2;
		if (load_offset(table + TABLE_HEADER + 8 * (size_t)middle) <=
		    wanted)
			low = middle + 1;
		else
			count = middle;
	}
	if (low == 0 || !is_in_tables(elf, address))
		return 0;
	return header.sh_addr +
	       (uint64_t)(int64_t)load_offset(table + TABLE_HEADER +
					      8 * (size_t)(low - 1));
}
