/* Exports for speedscope. */
#ifndef REPORT_EXPORT_SPEEDSCOPE_H
#define REPORT_EXPORT_SPEEDSCOPE_H

#include "export/format.h"

extern const struct export_format export_speedscope;

#endif
