/* speedscope's format, of a timeline. */
#ifndef REPORT_EXPORT_SPEEDSCOPE_TIME_H
#define REPORT_EXPORT_SPEEDSCOPE_TIME_H

#include <stdio.h>

struct lanes;

void speedscope_print_time(FILE *out, struct lanes *lanes);

#endif
