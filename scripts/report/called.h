/*
 * One address, many names (called.c).
 */
#ifndef REPORT_CALLED_H
#define REPORT_CALLED_H

#include "symbols.h"

/* Names the symbols, which have several names each, by what is in @called; the
 * others stay. */
void called_choose(struct object *object, struct symbol *symbols, size_t count,
		   const struct names *called);

#endif
