/* Exports coverage as lcov's tracefile. */
#ifndef REPORT_EXPORT_LCOV_H
#define REPORT_EXPORT_LCOV_H

#include "export/format.h"

extern const struct export_format export_lcov;

#endif
