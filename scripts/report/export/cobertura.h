/* Exports coverage as Cobertura's XML. */
#ifndef REPORT_EXPORT_COBERTURA_H
#define REPORT_EXPORT_COBERTURA_H

#include "export/format.h"

extern const struct export_format export_cobertura;

#endif
