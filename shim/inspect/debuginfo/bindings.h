/*
 * How the symbols of a function are bound.
 */
#ifndef SHIM_DEBUGINFO_BINDINGS_H
#define SHIM_DEBUGINFO_BINDINGS_H

#include <libelf.h>
#include <stdint.h>

/* The set of 1 << STB_... of the symbols of functions at @address, from .symtab; 0 if there is
 * none. */
unsigned bindings_at(Elf *elf, uint64_t address);

#endif
