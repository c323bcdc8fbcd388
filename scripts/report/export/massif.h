/* Exports for ms_print and massif-visualizer. */
#ifndef REPORT_EXPORT_MASSIF_H
#define REPORT_EXPORT_MASSIF_H

#include "export/format.h"

extern const struct export_format export_massif;

#endif
