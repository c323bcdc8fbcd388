/*
 * One address, many names (names/aliases.c).
 */
#ifndef REPORT_NAMES_ALIASES_H
#define REPORT_NAMES_ALIASES_H

#include <stddef.h>

struct names;
struct object;
struct symbol;

/* Names the symbols, which have several names each, by what is in @called; the
 * others stay. */
void aliases_choose(struct object *object, struct symbol *symbols, size_t count,
		    const struct names *called);

#endif
