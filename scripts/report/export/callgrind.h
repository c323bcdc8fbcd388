/* Exports for callgrind_annotate and KCachegrind. */
#ifndef REPORT_EXPORT_CALLGRIND_H
#define REPORT_EXPORT_CALLGRIND_H

#include "export/format.h"

extern const struct export_format export_callgrind;

#endif
