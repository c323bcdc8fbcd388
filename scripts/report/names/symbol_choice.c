/*
 * Chooses the symbol that names an address.  The symbols come in the order of
 * their table.  The best one so far is kept, with a mark if another is equally
 * good; then call sites decide (aliases.c).
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "names/demangle.h"
#include "names/elf_names.h"
#include "names/symbol_choice.h"
#include "names/symbols.h"

/* ARM has "$x" and "$d.1" where code and data begin.  (Names of Swift begin with "$s".) */
static bool is_mark(const char *name)
{
	return name[0] == '$' && name[1] && strchr("adtx", name[1]) &&
	       (!name[2] || name[2] == '.');
}

bool symbol_is_function(const GElf_Sym *symbol, const char *name)
{
	int type = GELF_ST_TYPE(symbol->st_info);

	return name && name[0] && !is_mark(name) &&
	       symbol->st_shndx != SHN_UNDEF &&
	       (type == STT_FUNC || type == STT_GNU_IFUNC ||
		type == STT_NOTYPE);
}

/* .symtab has "memcpy@@GLIBC_2.14" for memcpy. */
size_t symbol_name_length(const char *name)
{
	const char *at = strchr(name, '@');

	return at && at != name ? (size_t)(at - name) : strlen(name);
}

static bool has_dot(const char *name, size_t length)
{
	return memchr(name, '.', length) != NULL;
}

/*
 * Prefers, of two names for one address, a global one, then one that is no
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

/* The string of the file stays unchanged. */
const char *symbol_plain_name(const char *name, size_t length)
{
	return name[length] ? keep_text(name, length) : name;
}

static bool is_rival(const struct symbol *symbol, const char *name,
		     size_t length, bool is_global)
{
	return is_global == symbol->is_global &&
	       has_dot(name, length) ==
		       has_dot(symbol->name, strlen(symbol->name)) &&
	       (strlen(symbol->name) != length ||
		strncmp(symbol->name, name, length));
}

/* The source has one constructor where the object has a complete and a base
 * one. */
static void note_rival(struct symbol *symbol, const char *name, size_t length)
{
	symbol->has_others = true;
	if (!symbol->is_in_doubt)
		symbol->is_in_doubt = strcmp(
			demangle_here(symbol->name),
			demangle_here(symbol_plain_name(name, length)));
}

void symbol_take_name(struct symbol *symbol, const GElf_Sym *elf_symbol,
		      const char *name)
{
	size_t length = symbol_name_length(name);
	bool is_global = GELF_ST_BIND(elf_symbol->st_info) != STB_LOCAL;

	if (length > NAMES_TEXT_MAX)
		return;
	if (!is_better(symbol, name, length, is_global)) {
		if (is_rival(symbol, name, length, is_global))
			note_rival(symbol, name, length);
		return;
	}
	symbol->has_others = symbol->is_in_doubt = false;
	symbol->name = symbol_plain_name(name, length);
	symbol->is_global = is_global;
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

size_t symbol_keep_best(struct function_symbol *all, size_t count)
{
	size_t kept = 0;

	if (count)
		qsort(all, count, sizeof(*all), compare_functions);
	for (size_t i = 0; i < count; i++) {
		if (!kept || all[kept - 1].address != all[i].address)
			all[kept++] = all[i];
	}
	return kept;
}
