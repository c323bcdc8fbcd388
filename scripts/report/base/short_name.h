/* Names of C++ in less space. */
#ifndef REPORT_BASE_SHORT_NAME_H
#define REPORT_BASE_SHORT_NAME_H

#include <stddef.h>
#include <stdio.h>

/*
 * short_name - @name without its return type, template arguments and parameters
 *
 * "void ns::C<int>::f<char>(char) const" becomes "ns::C::f()".  @name is demangled; a name
 * of another form is returned itself.  The text lives as long as the process.
 */
const char *short_name(const char *name);

/*
 * put_name_fitted - prints @full, or as much of a name as fits into @columns
 *
 * Tried in this order: @full; @brief, which is its short_name(); @brief without the scopes
 * in its middle, "leveldb::...::Wait()"; its last part alone, cut with an ellipsis.
 */
void put_name_fitted(FILE *out, const char *full, const char *brief,
		     size_t columns);

#endif
