/* Prints the names of types as in the source. */
#ifndef SHIM_DEBUGINFO_TYPENAME_H
#define SHIM_DEBUGINFO_TYPENAME_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdio.h>

/* Prints "const char *", "struct point", "std::vector<int>"; "void" if @type is
 * NULL. */
void typename_print(Dwarf_Die *type, FILE *out);

/* Whether @die is a direct member of namespace std, or of an inline namespace in it
 * that only marks a version. */
bool typename_is_standard(Dwarf_Die *die);

#endif
