/* Exports the Common Trace Format. */
#ifndef REPORT_EXPORT_CTF_H
#define REPORT_EXPORT_CTF_H

#include "export/format.h"

extern const struct export_format export_ctf;

#endif
