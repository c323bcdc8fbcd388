/*
 * Answers requests about the symbols of one object.  Requests have fewer addresses than
 * the file has symbols: so one walk over the symbols compares each symbol with the
 * sorted addresses.
 */
#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "names/elf_object.h"
#include "names/elf_symbols.h"
#include "names/go_table.h"
#include "names/plt.h"
#include "names/symbol_choice.h"
#include "names/symbols.h"

/* Limit for one object: a hostile file must not take minutes. */
#define STEPS_MAX 20000000

/* --- functions --- */

/* The index of the first of @count records at or after @address.  Records have
 * @size bytes, begin with their address, and are sorted by it. */
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
		       offsetof(struct data_symbol, address) == 0,
	       "find_address");

/* The symbol that begins at @address among @count sorted ones, or NULL. */
static struct symbol *symbol_at(struct symbol *symbols, size_t count,
				uint64_t address)
{
	size_t found = find_address(symbols, sizeof(*symbols), count, address);

	return found < count && symbols[found].address == address ?
		       &symbols[found] :
		       NULL;
}

static void find_exact(struct symbol *symbols, size_t count)
{
	int i, all = dwfl_module_getsymtab(elf_object.module);
	struct symbol *found;
	const char *name;
	GElf_Addr value;
	GElf_Sym symbol;

	for (i = 0; i < all; i++) {
		name = dwfl_module_getsym_info(elf_object.module, i, &symbol,
					       &value, NULL, NULL, NULL);
		if (!symbol_is_function(&symbol, name))
			continue;
		found = symbol_at(symbols, count, value);
		if (!found)
			continue;
		symbol_take_name(found, &symbol, name);
		found->is_exact = true;
	}
}

/*
 * For addresses inside a function, which are unusual: finds the innermost
 * symbol around them.  @starts holds the start of the best symbol so far.
 */
static void find_around(struct symbol *symbols, size_t count)
{
	int i, all = dwfl_module_getsymtab(elf_object.module);
	uint64_t *starts = allocate(count, sizeof(*starts));
	/* In a hostile file, every symbol could cover every address. */
	uint64_t steps = 10000000;
	const char *name;
	GElf_Addr value;
	GElf_Sym symbol;
	size_t j;

	for (i = 0; i < all; i++) {
		name = dwfl_module_getsym_info(elf_object.module, i, &symbol,
					       &value, NULL, NULL, NULL);
		if (!symbol_is_function(&symbol, name) || symbol.st_size == 0)
			continue;
		j = find_address(symbols, sizeof(*symbols), count, value);
		for (; j < count && symbols[j].address - value < symbol.st_size;
		     j++) {
			if (steps-- == 0)
				goto out;
			if (symbols[j].is_exact ||
			    (symbols[j].name && starts[j] > value))
				continue;
			if (starts[j] < value)
				symbols[j].name = NULL;
			symbol_take_name(&symbols[j], &symbol, name);
			starts[j] = value;
		}
	}
out:
	free(starts);
}

static int compare_symbols(const void *left, const void *right)
{
	const struct symbol *a = left, *b = right;

	return a->address < b->address ? -1 : a->address > b->address;
}

/* Finds the names of resolvers of linkage table entries; their addresses are in
 * @entries, sorted by slot. */
static void name_choosers(struct symbol *symbols,
			  const struct plt_entry *entries, size_t count)
{
	struct symbol *choosers = allocate(count, sizeof(*choosers)), *found;
	size_t i, n = 0, kept = 0;

	for (i = 0; i < count; i++)
		if (entries[i].chooser)
			choosers[n++].address = entries[i].chooser;
	if (n)
		qsort(choosers, n, sizeof(*choosers), compare_symbols);
	for (i = 0; i < n; i++)
		if (!kept || choosers[kept - 1].address != choosers[i].address)
			choosers[kept++] = choosers[i];
	find_exact(choosers, kept);
	for (i = 0; i < count; i++) {
		found = symbol_at(choosers, kept, entries[i].chooser);
		if (found)
			symbols[entries[i].symbol].name = found->name;
	}
	free(choosers);
}

