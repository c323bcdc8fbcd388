/* Exports the order of functions for a linker. */
#ifndef REPORT_EXPORT_LINKER_ORDER_H
#define REPORT_EXPORT_LINKER_ORDER_H

#include "export/format.h"

extern const struct export_format export_order;

#endif
