/* Exports folded stacks for flame graphs. */
#ifndef REPORT_EXPORT_FOLDED_H
#define REPORT_EXPORT_FOLDED_H

#include "export/format.h"

extern const struct export_format export_folded;

#endif
