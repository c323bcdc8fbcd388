/* The tables are read one behind the other, and so are their strings. */
#include "image/symbol_table.h"

#include "arch.h"
#include "image/elf_file.h"
#include "image/elf_plt.h"
#include "image/image.h"
#include "os/sys.h"
#include "os/text.h"

#include <elf.h>
#include <errno.h>

#include <shim/banned.h>

/* --- names --- */

static bool is_number(const char *text, uint32_t length)
{
	for (uint32_t i = 0; i < length; i++)
		if (text[i] < '0' || text[i] > '9')
			return false;
	return length > 0;
}

static bool ends_in(const char *name, uint32_t length, const char *suffix)
{
	uint32_t n = (uint32_t)text_length(suffix);

	if (length <= n)
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (name[length - n + i] != suffix[i])
			return false;
	return true;
}

uint32_t symbol_table_whole_length(const char *name, uint32_t length)
{
	uint32_t dot = length;

	if (ends_in(name, length, ".cold"))
		return length - 5;
	while (dot > 0 && name[dot - 1] != '.')
		dot--;
	if (dot < 2 || !is_number(name + dot, length - dot))
		return length;
	if (ends_in(name, dot - 1, ".cold") || ends_in(name, dot - 1, ".part"))
		return dot - 6;
	return ends_in(name, dot - 1, ".__part") ? dot - 8 : length;
}

/* --- memory --- */

/* Makes room for @more symbols.  Not more than real files have: sums do not overflow. */
static int reserve(struct symbol_table *table, uint32_t more)
{
	uint32_t room = table->count + more;
	struct table_symbol *symbols;
	void *memory;
	int r;

	if (room <= table->room)
		return 0;
	r = sys_map(room * sizeof(*symbols), &memory);
	if (r < 0)
		return r;
	symbols = memory;
	for (uint32_t i = 0; i < table->count; i++)
		symbols[i] = table->symbols[i];
	if (table->symbols)
		sys_unmap(table->symbols, table->room * sizeof(*symbols));
	table->symbols = symbols;
	table->room = room;
	return 0;
}

/* Takes over @size bytes and a NUL at @strings. */
static int add_strings(struct symbol_table *table, char *strings, size_t size)
{
	void *memory;
	char *both;
	int r;

	if (!table->strings) {
		table->strings = strings;
		table->strings_size = size;
		return 0;
	}
	r = size > UINT32_MAX - table->strings_size - 1 ?
		    -EFBIG :
		    sys_map(table->strings_size + size + 2, &memory);
	if (r == 0) {
		both = memory;
		__builtin_memcpy(both, table->strings, table->strings_size);
		__builtin_memcpy(both + table->strings_size + 1, strings, size);
		sys_unmap(table->strings, table->strings_size + 1);
		table->strings = both;
		table->strings_size += size + 1;
	}
	sys_unmap(strings, size + 1);
	return r;
}

void symbol_table_free(struct symbol_table *table)
{
	if (table->symbols)
		sys_unmap(table->symbols,
			  table->room * sizeof(*table->symbols));
	if (table->strings)
		sys_unmap(table->strings, table->strings_size + 1);
	table->symbols = NULL;
	table->strings = NULL;
}

/* --- symbols --- */

struct part {
	const struct elf_file *file;
	uint32_t names; /* where its strings begin in the table's */
	uint32_t names_size;
	uint32_t source; /* of local symbols */
};

static uint64_t section_end(const struct elf_file *file, uint32_t section)
{
	return section < file->section_count ?
		       file->sections[section].sh_addr +
			       file->sections[section].sh_size :
		       0;
}

static bool read_symbol(const struct symbol_table *table,
			const struct part *part, const Elf64_Sym *symbol,
			struct table_symbol *result)
{
	const struct image_entry *image = table->image;
	unsigned type = ELF64_ST_TYPE(symbol->st_info);
	const char *name;

	/* An undefined symbol with a value is a library's function.  The value is the
	 * program's own PLT entry, which the program uses as the function's address. */
	if ((type != STT_FUNC && type != STT_GNU_IFUNC) ||
	    (symbol->st_shndx == SHN_UNDEF && symbol->st_value == 0) ||
	    symbol->st_shndx == SHN_ABS ||
	    symbol->st_name >= part->names_size ||
	    symbol->st_value < image->start - image->bias ||
	    symbol->st_value >= image->end - image->bias)
		return false;
	*result = (struct table_symbol){
		.value = symbol->st_value,
		.section_end = section_end(part->file, symbol->st_shndx),
		.size = symbol->st_size > UINT32_MAX ?
				UINT32_MAX :
				(uint32_t)symbol->st_size,
		.name = part->names + symbol->st_name,
		.file = ELF64_ST_BIND(symbol->st_info) == STB_LOCAL ?
				part->source :
				0,
		.is_resolver = type == STT_GNU_IFUNC,
	};
	name = table->strings + result->name;
	if (symbol->st_shndx == SHN_UNDEF)
		result->size = ARCH_PLT_SIZE;
	for (uint32_t i = 0; name[i] && (name[i] != '@' || i == 0); i++) {
		result->length = i + 1;
		result->has_dot |= name[i] == '.';
	}
	result->is_part = result->has_dot &&
			  symbol_table_whole_length(name, result->length) <
				  result->length;
	return result->length > 0;
}

