/* All export formats. */
#ifndef REPORT_EXPORT_FORMATS_H
#define REPORT_EXPORT_FORMATS_H

#include "export/format.h"

/* Dies if there is none of this name. */
const struct export_format *export_format_find(const char *name);
/* "folded, speedscope, ...": of all, or of those that have --value @value. */
const char *export_format_names(void);
const char *export_format_names_with(enum value value);
/* A line for each, on stdout. */
void export_format_help(void);

#endif