/* Stripped programs of Go have no other table. */
static void find_in_go(struct symbol *symbols, size_t count)
{
	struct go_function found;
	GElf_Addr bias;
	Elf *elf = dwfl_module_getelf(elf_object.module, &bias);
	size_t i;

	for (i = 0; i < count; i++)
		if (!symbols[i].name &&
		    go_table_function(elf, symbols[i].address, &found)) {
			symbols[i].name = found.name;
			symbols[i].is_exact = found.start == symbols[i].address;
		}
}

static void find_behind_plt(struct symbol *symbols, size_t count)
{
	struct plt_entry *entries = NULL;
	size_t i, n = 0, room = 0;
	GElf_Addr bias;
	Elf *elf = dwfl_module_getelf(elf_object.module, &bias);
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
			symbols[entries[i].symbol].name = symbol_plain_name(
				entries[i].name,
				symbol_name_length(entries[i].name));
	name_choosers(symbols, entries, n);
	free(entries);
}

static void put_name(uint32_t number, const struct symbol *symbol)
{
	if (symbol->name && elf_answer_has_room(strlen(symbol->name)))
		elf_answer(
			(struct names_answer){
				.kind = ANSWER_NAME,
				.number = number,
				.a = (symbol->is_exact ? NAMES_EXACT : 0) |
				     (symbol->is_global ? NAMES_GLOBAL : 0) |
				     (symbol->has_others ? NAMES_OTHERS : 0) |
				     (symbol->is_in_doubt ? NAMES_DOUBT : 0),
			},
			symbol->name, elf_source_name(symbol->name));
}

void elf_find_functions(uint32_t count)
{
	uint64_t *addresses = elf_take_addresses(count);
	struct symbol *symbols = allocate(count, sizeof(*symbols));
	bool is_all_exact = true;
	uint32_t i;

	for (i = 0; i < count; i++)
		symbols[i].address = addresses[i];
	if (dwfl_module_getsymtab(elf_object.module) < 0)
		elf_answer_note("symbols");
	find_exact(symbols, count);
	for (i = 0; i < count; i++)
		is_all_exact = is_all_exact && symbols[i].is_exact;
	if (!is_all_exact) {
		find_around(symbols, count);
		find_behind_plt(symbols, count);
		find_in_go(symbols, count);
	}
	for (i = 0; i < count; i++)
		put_name(i, &symbols[i]);
	free(symbols);
	free(addresses);
	elf_answer_done(0);
}

/* --- all functions --- */

void elf_list_functions(void)
{
	struct function_symbol *all = NULL;
	int i, end = dwfl_module_getsymtab(elf_object.module);
	size_t count = 0, room = 0, n;

	if (end < 0)
		elf_answer_note("symbols");
	for (i = 0; i < end; i++) {
		GElf_Addr value;
		GElf_Sym symbol;
		const char *name = dwfl_module_getsym_info(elf_object.module, i,
							   &symbol, &value,
							   NULL, NULL, NULL);

		if (!symbol_is_function(&symbol, name) || symbol.st_size == 0 ||
		    strchr(name, '.') ||
		    symbol_name_length(name) > NAMES_TEXT_MAX)
			continue;
		GROW(all, count, room);
		all[count++] = (struct function_symbol){
			.address = value,
			.size = symbol.st_size,
			.name = symbol_plain_name(name,
						  symbol_name_length(name)),
			.is_global = GELF_ST_BIND(symbol.st_info) != STB_LOCAL,
			.order = i,
		};
	}
	count = symbol_keep_best(all, count);
	for (n = 0; n < count; n++)
		if (elf_answer_has_room(strlen(all[n].name)))
			elf_answer(
				(struct names_answer){ .kind = ANSWER_FUNCTION,
						       .a = all[n].address,
						       .b = all[n].size },
				all[n].name, NULL);
	free(all);
	elf_answer_done(0);
}

