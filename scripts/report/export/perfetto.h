/* Exports Perfetto's trace format. */
#ifndef REPORT_EXPORT_PERFETTO_H
#define REPORT_EXPORT_PERFETTO_H

#include "export/format.h"

extern const struct export_format export_perfetto;

#endif
