/* The list of export formats. */
#ifndef REPORT_EXPORT_FORMATS_H
#define REPORT_EXPORT_FORMATS_H

#include "export/format.h"

/* Finds a format by name; dies if there is none. */
const struct export_format *export_format_find(const char *name);
/* "folded, speedscope, ...": the names of all formats, or of those that accept
 * --value @value. */
const char *export_format_names(void);
const char *export_format_names_with(enum value value);
/* Prints one line for each format to stdout. */
void export_format_help(void);

#endif
