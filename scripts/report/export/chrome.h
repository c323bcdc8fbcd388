/* Exports trace events for chrome://tracing. */
#ifndef REPORT_EXPORT_CHROME_H
#define REPORT_EXPORT_CHROME_H

#include "export/format.h"

extern const struct export_format export_chrome;

#endif
