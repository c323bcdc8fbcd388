/* Demangles names of C++, Rust, D and Fortran, with limits. */
#ifndef REPORT_NAMES_DEMANGLE_H
#define REPORT_NAMES_DEMANGLE_H

#include <stdbool.h>

/* Whether @name begins as mangled names do.  (Names of Swift stay mangled: Debian 12 has
 * no library for them.) */
bool is_mangled(const char *name);

/* The demangled name, or @name.  Call this in sandboxes only. */
const char *demangle_here(const char *name);

#endif
