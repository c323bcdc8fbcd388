/* Which of the symbols of an address names it. */
#ifndef REPORT_NAMES_SYMBOL_CHOICE_H
#define REPORT_NAMES_SYMBOL_CHOICE_H

#include <gelf.h>
#include <stddef.h>

struct function_symbol;
struct symbol;

/* How long @name is without the version behind it, and @name without it. */
size_t symbol_name_length(const char *name);
const char *symbol_plain_name(const char *name, size_t length);
/* @elf_symbol, which is called @name, is another one of the address of @symbol. */
void symbol_take_name(struct symbol *symbol, const GElf_Sym *elf_symbol,
		      const char *name);
/* Sorts @all by address and keeps the best of each address; how many are left. */
size_t symbol_keep_best(struct function_symbol *all, size_t count);

#endif