static int add_symbols(struct symbol_table *table, struct part *part,
		       const Elf64_Sym *symbols, uint32_t count)
{
	int r = reserve(table, count);

	part->source = table->read + 1;
	for (uint32_t i = 0; r == 0 && i < count; i++) {
		struct table_symbol *next = &table->symbols[table->count];

		if (ELF64_ST_TYPE(symbols[i].st_info) == STT_FILE) {
			part->source = table->read + i + 2;
		} else if (read_symbol(table, part, &symbols[i], next)) {
			next->order = table->read + i;
			table->count++;
		}
	}
	table->read += count;
	return r;
}

static int add_section(struct symbol_table *table, const struct elf_file *file,
		       uint32_t number)
{
	const Elf64_Shdr *section = &file->sections[number];
	struct part part = { .file = file };
	void *symbols, *strings;
	size_t size, strings_size;
	int r;

	if (section->sh_entsize != sizeof(Elf64_Sym) ||
	    section->sh_link >= file->section_count)
		return -ENOEXEC;
	r = elf_load_section(file, section->sh_link, &strings, &strings_size);
	if (r < 0)
		return r;
	if (table->strings)
		part.names = (uint32_t)table->strings_size + 1;
	part.names_size = (uint32_t)strings_size;
	r = add_strings(table, strings, strings_size);
	if (r < 0)
		return r;
	r = elf_load_section(file, number, &symbols, &size);
	if (r < 0)
		return r;
	r = add_symbols(table, &part, symbols,
			(uint32_t)(size / sizeof(Elf64_Sym)));
	sys_unmap(symbols, size + 1);
	return r;
}

int symbol_table_add(struct symbol_table *table, const struct elf_file *file,
		     uint32_t type)
{
	for (uint32_t i = 0; i < file->section_count; i++)
		if (file->sections[i].sh_type == type)
			return add_section(table, file, i);
	return 0;
}

/* --- the PLT --- */

/* Far more steps than any real file needs. */
#define RESOLVER_STEPS_MAX (1u << 24)

/* Gives the PLT entry of an ifunc the name of its resolver, because the program uses
 * that entry as the function's address. */
static void add_plt_entries(struct symbol_table *table,
			    const struct elf_plt_entry *entries, uint32_t count)
{
	uint32_t symbols = table->count, room = count;
	uint32_t steps = 0;

	for (uint32_t i = 0; i < symbols; i++) {
		for (uint32_t n = 0;
		     table->symbols[i].is_resolver && n < count && room > 0 &&
		     steps < RESOLVER_STEPS_MAX;
		     n++, steps++) {
			struct table_symbol *next =
				&table->symbols[table->count];

			if (entries[n].resolver != table->symbols[i].value ||
			    entries[n].address == 0)
				continue;
			*next = table->symbols[i];
			next->value = entries[n].address;
			next->section_end = 0;
			next->size = ARCH_PLT_SIZE;
			table->count++;
			room--;
		}
	}
}

/* Reads the PLT only if the file has ifuncs. */
static int add_plt(struct symbol_table *table, struct elf_file *code)
{
	struct elf_plt_entry *entries = NULL;
	uint32_t count = 0;
	size_t size = 0;
	bool any = false;
	int r;

	for (uint32_t i = 0; i < table->count; i++)
		any |= table->symbols[i].is_resolver;
	if (!any)
		return 0;
	r = elf_plt_read(code, &entries, &count, &size);
	if (r == 0)
		r = reserve(table, count);
	if (r == 0)
		add_plt_entries(table, entries, count);
	if (entries)
		sys_unmap(entries, size);
	return r;
}

/* --- sorting --- */

/*
 * Sorts by address.  At one address, the name to show comes first: a global name, then
 * a name that is no compiler's clone, then the first in the table.  Without debug
 * information, the report uses the same order.
 */
static bool is_before(const struct table_symbol *a,
		      const struct table_symbol *b)
{
	if (a->value != b->value)
		return a->value < b->value;
	if (!a->file != !b->file)
		return !a->file;
	if (a->has_dot != b->has_dot)
		return b->has_dot;
	return a->order < b->order;
}

static void sift(struct table_symbol *symbols, uint32_t root, uint32_t count)
{
	while (root * 2 + 1 < count) {
		uint32_t child = root * 2 + 1;
		struct table_symbol swap;

		if (child + 1 < count &&
		    is_before(&symbols[child], &symbols[child + 1]))
			child++;
		if (!is_before(&symbols[root], &symbols[child]))
			return;
		swap = symbols[root];
		symbols[root] = symbols[child];
		symbols[child] = swap;
		root = child;
	}
}

/* Heap sort works in place and takes at most n log n steps, for any file. */
static void sort(struct table_symbol *symbols, uint32_t count)
{
	for (uint32_t i = count / 2; i > 0; i--)
		sift(symbols, i - 1, count);
	for (uint32_t i = count; i > 1; i--) {
		struct table_symbol swap = symbols[0];

		symbols[0] = symbols[i - 1];
		symbols[i - 1] = swap;
		sift(symbols, 0, i - 1);
	}
}

int symbol_table_finish(struct symbol_table *table, struct elf_file *code)
{
	int r = add_plt(table, code);

	if (r == 0)
		sort(table->symbols, table->count);
	return r;
}
