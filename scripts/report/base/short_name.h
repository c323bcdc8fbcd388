/* Shortens names of C++, Rust and D. */
#ifndef REPORT_BASE_SHORT_NAME_H
#define REPORT_BASE_SHORT_NAME_H

#include <stddef.h>
#include <stdio.h>

/*
 * short_name - returns @name without its return type, template arguments and
 * parameters
 *
 * "void ns::C<int>::f<char>(char) const" becomes "ns::C::f()".  @name must be
 * demangled; a name of another form is returned unchanged.  The text stays
 * valid until the process ends.
 */
const char *short_name(const char *name);

/*
 * put_name_fitted - prints @full, or the part of the name that fits into
 * @columns
 *
 * It tries, in this order: @full; @brief, which is its short_name(); @brief
 * without its inner scopes, "leveldb::...::Wait()"; its last part alone, cut
 * with an ellipsis.
 */
void put_name_fitted(FILE *out, const char *full, const char *brief,
		     size_t columns);

#endif
