/* Chooses the symbol that names an address. */
#ifndef REPORT_NAMES_SYMBOL_CHOICE_H
#define REPORT_NAMES_SYMBOL_CHOICE_H

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>

struct function_symbol;
struct symbol;

/* Whether @symbol may be a function; assembly code has symbols without a type. */
bool symbol_is_function(const GElf_Sym *symbol, const char *name);
/* The length of @name without its version, and @name without it. */
size_t symbol_name_length(const char *name);
const char *symbol_plain_name(const char *name, size_t length);
/* Considers @elf_symbol, named @name, as a further symbol of the address of
 * @symbol. */
void symbol_take_name(struct symbol *symbol, const GElf_Sym *elf_symbol,
		      const char *name);
/* Sorts @all by address and keeps the best symbol of each address; returns how
 * many remain. */
size_t symbol_keep_best(struct function_symbol *all, size_t count);

#endif
