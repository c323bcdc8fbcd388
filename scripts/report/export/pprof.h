/* Exports profile.proto for pprof. */
#ifndef REPORT_EXPORT_PPROF_H
#define REPORT_EXPORT_PPROF_H

#include "export/format.h"

extern const struct export_format export_pprof;

#endif