/* --- variables --- */

/* Prefers the innermost variable, then the alphabetically first: the result
 * does not depend on the order of the table. */
static bool is_better_data(const struct data_symbol *old, uint64_t start,
			   const char *name, size_t length)
{
	if (!old->name || start != old->start)
		return !old->name || start > old->start;
	return strncmp(name, old->name, length) < 0;
}

/* Returns the number of comparisons. */
static size_t name_data(struct data_symbol *symbols, size_t count,
			const GElf_Sym *symbol, uint64_t start,
			const char *name)
{
	size_t length = symbol_name_length(name);
	size_t first = find_address(symbols, sizeof(*symbols), count, start);
	size_t i = first;

	if (length > NAMES_TEXT_MAX)
		return 1;
	for (; i < count && symbols[i].address - start < symbol->st_size; i++) {
		if (!is_better_data(&symbols[i], start, name, length))
			continue;
		symbols[i].name = symbol_plain_name(name, length);
		symbols[i].start = start;
	}
	return i - first + 1;
}

void elf_find_variables(uint32_t count)
{
	uint64_t *addresses = elf_take_addresses(count), steps = 0;
	struct data_symbol *symbols = allocate(count, sizeof(*symbols));
	int n, all = dwfl_module_getsymtab(elf_object.module);
	GElf_Addr value;
	const char *name;
	GElf_Sym symbol;
	uint32_t i;

	if (all < 0)
		elf_answer_note("symbols");
	for (i = 0; i < count; i++)
		symbols[i].address = addresses[i];
	for (n = 0; n < all && steps < STEPS_MAX; n++) {
		name = dwfl_module_getsym_info(elf_object.module, n, &symbol,
					       &value, NULL, NULL, NULL);
		if (name && name[0] && symbol.st_shndx != SHN_UNDEF &&
		    GELF_ST_TYPE(symbol.st_info) == STT_OBJECT)
			steps += name_data(symbols, count, &symbol, value,
					   name);
	}
	for (i = 0; i < count; i++)
		if (symbols[i].name &&
		    elf_answer_has_room(strlen(symbols[i].name)))
			elf_answer(
				(struct names_answer){ .kind = ANSWER_DATA,
						       .number = i,
						       .a = symbols[i].start },
				symbols[i].name,
				elf_source_name(symbols[i].name));
	free(symbols);
	free(addresses);
	elf_answer_done(0);
}

/* --- all names of functions --- */

static void answer_all_names(const uint64_t *addresses, uint32_t count,
			     bool is_global)
{
	int i, all = dwfl_module_getsymtab(elf_object.module);
	const char *name;
	GElf_Addr value;
	GElf_Sym symbol;
	size_t found;

	for (i = 0; i < all; i++) {
		name = dwfl_module_getsym_info(elf_object.module, i, &symbol,
					       &value, NULL, NULL, NULL);
		if (!symbol_is_function(&symbol, name) ||
		    (GELF_ST_BIND(symbol.st_info) != STB_LOCAL) != is_global ||
		    symbol_name_length(name) > NAMES_TEXT_MAX)
			continue;
		found = find_address(addresses, sizeof(*addresses), count,
				     value);
		if (found == count || addresses[found] != value)
			continue;
		name = symbol_plain_name(name, symbol_name_length(name));
		if (elf_answer_has_room(strlen(name)))
			elf_answer(
				(struct names_answer){
					.kind = ANSWER_NAME,
					.number = (uint32_t)found },
				name, elf_source_name(name));
	}
}

void elf_find_all_names(uint32_t count)
{
	uint64_t *addresses = elf_take_addresses(count);

	answer_all_names(addresses, count, true);
	answer_all_names(addresses, count, false);
	free(addresses);
	elf_answer_done(0);
}
