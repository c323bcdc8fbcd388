/*
 * One address, many names (called.c).
 */
#ifndef REPORT_CALLED_H
#define REPORT_CALLED_H

#include "symbols.h"

/* Adds the names by which @object calls functions through its linkage table. */
void called_by_table(struct object *object, struct names *called);
/* Adds those that its debug information has call sites of, as far as @steps lead,
 * which become less. */
void called_by_sites(struct object *object, struct names *called,
		     uint64_t *steps);

/* Names the symbols, which have several names each, by what is in @called; the
 * others stay. */
void called_choose(struct object *object, struct symbol *symbols, size_t count,
		   const struct names *called);

#endif
