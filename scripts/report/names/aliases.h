/*
 * Chooses one of an address's names (names/aliases.c).
 */
#ifndef REPORT_NAMES_ALIASES_H
#define REPORT_NAMES_ALIASES_H

#include <stddef.h>

struct names;
struct object;
struct symbol;

/* Chooses names for symbols that have several, according to the calls in
 * @called; the others keep theirs. */
void aliases_choose(struct object *object, struct symbol *symbols, size_t count,
		    const struct names *called);

#endif
